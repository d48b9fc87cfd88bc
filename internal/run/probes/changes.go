package probes

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// probeHealth takes pods' readiness away and gives it back: one change each. It
// calls half once, when half of the changes have been followed.
func (p *prober) probeHealth(ctx context.Context, half func()) error {
	for n := range p.Changes {
		if n == p.Changes/2 {
			half()
		}
		service := p.of(n / 2)
		target, ok := p.Fleet.Pods.Nth(p.Mesh.Services[service].Name, n/2/len(p.services))
		if !ok {
			return fmt.Errorf("service %s has no pod", p.Mesh.Services[service].Name)
		}
		value, ready := "unready", n%2 == 1
		if ready {
			value = kwok.SidecarReady
		}
		change := p.readiness(ready)
		err := p.followEndpoint(ctx, record.EndpointHealth, service,
			func(ctx context.Context) error { return p.API.ReportSidecar(ctx, target.Namespace, target.Name, value) },
			func(c fleet.EndpointChange) bool {
				return c.Addr.Addr() == target.Address && c.Kind == change.Kind && c.Health == change.Health
			})
		if err != nil {
			return err
		}
	}
	if p.Changes%2 == 1 { // the last one was taken away
		service := p.of((p.Changes - 1) / 2)
		if target, ok := p.Fleet.Pods.Nth(p.Mesh.Services[service].Name, (p.Changes-1)/2/len(p.services)); ok {
			if err := p.API.ReportSidecar(ctx, target.Namespace, target.Name, kwok.SidecarReady); err != nil {
				return err
			}
		}
	}
	_, err := p.Fleet.AwaitSettled(ctx)
	return err
}

// readiness returns the change of an endpoint, without address and service,
// when its pod turns ready or not: its health changes or, if the control plane sends
// only endpoints that are ready, it is added or removed.
func (p *prober) readiness(ready bool) fleet.EndpointChange {
	unready, sent := p.Adapter.EndpointHealth(false, false, false)
	healthy, _ := p.Adapter.EndpointHealth(true, true, false)
	switch {
	case sent && ready:
		return fleet.EndpointChange{Kind: record.EndpointHealth, Health: healthy}
	case sent:
		return fleet.EndpointChange{Kind: record.EndpointHealth, Health: unready}
	case ready:
		return fleet.EndpointChange{Kind: record.EndpointAdd, Health: healthy}
	default:
		return fleet.EndpointChange{Kind: record.EndpointRemove}
	}
}

// probeMembers gives services one pod more and takes one away again. The new
// pod's sidecar is not reported before the new endpoint has reached everybody:
// its turning healthy would overtake its coming. Where the control plane sends only
// endpoints that are ready, the new one comes when its pod is.
func (p *prober) probeMembers(ctx context.Context) error {
	for n := range p.Changes {
		service := p.of(n)
		for _, change := range []struct {
			kind record.ChangeKind
			more int
		}{{record.EndpointAdd, 1}, {record.EndpointRemove, 0}} {
			replicas := p.Mesh.Services[service].Pods + change.more
			if p.readiness(true).Kind == record.EndpointHealth {
				p.Fleet.Readiness.Hold()
			}
			err := p.followEndpoint(ctx, change.kind, service,
				func(ctx context.Context) error { return p.API.SetReplicas(ctx, p.Mesh.Services[service], replicas) },
				func(c fleet.EndpointChange) bool { return c.Kind == change.kind })
			p.Fleet.Readiness.Release()
			if err != nil {
				return err
			}
			p.Fleet.Expect(change.more*2-1, len(p.Mesh.Services[service].Listings()))
			if _, err := p.Fleet.AwaitSettled(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// probeObjects changes the control plane's objects. Of each object the creation
// and the deletion are not counted: they may be heavier than a change.
func (p *prober) probeObjects(ctx context.Context, kind controlplane.ProbeKind) (err error) {
	if p.Adapter.Probes == nil {
		p.Journal.Warn(record.Warning{
			About: "latencies.push." + string(kind), Reason: record.ReasonNotSupported, Component: p.Adapter.Server.Describe().Name,
			Detail: "no change of it carries a marker that can be followed",
		})
		return nil
	}
	services := p.probed(kind)
	if len(services) == 0 {
		if p.Adapter.Unprobed != nil {
			p.Journal.Warn(record.Warning{
				About: "latencies.push." + string(kind), Reason: record.ReasonNotSupported, Component: "the captured mesh", Detail: p.Adapter.Unprobed(kind),
			})
		}
		return nil // else its data plane has none of this kind
	}
	made := map[int]*unstructured.Unstructured{}
	defer func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Slowdown.Of(probeTimeout))
		defer cancel()
		for _, object := range made {
			if object.GetLabels()[kwok.ProfileLabel] != "" {
				continue // it is the mesh's own
			}
			if deleteErr := p.API.Resource(object).Delete(down, object.GetName(), metav1.DeleteOptions{}); deleteErr != nil && !apierrors.IsNotFound(deleteErr) && err == nil {
				err = deleteErr
			}
		}
		if err == nil {
			err = p.quiet(ctx)
		}
	}()
	if err := p.create(ctx, kind, services[:min(len(services), p.Changes)], made); err != nil {
		return err
	}
	for n := range p.Changes {
		service := services[n%len(services)]
		object, change, concerned := p.probeObject(kind, service)
		object.SetResourceVersion(made[service].GetResourceVersion())
		f := p.Fleet.Tracker().Follow(change, concerned)
		updated, begin, err := p.update(ctx, object)
		if err != nil {
			f.Stop()
			return fmt.Errorf("changing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		written := time.Now()
		p.written.Record(written.Sub(begin))
		made[service] = updated
		if err := p.await(ctx, record.ChangeKind(kind), f, begun{since: written}, func() string { return "" }); err != nil {
			return err
		}
		if kind == controlplane.PolicyProbe {
			// A policy may be pushed to more sidecars than it concerns; the next one
			// must not be merged with what is still sent of this one.
			if err := p.quiet(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// update writes an object that is there, and returns when the request was sent that wrote it.
// The control plane may have written the object's status since.
func (p *prober) update(ctx context.Context, object *unstructured.Unstructured) (updated *unstructured.Unstructured, begin time.Time, err error) {
	api := p.API.Resource(object)
	for {
		begin = time.Now()
		updated, err = api.Update(ctx, object, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return updated, begin, err
		}
		there, err := api.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return nil, begin, err
		}
		object.SetResourceVersion(there.GetResourceVersion())
	}
}

// create creates the objects of services, unless they are the mesh's own, and adds them to made. It returns when
// each has reached all it concerns, or the limit has passed, and the control plane is at rest: once for all
// of them, because none of this is counted.
func (p *prober) create(ctx context.Context, kind controlplane.ProbeKind, services []int, made map[int]*unstructured.Unstructured) error {
	var following []*convergence.Following
	defer func() {
		for _, f := range following {
			f.Stop()
		}
	}()
	for _, service := range services {
		object, change, concerned := p.probeObject(kind, service)
		if object.GetLabels()[kwok.ProfileLabel] != "" {
			there, err := p.API.Resource(object).Get(ctx, object.GetName(), metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
			}
			made[service] = there
			continue
		}
		following = append(following, p.Fleet.Tracker().Follow(change, concerned))
		created, err := p.API.Resource(object).Create(ctx, object, metav1.CreateOptions{})
		if err != nil {
			if !apierrors.IsAlreadyExists(err) {
				// It may have been made although the answer did not come in time, as when an
				// interrupt came before it: it is to be deleted.
				made[service] = object
			}
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		made[service] = created
	}
	if len(following) == 0 {
		return nil
	}
	for _, f := range following {
		if err := p.awaitReach(ctx, f); err != nil {
			return err
		}
	}
	return p.quiet(ctx)
}

// probeObject returns a probe's object with a new marker, the change that writing it is, and the sidecars that it concerns.
func (p *prober) probeObject(kind controlplane.ProbeKind, service int) (object *unstructured.Unstructured, change convergence.Change, concerned []string) {
	change.Marker = p.marker()
	object, services := p.Adapter.Probes.Probe(kind, p.Mesh, p.Knobs, service, change.Marker)
	kwok.SetRun(object, p.Label)
	var names []string
	for _, i := range services {
		names = append(names, p.Mesh.Services[i].Name)
	}
	return object, change, p.Fleet.Followers(kind, service, names)
}

// quiet waits until the control plane has sent nothing for a moment: for twice its debounce, so that a change which it has seen is pushed.
func (p *prober) quiet(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, p.Slowdown.Of(probeTimeout))
	defer cancel()
	begin, quiet := time.Now(), p.Slowdown.Of(cmp.Or(2*p.Debounce, probeQuiet))
	for {
		idle := time.Since(begin)
		if last := p.Fleet.Pods.LastResponse(); last.After(begin) {
			idle = time.Since(last)
		}
		if idle >= quiet {
			return nil
		}
		if err := task.WaitUntil(limited, time.Now().Add(quiet-idle)); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			p.Journal.Warn(record.Warning{About: "latencies.push", Reason: record.ReasonNotQuietBetween, Values: map[string]float64{"limitSeconds": probeTimeout.Seconds()}})
			return nil
		}
	}
}
