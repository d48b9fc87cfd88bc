package istio

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dilation"
)

// Stock limits of istiod's client of the API server
// (pilot/cmd/pilot-discovery/app/cmd.go).
const (
	apiRequestsPerSecond = 80
	apiRequestsBurst     = 160
)

// electionRequestsPerSecond is the rate of leader election's requests with the same client, whatever K is: it has no setting.
// Leader election renews each of five locks every 7.5 s by a GET and a PUT (RetryPeriod in pilot/pkg/leaderelection), as the API
// server counted with istiod 1.31.0 at rest. Replicas that do not lead have no PUT, and so request less.
const electionRequestsPerSecond = 5 * 2 / 7.5

// limiterWait is the time for which a new stream waits for its limiter: a constant
// ((*DiscoveryServer).WaitForRequestLimit in pilot/pkg/xds/discovery.go).
const limiterWait = time.Second

// cost is the processor time of istiod.
//
// Earlier measurements determine the ratios of Pod, Push and PushPerService: 24 ms for a pod (docs/results/forecasts.md, docs/results/validation.md),
// 0.24 ms for a push, and 1.3 µs for each service in it (docs/results/forecasts.md). All three are multiplied by 1.09, with which the model gives the
// processor time of the rollouts of 200, 400 and 800 pods in permissive mode (docs/results/ladder.md).
//
// ReadyPerSecond: with 8 processors, 31 to 33 of 1600 pods at once became ready in a second, by istiod's limits of new streams and of token
// reviews (docs/results/ladder.md).
var cost = dilation.Cost{Pod: 0.026, Push: 0.00026, PushPerService: 1.4e-6, ReadyPerSecond: 32}

// dilate slows istiod down by k: the debounce, the limiter of new streams and the
// API client. What it derives from GOMAXPROCS (features.PushThrottle and
// features.RequestLimit, see Limits) is what it derives from these processors, which
// are those of the modelled machine; pushes at the same time are a number and stay it, requests
// per second are slowed down. The burst of the API client is a number, too: a bucket
// that holds as many tokens and is filled k times slower, except for the requests of leader election.
func dilate(env []string, processors int, k float64) controlplane.Dilated {
	limits := Limits(env)
	d := controlplane.Dilated{
		LimiterWait: limiterWait,
		Scaled: []string{
			"debounce (PILOT_DEBOUNCE_AFTER, PILOT_DEBOUNCE_MAX)",
			"limiter of new streams (PILOT_MAX_REQUESTS_PER_SECOND)",
			"client of the API server (--kubernetesApiQPS), without the requests of leader election, which are counted for one replica",
			"age of connections (--keepaliveMaxServerConnectionAge)",
		},
		Unscaled: []string{
			"the second that a new stream waits for the limiter before it is refused, which is 1/K of one",
			controlplane.UnscaledCollection,
			"timers of istiod without a setting: renewals of leader election, resynchronization, status, liveness of watches",
			"time-outs of connections: 20 s to connect and for a ping's answer",
			controlplane.UnscaledThread,
		},
		Args: []string{
			"--kubernetesApiQPS", strconv.FormatFloat((apiRequestsPerSecond-electionRequestsPerSecond)/k+electionRequestsPerSecond, 'g', 4, 64),
			"--kubernetesApiBurst", strconv.Itoa(apiRequestsBurst),
		},
	}
	set := map[string]string{
		"PILOT_DEBOUNCE_AFTER":          seconds(limits.DebounceSeconds * k),
		"PILOT_DEBOUNCE_MAX":            seconds(limits.DebounceMaxSeconds * k),
		"PILOT_MAX_REQUESTS_PER_SECOND": strconv.FormatFloat(limits.StreamsPerSecond.At(processors)/k, 'g', -1, 64),
		"PILOT_PUSH_THROTTLE":           strconv.Itoa(int(limits.ConcurrentPushes.At(processors))),
	}
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); set[name] == "" {
			d.Env = append(d.Env, kv)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		d.Env = append(d.Env, name+"="+set[name])
	}
	d.Args = append(d.Args, "--keepaliveMaxServerConnectionAge", (time.Duration(float64(connectionAge) * k)).String())
	return d
}

// seconds returns a length of time as istiod reads it.
func seconds(s float64) string {
	return fmt.Sprint(time.Duration(s * float64(time.Second)))
}
