package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// pushTime bounds the time in which a control plane prepares a push, without having counted or sent anything of it: it
// computes the state of the whole mesh first.
const pushTime = 5 * time.Second

// servers are the programs of the control planes of a run that serve its mesh now. The zero value are the first control plane's
// alone, once it has been set.
type servers struct {
	mu          sync.Mutex
	first, next func() []controlplane.Endpoints // nil = it does not serve
}

// set states which programs of the first control plane, or of the one that an upgrade leads to, serve from now on; nil = none.
func (s *servers) set(next bool, programs func() []controlplane.Endpoints) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next {
		s.next = programs
	} else {
		s.first = programs
	}
}

// endpoints returns the endpoints of all servers that serve now.
func (s *servers) endpoints() (all []controlplane.Endpoints) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, programs := range []func() []controlplane.Endpoints{s.first, s.next} {
		if programs != nil {
			all = append(all, programs()...)
		}
	}
	return all
}

// debounce returns the longest time that one of them waits before it pushes a change.
func (s *servers) debounce() (most time.Duration) {
	for _, e := range s.endpoints() {
		if e.Sync != nil {
			most = max(most, e.Sync.Debounce)
		}
	}
	return most
}

// errNoServer says that no program of the control plane serves.
var errNoServer = errors.New("no program of the control plane serves")

// read reads how the proxies of all of them stand.
func (s *servers) read(ctx context.Context) (controlplane.SyncState, error) {
	var all controlplane.SyncState
	serving := s.endpoints()
	if len(serving) == 0 {
		return all, errNoServer
	}
	for _, e := range serving {
		if e.Sync == nil {
			return all, errors.New("a program of the control plane does not report which proxies are behind")
		}
		one, err := e.Sync.Read(ctx)
		if err != nil {
			return all, err
		}
		all.Add(one)
	}
	return all, nil
}

// rest returns the reader of whether the control plane of the run is at rest. It is nil where the control plane does not report
// which proxies are behind; where nodes have proxies and the mesh is synthetic; where a synthetic mesh is in an existing cluster, whose control plane is not asked without need;
// and where the API server is to be gone while the mesh is rolled out: a control plane that has yet to watch again is silent, too.
func (r *run) rest() *fleet.Rest {
	if r.adapter.Server.Endpoints().Sync == nil || (r.adapter.Nodes != nil || r.spec.Existing != nil) && r.spec.Captured == nil {
		return nil
	}
	for _, f := range scenario.FaultsIn(r.spec.Load.Faults, scenario.PhaseRollout) {
		if f.Described().On == scenario.OnAPIServer {
			return nil
		}
	}
	r.servers.set(false, r.endpoints)
	return &fleet.Rest{Window: func() time.Duration { return r.servers.debounce() + r.spec.slowed(pushTime) }, Read: r.servers.read}
}

// explains returns the function that explains why sidecars hold other resources than expected; nil if there is none.
func (r *run) explains() func(convergence.Difference) string {
	if r.spec.Captured == nil || r.adapter.Captured == nil || r.adapter.Captured.Explain == nil {
		return nil
	}
	return func(d convergence.Difference) string { return r.adapter.Captured.Explain(&r.spec.Captured.Mesh, d) }
}
