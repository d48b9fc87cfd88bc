package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"

	"scaler.mesh/scaler/pkg/convergence"
)

// Static is a mesh that no cluster holds. It is what the instrument is
// calibrated against: no API server, no watch and no pace are between a change
// and its push.
type Static struct {
	Mesh      Mesh
	Endpoints map[string][]Endpoint // by Cluster; those of a service port that is not named here are none
}

// EndpointChange is the content of POST /endpoint, by which a Static's endpoint
// is added, changed or removed. The answer does not wait for the push.
type EndpointChange struct {
	Cluster string             `json:"cluster"` // as Cluster names it
	Addr    netip.AddrPort     `json:"addr"`
	Health  convergence.Health `json:"health"`
	Absent  bool               `json:"absent,omitempty"` // it is removed; Health means nothing
}

// static serves a Static.
type static struct {
	mesh      Static
	cache     *cache
	count     *counters
	changes   chan EndpointChange
	endpoints map[string]map[netip.AddrPort]convergence.Health // only run's goroutine
}

// changesAhead is the number of changes that can wait for earlier ones to be pushed.
const changesAhead = 64

func newStatic(mesh Static, c *cache, count *counters) *static {
	return &static{
		mesh: mesh, cache: c, count: count,
		changes:   make(chan EndpointChange, changesAhead),
		endpoints: map[string]map[netip.AddrPort]convergence.Health{},
	}
}

// run serves the mesh and its changes until ctx is done. synced is called when
// the mesh is served.
func (s *static) run(ctx context.Context, synced func()) error {
	st, err := build(s.mesh.Mesh)
	if err != nil {
		return err
	}
	assignments := set{}
	for _, service := range s.mesh.Mesh.Services {
		for _, p := range service.Ports {
			name := Cluster(service.Namespace, service.Name, p.Name)
			s.endpoints[name] = map[netip.AddrPort]convergence.Health{}
			for _, e := range s.mesh.Endpoints[name] {
				s.endpoints[name][e.Addr] = e.Health
			}
			if assignments[name], err = s.assignment(name); err != nil {
				return err
			}
		}
	}
	s.cache.update(assignments, st)
	synced()
	for {
		select {
		case <-ctx.Done():
			return nil
		case change := <-s.changes:
			if err := s.apply(change); err != nil {
				return err
			}
		}
	}
}

// apply makes one change. One of a service port that is not there changes
// nothing.
func (s *static) apply(change EndpointChange) error {
	endpoints := s.endpoints[change.Cluster]
	switch {
	case endpoints == nil:
		return nil
	case change.Absent:
		delete(endpoints, change.Addr)
	default:
		endpoints[change.Addr] = change.Health
	}
	r, err := s.assignment(change.Cluster)
	if err != nil {
		return err
	}
	s.cache.update(set{change.Cluster: r}, nil)
	s.count.updates.Inc()
	return nil
}

func (s *static) assignment(name string) (*resource, error) {
	var all []Endpoint
	for addr, health := range s.endpoints[name] {
		all = append(all, Endpoint{addr, health})
	}
	return newResource(convergence.EDS, assignment(name, all))
}

// ServeHTTP takes an EndpointChange.
func (s *static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var change EndpointChange
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&change); err != nil {
		http.Error(w, fmt.Sprintf("reading the change: %v", err), http.StatusBadRequest)
		return
	}
	select {
	case s.changes <- change:
	default:
		http.Error(w, "too many changes wait already", http.StatusTooManyRequests)
	}
}
