package istio

import (
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/record"
)

// Limits returns the bounds that istiod of this line holds itself to, given what
// is set in its environment (NAME=VALUE; of a name that comes several times the
// last counts):
//
//   - pilot/pkg/features/tuning.go: RequestLimit and PushThrottle, both
//     min(15 + 5 x GOMAXPROCS, 100) unless PILOT_MAX_REQUESTS_PER_SECOND or
//     PILOT_PUSH_THROTTLE is above 0, and the debounce;
//   - pilot/pkg/xds/discovery.go, WaitForRequestLimit: who would have to wait for
//     more than a second is refused;
//   - pilot/cmd/pilot-discovery/app/cmd.go: kubernetesApiQPS and
//     kubernetesApiBurst, of the client that reviews tokens too, one for the
//     certificate request and one for the stream;
//   - pkg/util/protomarshal/grpc.go: buffers of responses are those of gRPC's default pool, of which
//     mem/buffer_pool.go of google.golang.org/grpc has 256 bytes, 4, 16 and 32 KiB, and 1 MiB.
//
// A value that istiod could not read leaves its default, as it does there.
func Limits(env []string) *record.Limits {
	bound := func(name string) *record.ByProcessors {
		if fixed := controlplane.NumberIn(env, name, 0); fixed > 0 {
			return &record.ByProcessors{Base: fixed}
		}
		return &record.ByProcessors{Base: 15, PerProcessor: 5, Max: 100}
	}
	return &record.Limits{
		StreamsPerSecond:       bound("PILOT_MAX_REQUESTS_PER_SECOND"),
		StreamWaitSeconds:      1,
		ConcurrentPushes:       bound("PILOT_PUSH_THROTTLE"),
		TokenReviewsPerSecond:  apiRequestsPerSecond,
		TokenReviewsBurst:      apiRequestsBurst,
		TokenReviewsPerSidecar: 2,
		DebounceSeconds:        controlplane.SecondsIn(env, "PILOT_DEBOUNCE_AFTER", 0.1),
		DebounceMaxSeconds:     controlplane.SecondsIn(env, "PILOT_DEBOUNCE_MAX", 10),
		LargeResponseBytes:     32 << 10,
	}
}
