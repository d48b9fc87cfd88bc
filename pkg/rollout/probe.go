package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/stats"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

const (
	// probeTimeout is how long a change may take to reach all it concerns; a
	// sidecar that does not have it by then has lost it.
	probeTimeout = 30 * time.Second
	// probeQuiet is how long nothing must have been sent before a change that
	// must not be merged with another one.
	probeQuiet = 500 * time.Millisecond
	// probedServices bounds over how many services the changes are spread.
	probedServices = 10
)

// prober makes the changes of the probe phase, one at a time, and follows each
// to every sidecar that it concerns.
type prober struct {
	*rolloutRun
	services []int // indices of those that are probed
	marked   int   // markers handed out

	lastMarker string
	kinds      map[record.ChangeKind]*followed
	spared     map[record.ChangeKind]int // changes that concerned nobody
	cluster    *stats.Histogram          // write to EndpointSlice change
	written    *stats.Histogram          // write of an object
}

// followed are the latencies of one kind of change.
type followed struct {
	push, first, last *stats.Histogram
	strays            int
}

// probe is the probe phase.
func (r *rolloutRun) probe(ctx context.Context) (experiment.Undo, error) {
	if r.spec.Probes == 0 {
		return nil, nil
	}
	p := &prober{
		rolloutRun: r,
		services:   r.probedServices(),
		kinds:      map[record.ChangeKind]*followed{},
		spared:     map[record.ChangeKind]int{},
		cluster:    stats.NewHistogram(),
		written:    stats.NewHistogram(),
	}
	if len(p.services) == 0 {
		r.warn(record.Warning{About: "latencies.push", Reason: record.ReasonNothingToProbe})
		return nil, nil
	}
	err := r.window(ctx, record.PhaseProbe, 0, func(ctx context.Context) (record.EndedBy, error) {
		err := p.run(ctx)
		return record.EndedByConverged, err
	})
	return nil, errors.Join(err, p.keep())
}

// probedServices are services with several pods, whose accounts stay the same
// when a pod comes or goes: a change of the set of accounts would be a push of
// everything to everyone. Those that some sidecar is configured to call come
// before those that a change of would concern nobody.
func (r *rolloutRun) probedServices() []int {
	var called, others []int
	for i, s := range r.mesh.Services {
		switch {
		case s.Pods < 2:
		case len(r.fleet.tracker.Subscribers(r.servicePort(i))) > 0:
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
	for _, kind := range []struct {
		name record.ChangeKind
		do   func(context.Context) error
	}{
		{record.EndpointHealth, p.healthWithFaults},
		{record.EndpointAdd, p.probeMembers}, // and record.EndpointRemove
		{record.RouteChange, func(ctx context.Context) error { return p.probeObjects(ctx, controlplane.RouteProbe) }},
		{record.PolicyChange, func(ctx context.Context) error { return p.probeObjects(ctx, controlplane.PolicyProbe) }},
	} {
		p.progress.say(fmt.Sprintf("probing: %d changes of %s", p.spec.Probes, kind.name))
		if err := kind.do(ctx); err != nil {
			return fmt.Errorf("probing %s: %w", kind.name, err)
		}
	}
	return nil
}

// of is the service that the n-th change is made to.
func (p *prober) of(n int) int { return p.services[n%len(p.services)] }

// marker is a new marker.
func (p *prober) marker() string {
	p.marked++
	return xdsprobe.Marker(strconv.FormatInt(time.Now().UnixNano(), 36) + strconv.Itoa(p.marked))
}

// followEndpoint makes a change by write, waits until the API server lists it,
// and follows it to the sidecars that compare the service's endpoints.
func (p *prober) followEndpoint(ctx context.Context, kind record.ChangeKind, service int, write func(context.Context) error, is func(endpointChange) bool) (endpointChange, error) {
	concerned := p.fleet.tracker.Subscribers(p.servicePort(service))
	changes := p.fleet.subscribe()
	defer p.fleet.unsubscribe()
	if err := write(ctx); err != nil {
		return endpointChange{}, err
	}
	written := time.Now()
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for {
		select {
		case change := <-changes:
			if change.service != p.servicePort(service) || change.kind != kind || !is(change) {
				continue
			}
			p.cluster.Record(change.seen.Sub(written))
			// The pod that comes or goes has a sidecar of its own, which is no
			// witness of that.
			own := func() string { return "" }
			if kind != record.EndpointHealth {
				own = func() string { return p.fleet.podAt(change.addr.Addr()) }
			}
			f := p.fleet.tracker.Follow(convergence.Change{
				Service: change.service, Addr: change.addr, Health: change.health, Absent: change.kind == record.EndpointRemove,
			}, without(concerned, own()))
			return change, p.await(ctx, kind, f, change.seen, own)
		case <-limited.Done():
			if ctx.Err() != nil {
				return endpointChange{}, context.Cause(ctx)
			}
			return endpointChange{}, fmt.Errorf("service %s: the cluster did not list the changed endpoint within %s", p.servicePort(service), probeTimeout)
		}
	}
}

// awaitReach waits until a change has reached all it concerns, or the limit.
func awaitReach(ctx context.Context, f *convergence.Following) error {
	timer := time.NewTimer(probeTimeout)
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

// await waits until a change has reached all it concerns, or the limit, and
// counts. own says which sidecar does not count, "" = all do; it is asked in the
// end, as a new endpoint may be seen before the pod that it is of has its address.
func (p *prober) await(ctx context.Context, kind record.ChangeKind, f *convergence.Following, since time.Time, own func() string) error {
	if err := awaitReach(ctx, f); err != nil {
		f.Stop()
		return err
	}
	reached, lost, strays := f.Stop()
	k := p.kinds[kind]
	if k == nil {
		k = &followed{push: stats.NewHistogram(), first: stats.NewHistogram(), last: stats.NewHistogram()}
		p.kinds[kind] = k
	}
	strays = without(strays, own())
	k.strays += len(strays)
	if len(reached)+len(lost) == 0 {
		p.spared[kind]++
		return nil
	}
	var first, last time.Duration
	for i, d := range sortedSince(since, reached) {
		k.push.Record(d)
		p.metrics.Push(string(kind), d)
		if i == 0 {
			first = d
		}
		last = d
	}
	k.push.Lose(int64(len(lost)))
	if len(lost) == 0 {
		k.last.Record(last)
		p.metrics.PropagatedLast(string(kind), last)
	} else {
		k.last.Lose(1)
	}
	if len(reached) > 0 {
		k.first.Record(first)
		p.metrics.PropagatedFirst(string(kind), first)
	} else {
		k.first.Lose(1)
	}
	p.event(record.ProbedChange{
		Kind: kind, Since: since.UTC(), Reached: len(reached), Lost: lost, Strays: strays,
		FirstSeconds: first.Seconds(), LastSeconds: last.Seconds(),
	})
	return nil
}

// sortedSince is how long after a moment each was reached, the shortest first.
// What bears an earlier time was reached at once.
func sortedSince(since time.Time, reached map[string]time.Time) []time.Duration {
	var all []time.Duration
	for _, at := range reached {
		all = append(all, max(0, at.Sub(since)))
	}
	slices.Sort(all)
	return all
}

// keep puts what was followed into the record.
func (p *prober) keep() error {
	latencies := &p.record.Latencies
	latencies.Push = map[record.ChangeKind]*record.Latency{}
	latencies.Propagation = map[record.ChangeKind]record.Propagation{}
	summarize := func(name string, h *stats.Histogram) (*record.Latency, error) {
		latency := record.Latency(h.Summary())
		return &latency, p.writer.Histogram(name, h)
	}
	var errs []error
	for _, kind := range slices.Sorted(maps.Keys(p.kinds)) {
		k := p.kinds[kind]
		if k.strays > 0 {
			p.warn(record.Warning{About: "latencies.push." + string(kind), Reason: record.ReasonStrays, Values: map[string]float64{"times": float64(k.strays)}})
		}
		if n := p.spared[kind]; n > 0 {
			p.warn(record.Warning{About: "latencies.push." + string(kind), Reason: record.ReasonUnconcerned, Values: map[string]float64{"changes": float64(n)}})
		}
		if s := k.push.Summary(); s.Count+s.Lost == 0 {
			continue
		}
		push, err1 := summarize("push-"+string(kind), k.push)
		first, err2 := summarize("propagation-"+string(kind)+"-first", k.first)
		last, err3 := summarize("propagation-"+string(kind)+"-last", k.last)
		errs = append(errs, err1, err2, err3)
		latencies.Push[kind] = push
		latencies.Propagation[kind] = record.Propagation{First: first, Last: last}
	}
	if s := p.cluster.Summary(); s.Count > 0 {
		part, err := summarize("clusterPart", p.cluster)
		errs = append(errs, err)
		latencies.ClusterPart = part
	}
	if s := p.written.Summary(); s.Count > 0 {
		write, err := summarize("changeWrite", p.written)
		errs = append(errs, err)
		latencies.ChangeWrite = write
	}
	return errors.Join(errs...)
}

// servicePort names the first port of a service, as the tracker does.
func (r *rolloutRun) servicePort(service int) string {
	s := r.mesh.Services[service]
	return s.Namespace + "/" + s.Name + ":" + s.Ports[0].Name
}

// endpointChange is one endpoint's change as the API server lists it.
type endpointChange struct {
	service string
	addr    netip.AddrPort
	kind    record.ChangeKind
	health  convergence.Health
	seen    time.Time
}

// without is ids, less one.
func without(ids []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(other string) bool { return other == id })
}
