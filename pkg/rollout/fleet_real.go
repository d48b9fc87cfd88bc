package rollout

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/dataplane"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
	"scaler.mesh/scaler/pkg/sidecar"
	"scaler.mesh/scaler/pkg/topology"
)

const (
	// askEvery is how often a real sidecar's Envoy is asked whether it received
	// anything: it is what its times are exact to. Its whole configuration is read
	// only if it did, and not more often than dumpEvery, as that costs it some
	// milliseconds.
	askEvery  = 200 * time.Millisecond
	dumpEvery = time.Second
	// refusalPatience is how long an Envoy may go on refusing something before the
	// run is given up: it would never converge.
	refusalPatience = 20 * time.Second
)

// received are the bytes that came to an Envoy over its ADS connection, by the
// names that the bootstraps of the control planes give it.
const received = `^cluster\.(xds-grpc|ads);?\.upstream_cx_rx_bytes_total$`

// realFleet are the real sidecars of a run.
type realFleet struct {
	// fixed after newRealFleet
	place     experiment.RealSidecars
	quota     map[string]int // of each service's pods, how many are real
	certified bool           // a proxy has its certificate from its start: there is no agent
	sampler   *recorder.Sampler
	latencies *latencies                    // of the starts of the rollout's real pods
	others    *latencies                    // of the starts of those that take the place of others, which are in no figure
	tracker   *convergence.Tracker          // of the real ones: what is read off an Envoy now and then is no time of a push
	scopes    map[string]*convergence.Scope // by service name
	quiet     func() bool
	say       func(string)
	warn      func(record.Warning)

	// guarded by fleet.mu
	all []*realPod
}

// realPod is a pod's real sidecar.
type realPod struct {
	id, name, service string
	sidecar           *sidecar.Sidecar
	starts            *latencies // where its start is recorded

	telling sync.Mutex // held while what it holds is told; taken before fleet.mu
	crashes int        // so far. Guarded by telling.

	mu   sync.Mutex
	held sidecar.Configuration // as last read, nothing since a crash
}

// envoyName and agentName are the components that a sidecar's processes are
// sampled as.
func (p *realPod) envoyName() string { return "envoy " + p.name }

func (p *realPod) agentName() string { return "agent " + p.name }

// newRealFleet makes the real sidecars' part of a fleet, nil where there are none.
func (r *rolloutRun) newRealFleet() *realFleet {
	if r.spec.RealSidecars == 0 {
		return nil
	}
	real := &realFleet{
		place: experiment.RealSidecars{
			Adapter: r.adapter, Programs: r.programs, Group: r.group,
			Dir: filepath.Join(r.group.Dir(), "sidecars"), Logs: r.writer.LogDir(), Cpus: r.others,
			Lifetime: r.spec.CertificateLifetime, Expiry: &experiment.CertificateExpiry{},
		},
		quota:     realQuota(r.mesh.Services, r.spec.RealSidecars),
		certified: r.programs[component.PilotAgent] == "",
		sampler:   r.sampler,
		latencies: newLatencies(),
		others:    newLatencies(),
		tracker:   convergence.New(),
		scopes:    map[string]*convergence.Scope{},
		quiet:     func() bool { return r.currentPhase() == record.PhaseSteady },
		say:       r.progress.say,
		warn:      r.warn,
	}
	for i, s := range r.mesh.Services {
		real.scopes[s.Name] = real.tracker.Scope(r.adapter.Mesh.Wants(r.mesh, r.spec.Knobs(), i))
	}
	return real
}

// trackers are those of all sidecars, simulated and real.
func (f *fleet) trackers() []*convergence.Tracker {
	if f.real == nil {
		return []*convergence.Tracker{f.tracker}
	}
	return []*convergence.Tracker{f.tracker, f.real.tracker}
}

// realQuota spreads n real pods over the services as evenly as their pods allow,
// a pod for each service at a time, services that lie evenly among all first.
func realQuota(services []topology.Service, n int) map[string]int {
	quota := map[string]int{}
	var order []topology.Service
	if n < len(services) {
		for k := range n {
			order = append(order, services[k*len(services)/n])
		}
	} else {
		order = services
	}
	for n > 0 {
		before := n
		for _, s := range order {
			if n > 0 && quota[s.Name] < s.Pods {
				quota[s.Name]++
				n--
			}
		}
		if n == before {
			order = services // those chosen first have no more pods
		}
	}
	return quota
}

// takes reports whether a pod is to have a real sidecar: its service has fewer
// than it should have, not counting those that others are to take the place of.
// The caller holds mu.
func (f *fleet) takes(p *pod) bool {
	if f.real == nil {
		return false
	}
	there := 0
	for _, other := range f.pods {
		if other.real != nil && !other.gone && other.number >= f.apart.renewed && other.service == p.service {
			there++
		}
	}
	return there < f.real.quota[p.service]
}

// startReal starts the real sidecar of a pod. The caller holds mu.
func (f *fleet) startReal(ctx context.Context, p *pod, object *corev1.Pod) {
	real := &realPod{id: p.id, name: p.name, service: p.service, starts: f.real.latencies}
	if p.in != f.latencies {
		real.starts = f.real.others
	}
	if p.in == f.apart.latencies {
		f.apart.real++
	}
	p.real = real
	f.real.all = append(f.real.all, real)
	f.real.tracker.Add(p.id, f.real.scopes[object.Labels[kwok.ServiceLabel]])
	ctx, p.stop = context.WithCancel(ctx)
	delay := f.delay.Of(f.seed, p.order)
	f.sidecars.Go(func() {
		if delay > 0 && experiment.WaitUntil(ctx, time.Now().Add(delay)) != nil {
			return
		}
		application, err := f.real.startApplication(real)
		if err != nil {
			f.fail(err)
			return
		}
		defer func() { _ = application.Stop(context.WithoutCancel(ctx)) }() // its group says so, too
		s, err := f.real.place.ForPod(ctx, object, func(o *sidecar.Options) { f.tellReal(p, real, o) })
		if err == nil {
			f.mu.Lock()
			real.sidecar = s
			f.mu.Unlock()
			var following sync.WaitGroup
			life, end := context.WithCancel(ctx)
			following.Go(func() { f.followReal(life, p, real) })
			err = s.Run(ctx)
			end()
			following.Wait()
		}
		if err != nil && ctx.Err() == nil {
			f.fail(fmt.Errorf("running the real sidecar of pod %s: %w", p.id, err))
		}
	})
}

// startApplication starts what a real pod's sidecar stands beside: a server that
// answers requests.
func (f *realFleet) startApplication(p *realPod) (*process.Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding scaler's own program: %w", err)
	}
	ports, err := process.FreePorts(1)
	if err != nil {
		return nil, err
	}
	application, err := f.place.Group.Start(process.Spec{
		Name: "echo-" + p.name, Path: program,
		Args: []string{dataplane.EchoCommand, "--listen", "127.0.0.1:" + strconv.Itoa(ports[0]), "--name", p.name},
		Log:  filepath.Join(f.place.Logs, "echo-"+p.name+".log"), CPUs: f.place.Cpus,
	})
	if err != nil {
		return nil, fmt.Errorf("starting the application of pod %s: %w", p.id, err)
	}
	return application, nil
}

// tellReal has a sidecar tell of its token, its lives and their ends.
func (f *fleet) tellReal(p *pod, real *realPod, o *sidecar.Options) {
	if ask := o.Token; ask != nil {
		o.Token = func(ctx context.Context) (proxy.Token, error) {
			asked := time.Now()
			token, err := ask(ctx)
			var isFirst bool
			f.at(p.id, func(p *pod) { isFirst = err == nil && first(&p.times.Token, time.Now()) })
			if isFirst {
				real.starts.token.Record(time.Since(asked))
			}
			return token, err
		}
	}
	o.Started = func(life sidecar.Life) {
		f.real.measure(real, life)
		f.at(p.id, func(p *pod) {
			first(&p.times.Dialed, life.At)
			first(&p.times.Requested, life.At)
		})
		f.real.tracker.FirstRequest(p.id, life.At)
		f.event(record.RealSidecarStarted{Pod: p.id, Life: life.Number, PID: life.Process.PID(), Envoy: life.Envoy.PID()})
	}
	o.Crashed = func(crash sidecar.Crash) {
		name := real.envoyName()
		if !f.real.certified {
			name = real.agentName()
		}
		f.real.sampler.Ended(name, recorder.OfProcess(crash.Process))
		f.real.crashed(real, crash.At)
		f.real.say(fmt.Sprintf("the real sidecar of pod %s ended and is started again: %s", p.id, lastLine(crash.Err)))
		f.real.warn(record.Warning{
			About: "sidecars.real", Reason: record.ReasonSidecarCrashed, Component: "the sidecar of pod " + p.id, Detail: fmt.Sprint(crash.Err),
			Values: map[string]float64{"times": 1},
		})
		f.event(record.RealSidecarEnded{Pod: p.id, Error: fmt.Sprint(crash.Err)})
	}
}

// lastLine is where the words of a program that ended are.
func lastLine(err error) string {
	text := strings.TrimSpace(fmt.Sprint(err))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// measure has a life's processes sampled. It is called when they run and again
// when Envoy answers: one that is just becoming Envoy may not be readable.
func (f *realFleet) measure(p *realPod, life sidecar.Life) {
	// One that has ended meanwhile is not there to be read.
	_ = f.sampler.Watch(p.envoyName(), recorder.OfProcess(life.Envoy))
	if life.Process != life.Envoy {
		_ = f.sampler.Watch(p.agentName(), recorder.OfProcess(life.Process))
	}
}

// followReal reads what an Envoy holds whenever it received something, until
// ctx is done. While nothing is touched it is not asked: that would be part of
// what it is measured to need.
func (f *fleet) followReal(ctx context.Context, p *pod, real *realPod) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	var (
		life          int
		bytes         int64     // received as of the last dump
		changed       time.Time // when it was last seen to have received more
		dumped        time.Time
		refusing      time.Time // since when
		seen          int64
		settled       bool // what was last read lacks nothing that comes without more bytes
		readCompletes bool
	)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		current := real.sidecar.Life()
		if readCompletes && current.Number == life && refusing.IsZero() && f.real.quiet() {
			continue
		}
		now := time.Now()
		stats, err := real.sidecar.Stats(ctx, received)
		if err != nil || len(stats) == 0 {
			continue // it does not run yet, or not now
		}
		if current.Number != life {
			life, bytes, seen, refusing, settled = current.Number, 0, 0, time.Time{}, false
			f.real.measure(real, current)
		}
		var total int64
		for _, n := range stats {
			total += n
		}
		if total > seen {
			seen, changed = total, now
		}
		readCompletes = total == bytes && settled
		if readCompletes && refusing.IsZero() || now.Sub(dumped) < dumpEvery || total == 0 {
			continue
		}
		crashes := real.crashedSoFar()
		configuration, err := real.sidecar.Configuration(ctx)
		if err != nil {
			continue
		}
		at := changed
		if total == bytes {
			at = now // its certificate came another way, and what waited for it
		}
		bytes, dumped = total, now
		settled = !configuration.Warming && (f.real.certified || !configuration.Certificate.IsZero())
		f.takeReal(p, real, reading{configuration, changed, at, crashes})
		if len(configuration.Refused) == 0 {
			refusing = time.Time{}
			continue
		}
		if refusing.IsZero() {
			refusing = now
			f.event(refusedEvent(p.id, configuration.Refused))
			f.real.say(fmt.Sprintf("the Envoy of pod %s refused %s", p.id, configuration.Refused[0]))
			f.real.warn(record.Warning{About: "sidecars.real", Reason: record.ReasonSidecarRefused, Component: p.id, Detail: configuration.Refused[0].String()})
		}
		if now.Sub(refusing) > refusalPatience {
			f.fail(fmt.Errorf("the Envoy of pod %s has refused its configuration for %.0f s: %s", p.id, now.Sub(refusing).Seconds(), configuration.Refused[0]))
			return
		}
	}
}

// refusedEvent is the event of what a pod's Envoy refused.
func refusedEvent(pod string, refused []sidecar.Refusal) record.ConfigurationRefused {
	e := record.ConfigurationRefused{Pod: pod}
	for _, r := range refused {
		e.Refused = append(e.Refused, record.RefusedResource(r))
	}
	return e
}

// startsIn are where a pod's sidecar's start is recorded.
func (f *fleet) startsIn(p *pod) *latencies {
	if p.real != nil {
		return p.real.starts
	}
	return p.in
}

// realPods are all that there ever were, in the order of their starts.
func (f *fleet) realPods() []*realPod {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.real == nil {
		return nil
	}
	return slices.Clone(f.real.all)
}
