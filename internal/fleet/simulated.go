package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// simulated is a pod with a simulated proxy. Members embed it, and replace what differs.
type simulated struct {
	*pod
	as  simulatedMember
	own bool // it requests a certificate of its own; else it counts as certified once it is connected

	anew bool // it takes the place of another in a mesh with proxies of nodes

	// guarded by Pods.mu
	worker     worker.Worker // that runs it; nil until it was started
	revision   *revision     // of the control plane that serves it; nil until it was started
	missed     bool          // its worker was lost, and it has no certificate since
	connection connection
}

// simulate makes a member of a pod with a simulated proxy. The caller holds Pods.mu.
func (p *pod) simulate(as simulatedMember, s *simulated, own bool) {
	*s = simulated{pod: p, as: as, own: own, anew: p.fleet.nodes.wanted > 0 && p.fleet.Pods.background.number > 0}
	p.member = as
	p.fleet.Pods.simulated[p.id] = s
}

// self returns the simulated proxy of a member.
func (s *simulated) self() *simulated { return s }

// start hands the proxy to a worker.
func (s *simulated) start(_ context.Context, object *corev1.Pod) {
	f := s.fleet
	s.revision = f.Revisions.of(object)
	spec, err := s.revision.adapter.Load().Proxies.Spec(object)
	if err != nil {
		f.Fail(fmt.Errorf("simulating the sidecar of pod %s: %w", s.id, err))
		return
	}
	controlplane.ProxyOptions{XDS: string(f.Variant), CertificateLifetime: f.Lifetime, Slowdown: f.Slowdown}.Apply(&spec)
	s.revision.tracker.Add(s.id, s.revision.scopes[s.service])
	if !s.own {
		s.revision.tracker.Certified(s.id, time.Now()) // it waits for none
	}
	w := f.Workers[s.order%len(f.Workers)]
	s.worker, s.stop = w, func() { w.Do(worker.Stop, s.id) }
	if err := w.Start(worker.Proxy{Spec: spec, Delay: f.delay(s.order, s.anew)}); err != nil {
		f.Fail(err)
	}
}

func (s *simulated) certified() time.Time {
	if s.own {
		return s.times.Certified
	}
	return s.times.Connected
}

func (s *simulated) leave() {
	if s.connection.away {
		s.connection.away = false
		s.fleet.Pods.away--
	}
	if s.revision != nil {
		s.revision.tracker.Remove(s.id)
	}
}

// stand returns whether the proxy is complete and converged. The caller holds Pods.mu.
func (s *simulated) stand() convergence.Stand {
	if s.revision == nil {
		return convergence.Stand{}
	}
	return s.revision.tracker.StandOf(s.id)
}

func (s *simulated) answered(proxy.Update) {} // the tracker has all that matters

func (s *simulated) complete(at time.Time) {
	var requested time.Time
	s.update(func() {
		setOnce(&s.times.Complete, at)
		requested = s.times.Requested
	})
	s.fleet.observe(s.latencies.CompleteConfiguration, measure.CompleteConfiguration, at.Sub(requested))
}

// certificate takes the end of a request for the pod's own certificate.
func (s *simulated) certificate(e proxy.Certificate, storm bool) {
	f := s.fleet
	var renewed, missed bool // it had one before; its worker was lost since
	s.update(func() {
		csr := &f.Pods.csr
		if !e.Sent.IsZero() {
			setOnce(&csr.first, e.Sent)
		}
		if e.Err != nil {
			return
		}
		missed, s.missed = s.missed, false
		renewed = !setOnce(&s.times.Certified, e.Verified)
		if !renewed && s.rollout {
			csr.issue(e.Verified)
		}
		f.Readiness.reportIfDue(s.pod)
	})
	if e.Err != nil {
		f.Event(record.CertificateFailed{Pod: s.id, Attempt: e.Attempt, Error: e.Err.Error()})
		return
	}
	if !unasked(e) && !missed {
		f.certificateTook(s.latencies, e, renewed && !storm, !renewed)
	}
	s.revision.tracker.Certified(s.id, e.Verified)
}

// unasked reports whether the control plane renewed a certificate by itself: there is no request to measure from.
func unasked(e proxy.Certificate) bool { return e.Err == nil && e.Sent.IsZero() }

func (s *simulated) renewable() []string {
	if s.times.Certified.IsZero() {
		return nil
	}
	return []string{certificateOf(s.id, "")}
}

// sidecarPod is a pod of the mesh with a simulated sidecar.
type sidecarPod struct{ simulated }

// newSidecarPod makes it of a pod of the mesh. The caller holds Pods.mu.
func newSidecarPod(p *pod) *sidecarPod {
	s := &sidecarPod{}
	p.simulate(s, &s.simulated, p.fleet.Driver.Proxy.Certificates != nil)
	p.fleet.Pods.sidecars[p.id] = s
	if !p.rollout {
		p.fleet.Pods.background.starts++
	}
	return s
}

func (p *sidecarPod) count(c *Counts) {
	if !p.times.Connected.IsZero() {
		c.Connected++
		c.Simulated++
	}
	c.add(p.stand())
}

func (p *sidecarPod) leave() {
	delete(p.fleet.Pods.sidecars, p.id)
	p.simulated.leave()
}

// sharedProxy is a simulated proxy that serves many pods. It is in a pod of its own, which is none of the mesh and
// in none of its figures.
type sharedProxy struct{ simulated }

func (p *sharedProxy) becameReady() {}

func (p *sharedProxy) complete(time.Time) {} // see answered

// answered takes the proxy as complete once it has all that it requested: the mesh may not even be there.
func (p *sharedProxy) answered(e proxy.Update) {
	if !e.Complete {
		return
	}
	p.update(func() { setOnce(&p.times.Complete, e.AckedAt) })
}

// Sidecars returns the ids of the pods of these services that have a simulated sidecar each.
func (f *Fleet) Sidecars(services []string) []string {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	var ids []string
	for id, p := range f.Pods.sidecars {
		if p.worker != nil && slices.Contains(services, p.service) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Followers returns the ids of the pods whose simulated proxies must receive a change of an object. The object is of a service, an index of the
// mesh; concerned are the names of the services that it concerns. A route reaches their Sidecars and the waypoints of the service, because
// proxies of nodes have no routes. A change of the whole mesh reaches the Sidecars, and a policy all that are Simulated.
func (f *Fleet) Followers(kind controlplane.ProbeKind, service int, concerned []string) []string {
	switch kind {
	case controlplane.RouteProbe:
		return append(f.Sidecars(concerned), f.WaypointsOf(service)...)
	case controlplane.MeshProbe:
		return f.Sidecars(concerned)
	default:
		return f.Simulated(concerned)
	}
}

// Simulated returns the ids of the pods to whose simulated proxies a change of these services is followed: their
// Sidecars, and the proxies of all nodes.
func (f *Fleet) Simulated(services []string) []string {
	ids := f.Sidecars(services)
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	for id, p := range f.nodes.proxies {
		if p.worker != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
