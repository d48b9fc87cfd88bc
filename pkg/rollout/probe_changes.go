package rollout

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
)

// probeHealth takes pods' readiness away and gives it back: one change each. It
// calls half once, when half of the changes have been followed.
func (p *prober) probeHealth(ctx context.Context, half func()) error {
	for n := range p.spec.Probes {
		if n == p.spec.Probes/2 {
			half()
		}
		service := p.of(n / 2)
		target, ok := p.fleet.podOf(p.mesh.Services[service].Name, n/2/len(p.services))
		if !ok {
			return fmt.Errorf("service %s has no pod", p.mesh.Services[service].Name)
		}
		value, health := "unready", convergence.Unhealthy
		if n%2 == 1 {
			value, health = kwok.SidecarReady, convergence.Healthy
		}
		_, err := p.followEndpoint(ctx, record.EndpointHealth, service,
			func(ctx context.Context) error { return p.ReportSidecar(ctx, target.namespace, target.name, value) },
			func(c endpointChange) bool { return c.addr.Addr() == target.addr && c.health == health })
		if err != nil {
			return err
		}
	}
	if p.spec.Probes%2 == 1 { // the last one was taken away
		service := p.of((p.spec.Probes - 1) / 2)
		if target, ok := p.fleet.podOf(p.mesh.Services[service].Name, (p.spec.Probes-1)/2/len(p.services)); ok {
			if err := p.ReportSidecar(ctx, target.namespace, target.name, kwok.SidecarReady); err != nil {
				return err
			}
		}
	}
	return p.fleet.awaitConverged(ctx)
}

// probeMembers gives services one pod more and takes one away again. The new
// pod's sidecar is not reported before the new endpoint has reached everybody:
// its turning healthy would overtake its coming.
func (p *prober) probeMembers(ctx context.Context) error {
	for n := range p.spec.Probes {
		service := p.of(n)
		for _, change := range []struct {
			kind record.ChangeKind
			more int
		}{{record.EndpointAdd, 1}, {record.EndpointRemove, 0}} {
			replicas := p.mesh.Services[service].Pods + change.more
			p.fleet.hold()
			_, err := p.followEndpoint(ctx, change.kind, service,
				func(ctx context.Context) error { return p.SetReplicas(ctx, p.mesh.Services[service], replicas) },
				func(endpointChange) bool { return true })
			p.fleet.release()
			if err != nil {
				return err
			}
			p.fleet.expect(change.more*2 - 1)
			if err := p.fleet.awaitConverged(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// probeObjects changes the control plane's objects. Of each object the creation
// and the deletion are not counted: they may be heavier than a change.
func (p *prober) probeObjects(ctx context.Context, kind controlplane.ProbeKind) (err error) {
	if p.adapter.Probes == nil {
		p.warn(record.Warning{About: "latencies.push." + string(kind), Reason: record.ReasonNotSupported, Component: p.controlPlaneName(), Detail: "no change of it carries a marker that can be followed"})
		return nil
	}
	made := map[int]*unstructured.Unstructured{}
	defer func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
		defer cancel()
		for _, object := range made {
			if deleteErr := p.Resource(object).Delete(down, object.GetName(), metav1.DeleteOptions{}); deleteErr != nil && !apierrors.IsNotFound(deleteErr) && err == nil {
				err = deleteErr
			}
		}
		if err == nil {
			err = p.quiet(ctx)
		}
	}()
	for n := range p.spec.Probes {
		service := p.of(n)
		if made[service] == nil {
			created, err := p.probeCreate(ctx, kind, service)
			if created != nil {
				made[service] = created // to be deleted, whatever came of it
			}
			if err != nil {
				return err
			}
		}
		object, concerned := p.probeObject(kind, service)
		object.SetResourceVersion(made[service].GetResourceVersion())
		marker := p.lastMarker
		f := p.fleet.tracker.Follow(convergence.Change{Marker: marker}, p.fleet.simulatedOf(p.names(concerned)))
		begin := time.Now()
		updated, err := p.Resource(object).Update(ctx, object, metav1.UpdateOptions{})
		if err != nil {
			f.Stop()
			return fmt.Errorf("changing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		written := time.Now()
		p.written.Record(written.Sub(begin))
		made[service] = updated
		if err := p.await(ctx, record.ChangeKind(kind), f, written, func() string { return "" }); err != nil {
			return err
		}
	}
	return nil
}

// probeCreate creates the object of a service and returns when it has reached
// all it concerns, or the limit has passed, and the control plane is at rest.
func (p *prober) probeCreate(ctx context.Context, kind controlplane.ProbeKind, service int) (*unstructured.Unstructured, error) {
	object, concerned := p.probeObject(kind, service)
	f := p.fleet.tracker.Follow(convergence.Change{Marker: p.lastMarker}, p.fleet.simulatedOf(p.names(concerned)))
	defer f.Stop()
	created, err := p.Resource(object).Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if err := awaitReach(ctx, f); err != nil {
		return created, err
	}
	return created, p.quiet(ctx)
}

// probeObject is a probe's object with a new marker, and whom it concerns.
func (p *prober) probeObject(kind controlplane.ProbeKind, service int) (*unstructured.Unstructured, []int) {
	p.lastMarker = p.marker()
	object, concerned := p.adapter.Probes.Probe(kind, p.mesh, p.spec.Knobs(), service, p.lastMarker)
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[kwok.RunLabel] = p.runLabel()
	object.SetLabels(labels)
	return object, concerned
}

func (p *prober) names(services []int) []string {
	var names []string
	for _, i := range services {
		names = append(names, p.mesh.Services[i].Name)
	}
	return names
}

// quiet waits until the control plane has sent nothing for a moment.
func (p *prober) quiet(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	begin := time.Now()
	for {
		idle := time.Since(begin)
		if last := p.fleet.lastResponse(); last.After(begin) {
			idle = time.Since(last)
		}
		if idle >= probeQuiet {
			return nil
		}
		if err := experiment.WaitUntil(limited, time.Now().Add(probeQuiet-idle)); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			p.warn(record.Warning{About: "latencies.push", Reason: record.ReasonNotQuietBetween, Values: map[string]float64{"limitSeconds": probeTimeout.Seconds()}})
			return nil
		}
	}
}

// subscribe tells of every change of an endpoint from now on, until unsubscribe.
func (f *fleet) subscribe() <-chan endpointChange {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscriber = make(chan endpointChange, 4*f.wanted+64)
	return f.subscriber
}

func (f *fleet) unsubscribe() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscriber = nil
}

// tell tells the subscriber what changed in a service's endpoints. The caller
// holds mu.
func (f *fleet) tell(service string, is convergence.Endpoints, seen time.Time) {
	was := f.listed[service]
	f.listed[service] = is
	if f.subscriber == nil {
		return
	}
	var changes []endpointChange
	for addr, health := range is {
		if before, listed := was[addr]; !listed {
			changes = append(changes, endpointChange{service, addr, record.EndpointAdd, health, seen})
		} else if before != health {
			changes = append(changes, endpointChange{service, addr, record.EndpointHealth, health, seen})
		}
	}
	for addr := range was {
		if _, listed := is[addr]; !listed {
			changes = append(changes, endpointChange{service, addr, record.EndpointRemove, 0, seen})
		}
	}
	for _, c := range changes {
		select {
		case f.subscriber <- c:
		default: // nobody has read for thousands of changes: the prober is gone
		}
	}
}

// hold keeps sidecars from being reported to their pods, until release.
func (f *fleet) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = true
}

func (f *fleet) release() {
	f.mu.Lock()
	f.held = false
	ids := slices.Collect(maps.Keys(f.pods))
	f.mu.Unlock()
	for _, id := range ids {
		f.reportWhenDone(id)
	}
}

// expect changes how many pods the mesh is to have.
func (f *fleet) expect(more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted += more
	f.healthy += more
}

// podsOf are the ids of the pods of these services that have a sidecar.
func (f *fleet) podsOf(services []string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id, p := range f.pods {
		if !p.gone && p.stop != nil && slices.Contains(services, p.service) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// simulatedOf are those of podsOf whose sidecars are simulated: changes are
// followed to these.
func (f *fleet) simulatedOf(services []string) []string {
	ids := f.podsOf(services)
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(ids, func(id string) bool { return f.pods[id].real != nil })
}

// podOf is the n-th pod of a service, by name and over again.
func (f *fleet) podOf(service string, n int) (*pod, bool) {
	ids := f.podsOf([]string{service})
	if len(ids) == 0 {
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pods[ids[n%len(ids)]], true
}

// podAt is the id of the pod that had an address last, "" if there was none.
func (f *fleet) podAt(addr netip.Addr) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var at *pod
	for _, p := range f.pods {
		if p.addr == addr && (at == nil || p.times.Seen.After(at.times.Seen)) {
			at = p
		}
	}
	if at == nil {
		return ""
	}
	return at.id
}
