// Package probes makes changes to a mesh that has converged, one at a time, and
// follows each to every sidecar that it concerns: the probe phase of a run.
package probes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

const (
	// probeTimeout limits the time in which a change reaches all sidecars that it concerns. For
	// others it is lost.
	probeTimeout = 30 * time.Second
	// probeQuiet is the time without a response before a change that must not be merged with another one, where it is not known
	// for how long the control plane waits for a further change.
	probeQuiet = 500 * time.Millisecond
	// probedServices bounds over how many services the changes are spread.
	probedServices = 10
)

// Options configures the probes of a run. All fields are needed.
type Options struct {
	Changes  int                        // of each kind
	Mesh     topology.Mesh              // that is changed
	Knobs    scenario.Settings          // that the mesh has
	Adapter  *controlplane.ControlPlane // of the control plane
	API      place.Clients              // that changes are written to
	Label    string                     // value of the run label of objects that are created
	Fleet    *fleet.Fleet               // that changes are followed to
	Timeline *phases.Timeline           // measures the phase
	Journal  *journal.Journal           // takes the latencies
	Metrics  *measure.Metrics           // scaler's own
	Say      func(msg string)           // shows progress

	// Debounce is the time for which the control plane waits for a further change before it pushes; 0 = not known.
	Debounce time.Duration

	// Slowdown is the factor by which probeTimeout, probeQuiet and Debounce are longer.
	Slowdown proxy.Slowdown

	// Captured states that the mesh was captured: not each of its services has each kind of change.
	Captured bool

	// Disturb calls change, and does something else once change calls half. It
	// returns when both are done and the mesh has converged.
	Disturb func(ctx context.Context, change func(ctx context.Context, half func()) error) error
}

// prober makes the changes of the probe phase, one at a time, and follows each
// to every sidecar that it concerns.
type prober struct {
	Options
	services []int // indices of those whose endpoints are probed
	// differing are the service ports of which sidecars do not hold the endpoints that are expected.
	differing map[string]bool
	marked    int // markers handed out

	kinds   map[record.ChangeKind]*followed
	skipped map[record.ChangeKind]int // changes that concerned nobody
	cluster *stats.Histogram          // write to EndpointSlice change
	written *stats.Histogram          // write of an object
}

// followed are the latencies of one kind of change.
type followed struct {
	push, first, last *stats.Histogram
	fromWrite         *stats.Histogram // pushes of endpoints, from the return of the write
	changes           []stats.Cluster  // pushes of each change
	strays            int
}

// Run executes the probe phase. If no change was asked for there is none.
func Run(ctx context.Context, o Options) error {
	if o.Changes == 0 {
		return nil
	}
	p := &prober{
		Options: o,
		kinds:   map[record.ChangeKind]*followed{},
		skipped: map[record.ChangeKind]int{},
		cluster: stats.NewHistogram(),
		written: stats.NewHistogram(),
	}
	if p.services = p.suitable(); len(p.services) == 0 {
		o.Journal.Warn(record.Warning{About: "latencies.push", Reason: record.ReasonNothingToProbe})
		if !p.Captured {
			return nil
		}
	}
	defer o.Fleet.Promptly()() // how long containers take to start is no part of a push
	err := o.Timeline.Measure(ctx, record.PhaseProbe, 0, func(ctx context.Context) (record.EndedBy, error) {
		err := p.run(ctx)
		return record.EndedByConverged, err
	})
	return errors.Join(err, p.save())
}

// suitable returns services with several pods, whose accounts stay the same when a pod
// comes or goes: a change of the set of accounts would be a push of everything to
// everyone. Those that some sidecar is configured to call come before those that a
// change of would concern nobody.
func (p *prober) suitable() []int {
	var called, others []int
	p.differing = map[string]bool{}
	for _, d := range p.Fleet.Differences() {
		p.differing[d.Service] = true
	}
	for i, s := range p.Mesh.Services {
		switch port := p.servicePort(i); {
		case s.Pods < 2 || s.Outside || port == "":
		case len(p.Fleet.Tracker().Subscribers(port)) > topology.Value(p.Mesh.Profile.Gateways): // which know every service
			called = append(called, i)
		default:
			others = append(others, i)
		}
	}
	if len(called) == 0 {
		called = others
	}
	return called[:min(len(called), probedServices)]
}

// run makes all changes, kind by kind.
func (p *prober) run(ctx context.Context) error {
	follows := p.followsEndpoints()
	for _, kind := range []struct {
		name record.ChangeKind
		do   func(context.Context) error
	}{
		{record.EndpointHealth, func(ctx context.Context) error { return p.Disturb(ctx, p.probeHealth) }},
		{record.EndpointAdd, p.probeMembers}, // and record.EndpointRemove
		{record.RouteChange, func(ctx context.Context) error { return p.probeObjects(ctx, controlplane.RouteProbe) }},
		{record.ServiceChange, p.probeServices},
		{record.PolicyChange, func(ctx context.Context) error { return p.probeObjects(ctx, controlplane.PolicyProbe) }},
	} {
		if endpoints := kind.name == record.EndpointHealth || kind.name == record.EndpointAdd; endpoints && !follows {
			continue
		}
		p.Say(fmt.Sprintf("probing: %d changes of %s", p.Changes, kind.name))
		if err := kind.do(ctx); err != nil {
			return fmt.Errorf("probing %s: %w", kind.name, err)
		}
	}
	return nil
}

// followsEndpoints reports whether changes of endpoints can be followed, and warns if not. Those of a captured mesh are seen in the API
// server's list: where the control plane sends proxies of nodes pods that are not ready, and others none, the two do not change at the same time.
func (p *prober) followsEndpoints() bool {
	if len(p.services) == 0 {
		return false // the record states why
	}
	if _, sent := p.Adapter.Mesh.EndpointHealth(false, false, false); sent || !p.Captured || p.Adapter.Nodes == nil {
		return true
	}
	for _, kind := range []record.ChangeKind{record.EndpointHealth, record.EndpointAdd, record.EndpointRemove} {
		p.Journal.Warn(record.Warning{
			About: "latencies.push." + string(kind), Reason: record.ReasonNotSupported, Component: p.Adapter.Server.Describe().Name,
			Detail: "it sends the proxies of nodes pods that are not ready, and sidecars and waypoints none",
		})
	}
	return false
}

// of returns the service that the n-th change is made to.
func (p *prober) of(n int) int { return p.services[n%len(p.services)] }

// marker returns a new marker.
func (p *prober) marker() string {
	p.marked++
	return xdsprobe.Marker(strconv.FormatInt(time.Now().UnixNano(), 36) + strconv.Itoa(p.marked))
}

// followEndpoint makes a change by write, waits until the API server lists it,
// and follows it to the sidecars that compare the service's endpoints.
func (p *prober) followEndpoint(ctx context.Context, kind record.ChangeKind, service int, write func(context.Context) error, is func(fleet.EndpointChange) bool) error {
	concerned, also := p.Fleet.Tracker().Subscribers(p.servicePort(service)), p.listed(service)
	if also != "" {
		concerned = append(concerned, p.Fleet.Tracker().Subscribers(also)...)
	}
	changes := p.Fleet.Endpoints.Subscribe()
	defer p.Fleet.Endpoints.Unsubscribe()
	if err := write(ctx); err != nil {
		return err
	}
	written := time.Now()
	limited, cancel := context.WithTimeout(ctx, p.Slowdown.Of(probeTimeout))
	defer cancel()
	for {
		select {
		case change := <-changes:
			if change.Service != p.servicePort(service) || !is(change) {
				continue
			}
			p.cluster.Record(change.Seen.Sub(written))
			// The pod that comes or goes has a sidecar of its own, which is no
			// witness of that.
			own := func() string { return "" }
			if kind != record.EndpointHealth {
				own = func() string { return p.Fleet.Pods.At(change.Addr.Addr()) }
			}
			f := p.Fleet.Tracker().Follow(convergence.Change{
				Service: change.Service, Also: also, Addr: change.Addr, Health: change.Health, Absent: change.Kind == record.EndpointRemove,
			}, without(concerned, own()))
			begin := begun{change.Seen, written}
			if also != "" || p.Captured && p.Adapter.Nodes != nil { // of nodes' proxies the pod changed, and the EndpointSlice was seen: the write is before both
				begin.since = written
			}
			return p.await(ctx, kind, f, begin, own)
		case <-limited.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("service %s: the cluster did not list the changed endpoint within %s", p.servicePort(service), p.Slowdown.Of(probeTimeout))
		}
	}
}

// awaitReach waits until a change has reached all it concerns, or the limit.
func (p *prober) awaitReach(ctx context.Context, f *convergence.Following) error {
	timer := time.NewTimer(p.Slowdown.Of(probeTimeout))
	defer timer.Stop()
	select {
	case <-f.Done():
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begun holds the moments at which a change began.
type begun struct {
	since   time.Time // the latency's begin
	written time.Time // the return of the write that causes the change; zero where that is since
}

// await waits until a change has reached all it concerns, or the limit, and
// counts. own states which sidecar does not count, "" = all do; it is asked in the
// end, as a new endpoint may be seen before the pod that it is of has its address.
func (p *prober) await(ctx context.Context, kind record.ChangeKind, f *convergence.Following, begin begun, own func() string) error {
	if err := p.awaitReach(ctx, f); err != nil {
		f.Stop()
		return err
	}
	reached, lost, strays := f.Stop()
	k := p.kinds[kind]
	if k == nil {
		k = &followed{push: stats.NewHistogram(), first: stats.NewHistogram(), last: stats.NewHistogram(), fromWrite: stats.NewHistogram()}
		p.kinds[kind] = k
	}
	strays = without(strays, own())
	k.strays += len(strays)
	if len(reached)+len(lost) == 0 {
		p.skipped[kind]++
		return nil
	}
	var first, last time.Duration
	after := sortedSince(begin.since, reached)
	change := pushesOf(after, len(lost))
	k.changes = append(k.changes, change)
	for i, d := range after {
		k.push.Record(d)
		p.Metrics.Push(string(kind), max(0, d))
		if i == 0 {
			first = d
		}
		last = d
	}
	k.push.Lose(int64(len(lost)))
	if !begin.written.IsZero() {
		for _, d := range sortedSince(begin.written, reached) {
			k.fromWrite.Record(d)
		}
		k.fromWrite.Lose(int64(len(lost)))
	}
	if len(lost) == 0 {
		k.last.Record(last)
		p.Metrics.PropagatedLast(string(kind), max(0, last))
	} else {
		k.last.Lose(1)
	}
	if len(reached) > 0 {
		k.first.Record(first)
		p.Metrics.PropagatedFirst(string(kind), max(0, first))
	} else {
		k.first.Lose(1)
	}
	p.Journal.Event(record.ProbedChange{
		Kind: kind, Since: begin.since.UTC(), Reached: len(reached), Lost: lost, Strays: strays,
		FirstSeconds: max(0, first).Seconds(), LastSeconds: max(0, last).Seconds(), Pushes: pairs(change), Clamped: negative(after),
	})
	return nil
}

// sortedSince returns the times from a moment until each was reached, the shortest first.
// A time is negative if it was reached before: a histogram takes it as 0, and counts it.
func sortedSince(since time.Time, reached map[string]time.Time) []time.Duration {
	var all []time.Duration
	for _, at := range reached {
		all = append(all, at.Sub(since))
	}
	slices.Sort(all)
	return all
}

// negative counts those of sorted durations that are below 0.
func negative(sorted []time.Duration) int {
	n, _ := slices.BinarySearch(sorted, 0)
	return n
}

// pushesOf returns the pushes of one change, to the three digits that histograms keep.
func pushesOf(after []time.Duration, lost int) stats.Cluster {
	var values []float64
	for _, d := range after {
		values = append(values, stats.ThreeDigits(max(0, d).Seconds()))
	}
	return stats.NewCluster(values, int64(lost))
}

// pairs returns the values of a change with how many sidecars had each.
func pairs(change stats.Cluster) [][2]float64 {
	var all [][2]float64
	for i, v := range change.Values {
		all = append(all, [2]float64{v, float64(change.Counts[i])})
	}
	return all
}

// intervals returns the confidence intervals of the quantiles of pushes.
func intervals(changes []stats.Cluster) *record.PushIntervals {
	of := func(q float64) *record.QuantileInterval {
		i, ok := stats.ClusterQuantile(changes, q)
		if !ok {
			return nil
		}
		return &record.QuantileInterval{Low: i.Low, High: i.High}
	}
	return &record.PushIntervals{Changes: len(changes), P50: of(0.5), P90: of(0.9), P99: of(0.99)}
}

// save puts what was followed into the record.
func (p *prober) save() error {
	latencies := record.Latencies{
		Push:        map[record.ChangeKind]*record.Latency{},
		Propagation: map[record.ChangeKind]record.Propagation{},

		PushFromWrite: map[record.ChangeKind]*record.Latency{},
		PushIntervals: map[record.ChangeKind]*record.PushIntervals{},
	}
	var errs []error
	summarize := func(name string, h *stats.Histogram) *record.Latency {
		latency, err := p.Journal.SaveLatency(name, h)
		errs = append(errs, err)
		return latency
	}
	for _, kind := range slices.Sorted(maps.Keys(p.kinds)) {
		k := p.kinds[kind]
		about := "latencies.push." + string(kind)
		if k.strays > 0 {
			p.Journal.Warn(record.Warning{About: about, Reason: record.ReasonStrays, Values: map[string]float64{"times": float64(k.strays)}})
		}
		if n := p.skipped[kind]; n > 0 {
			p.Journal.Warn(record.Warning{About: about, Reason: record.ReasonUnconcerned, Values: map[string]float64{"changes": float64(n)}})
		}
		push := summarize("push-"+string(kind), k.push)
		if push == nil {
			continue
		}
		latencies.Push[kind] = push
		latencies.Propagation[kind] = record.Propagation{
			First: summarize("propagation-"+string(kind)+"-first", k.first), Last: summarize("propagation-"+string(kind)+"-last", k.last),
		}
		if !push.Unknown() {
			latencies.PushIntervals[kind] = intervals(k.changes)
		}
		if fromWrite := summarize("pushFromWrite-"+string(kind), k.fromWrite); fromWrite != nil {
			latencies.PushFromWrite[kind] = fromWrite
		}
	}
	latencies.Withhold()
	latencies.ClusterPart, latencies.ChangeWrite = summarize("clusterPart", p.cluster), summarize("changeWrite", p.written)
	p.Journal.Update(func(r *record.Run) {
		r.Latencies.Push, r.Latencies.Propagation = latencies.Push, latencies.Propagation
		r.Latencies.PushIntervals, r.Latencies.PushFromWrite = latencies.PushIntervals, latencies.PushFromWrite
		r.Latencies.ClusterPart, r.Latencies.ChangeWrite = latencies.ClusterPart, latencies.ChangeWrite
	})
	return errors.Join(errs...)
}

// listed names the endpoints of a service as sidecars know them, where others are those of the proxies of nodes;
// "" where there are no such sidecars, or they are not sent the states of endpoints that are followed.
func (p *prober) listed(service int) string {
	if _, sent := p.Adapter.Mesh.EndpointHealth(false, true, false); !sent || !p.Adapter.Mixed(p.Mesh) {
		return ""
	}
	return controlplane.Listed(p.servicePort(service))
}

// servicePort names the port of a service whose endpoints are followed: the first that sidecars compare and hold
// as expected, or else the first one; "" = there is none.
func (p *prober) servicePort(service int) string {
	all := p.Mesh.Services[service].Listings()
	for _, l := range all {
		if !p.differing[l.String()] && len(p.Fleet.Tracker().Subscribers(l.String())) > 0 {
			return l.String()
		}
	}
	if len(all) == 0 || p.differing[all[0].String()] {
		return ""
	}
	return all[0].String()
}

// probed returns the services that changes of objects of a kind are made for: those whose endpoints are changed, too, or
// else any that has such a change.
func (p *prober) probed(kind controlplane.ProbeKind) []int {
	able := func(i int) bool {
		object, _ := p.Adapter.Probes.Probe(kind, p.Mesh, p.Knobs, i, "")
		return object != nil
	}
	var some []int
	for _, i := range p.services {
		if able(i) {
			some = append(some, i)
		}
	}
	for i := range p.Mesh.Services {
		if len(some) > 0 && slices.Contains(p.services, some[0]) || len(some) == probedServices {
			break
		}
		if p.Captured && able(i) {
			some = append(some, i)
		}
	}
	return some
}

// without returns ids without one of them.
func without(ids []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(other string) bool { return other == id })
}
