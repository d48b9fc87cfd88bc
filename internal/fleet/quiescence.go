package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// lookInterval is the time between two looks at whether a mesh is quiescent.
const lookInterval = time.Second

// Rest reads whether the control plane is at rest, which its silence alone does not show.
type Rest struct {
	// Window returns the time, in real time, in which nothing may happen: longer than the control plane waits
	// before it pushes a change that it has seen, and computes the push.
	Window func() time.Duration
	// Read reads what all programs of the control plane report that serve now.
	Read func(ctx context.Context) (controlplane.SyncState, error)
}

// AwaitSettled returns once the mesh has converged or is quiescent, and which of the two.
//
// It has converged once every pod of the mesh is there and Ready, the API server lists every one as a
// healthy endpoint, and every sidecar holds and has acknowledged all that is expected, has its certificate,
// and is back if it lost its stream.
//
// It is quiescent once all of that is true but what is expected, every sidecar has acknowledged all that it
// was sent, and that has been so for longer than Rest.Window, in which no pod, endpoint, stream,
// certificate or response came or went, and the control plane has reported no proxy behind, no change seen
// and no push begun. After the first time, what is expected must be true but for the resources by which the mesh
// differed then, unless ExpectAnew was called: a mesh that was better before is not at rest, however silent.
func (f *Fleet) AwaitSettled(ctx context.Context) (record.EndedBy, error) {
	var looks <-chan time.Time
	if f.Rest != nil {
		ticker := time.NewTicker(f.Slowdown.Of(lookInterval))
		defer ticker.Stop()
		looks = ticker.C
	}
	reading, stop := context.WithCancel(ctx)
	seen := make(chan look, 1)
	busy := false // a look goes on
	defer func() {
		stop()
		if busy {
			<-seen
		}
	}()
	var still stillness
	for {
		if f.converged() {
			f.settled(nil)
			return record.EndedByConverged, nil
		}
		select {
		case <-f.changed:
		case <-f.tracker.Changed(): // or that of another revision
		case <-looks:
			if !busy {
				busy = true
				go func() { seen <- f.look(reading) }() // so that convergence is noticed meanwhile
			}
		case l := <-seen:
			busy = false
			if !still.quiescent(l, f.Rest.Window()) || f.converged() {
				continue
			}
			f.settled(f.Differences())
			return record.EndedByQuiescent, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// look is the state of a mesh at one moment.
type look struct {
	begun, ended time.Time
	lacks        string // why the mesh is not quiescent, whatever happens next; "" = it may be
	mark         mark   // of all that happened until then
}

// mark differs from another one of the same mesh once something has happened between the two.
type mark struct {
	events    int64     // changes of pods, endpoints and sidecars
	answered  time.Time // the last response
	streams   int       // opened by simulated sidecars
	certified int
	responses int64 // that all simulated sidecars counted
	work      string
}

// stillness decides from looks, one after the other, whether a mesh is quiescent.
type stillness struct {
	since time.Time // the end of the first look at what has not changed since; zero = something is lacking
	mark  mark
}

// quiescent takes a look, and reports whether nothing has happened for longer than a window, and nothing lacked.
func (s *stillness) quiescent(l look, window time.Duration) bool {
	switch {
	case l.lacks != "":
		s.since = time.Time{}
	case s.since.IsZero() || l.mark != s.mark:
		s.since, s.mark = l.ended, l.mark
	default:
		return l.begun.Sub(s.since) > window
	}
	return false
}

// look looks at the mesh. The control plane is asked only once nothing has come for a moment: while it
// pushes, it is not disturbed.
func (f *Fleet) look(ctx context.Context) look {
	l := look{begun: time.Now()}
	var sidecars []string
	if sidecars, l.lacks = f.unsettled(); l.lacks == "" {
		l.lacks = f.unknown()
	}
	if l.lacks == "" {
		l.mark.work, l.lacks = f.readRest(ctx, sidecars)
	}
	counts := f.Workers.Counts()
	l.mark.responses, _ = counts.AllResponses()
	for _, t := range f.trackers() {
		l.mark.certified += t.Counts().Certified
	}
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	l.mark.answered, l.mark.events = f.Pods.answered, f.events.Load()
	for _, p := range f.Pods.simulated {
		l.mark.streams += p.connection.streams
	}
	l.ended = time.Now()
	return l
}

// readRest asks the control plane how the sidecars of these pods stand, and returns what it has done until then, or
// what is lacking.
func (f *Fleet) readRest(ctx context.Context, sidecars []string) (work, lacks string) {
	state, err := f.Rest.Read(ctx)
	if err != nil {
		return "", err.Error()
	}
	for _, id := range sidecars {
		switch acked, connected := state.Proxies[id]; {
		case !connected:
			return "", fmt.Sprintf("sidecar %s is not connected to any program of the control plane", id)
		case !acked:
			return "", fmt.Sprintf("sidecar %s has not acknowledged all that it was sent", id)
		}
	}
	return state.Work, ""
}

// unsettled returns the pods that are proxies or have one each, and in what the mesh is not quiescent, as far as that is seen from
// outside the control plane; "" = in nothing.
func (f *Fleet) unsettled() (sidecars []string, lacks string) {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	s := f.Pods
	if quiet := time.Since(s.answered); quiet < f.quietTime() {
		return nil, "the control plane has just sent a response"
	}
	if s.away > 0 {
		return nil, fmt.Sprintf("%d sidecars lost their stream and are not back", s.away)
	}
	pods := 0
	for p := range s.workloads {
		pods++
		switch served := f.nodes.pods[p.id] != nil; {
		case !s.current(p) || !p.ready:
			return nil, fmt.Sprintf("pod %s is not ready", p.id)
		case p.member.certified().IsZero():
			return nil, fmt.Sprintf("sidecar %s has no certificate", p.id)
		case served:
			continue
		case !p.whole:
			return nil, fmt.Sprintf("sidecar %s waits for what it requested", p.id)
		}
		sidecars = append(sidecars, p.id)
	}
	if wanted := int(f.wanted.Load()); pods != wanted {
		return nil, fmt.Sprintf("%d pods are there, want %d", pods, wanted)
	}
	if lacks := f.nodes.lacks(); lacks != "" {
		return nil, lacks
	}
	for id, p := range f.nodes.shared {
		if !p.ready || !p.whole {
			return nil, fmt.Sprintf("proxy %s waits for what it requested", id)
		}
		sidecars = append(sidecars, id)
	}
	if healthy, wanted := f.Endpoints.healthy(), int(f.healthy.Load()); healthy != wanted {
		return nil, fmt.Sprintf("the API server lists %d healthy endpoints, want %d", healthy, wanted)
	}
	certified, registered := 0, 0
	for _, t := range f.trackers() {
		counts := t.Counts()
		certified, registered = certified+counts.Certified, registered+counts.Sidecars
	}
	if certified != len(sidecars) || registered != len(sidecars) {
		return nil, fmt.Sprintf("%d of %d sidecars have a certificate", certified, len(sidecars))
	}
	return sidecars, ""
}

// unknown returns a resource by which the mesh did not differ when it was last at rest; "" = there is none.
func (f *Fleet) unknown() string {
	f.Pods.mu.Lock()
	known := f.known
	f.Pods.mu.Unlock()
	if known == nil {
		return ""
	}
	for _, d := range f.Differences() {
		if !known[d.Key] {
			return fmt.Sprintf("sidecar %s: %s%s, which was not so before", d.Sidecar, d.Key, d.Lacks)
		}
	}
	return ""
}

// settled records the differences of a mesh that is at rest.
func (f *Fleet) settled(differences []convergence.Difference) {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	f.known, f.Pods.unmet = map[convergence.Key]bool{}, len(differences) > 0
	for _, d := range differences {
		f.known[d.Key] = true
	}
}

// Settled returns what AwaitSettled last returned.
func (f *Fleet) Settled() record.EndedBy {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	if f.Pods.unmet {
		return record.EndedByQuiescent
	}
	return record.EndedByConverged
}

// ExpectAnew lets the mesh differ from what is expected by other resources than when it was last at rest: another
// control plane serves it, or other pods.
func (f *Fleet) ExpectAnew() {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	f.known = nil
}

// Unconverged counts the sidecars that have not converged.
func (f *Fleet) Unconverged() (n int) {
	for _, t := range f.trackers() {
		counts := t.Counts()
		n += counts.Sidecars - counts.Converged
	}
	return n
}

// Differences returns the resources by which sidecars differ from what is expected of them, sorted by type and name.
func (f *Fleet) Differences() []convergence.Difference {
	found := map[convergence.Key]convergence.Difference{}
	for _, t := range f.trackers() {
		for _, d := range t.Differences() {
			if before, ok := found[d.Key]; ok {
				before.Sidecars += d.Sidecars
				d = before
			}
			found[d.Key] = d
		}
	}
	var all []convergence.Difference
	for _, key := range slices.SortedFunc(maps.Keys(found), convergence.Key.Compare) {
		all = append(all, found[key])
	}
	return all
}
