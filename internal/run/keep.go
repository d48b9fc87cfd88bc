package run

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// Keeping is the moment of a run of which the record keeps what proxies hold.
type Keeping int

// The moments.
const (
	KeepNothing Keeping = iota
	KeepSettled         // after settle, before anything is changed or broken
	KeepLast            // after all faults, once nothing is sent any more
)

// keepConfiguration returns a step that writes the resources of every proxy into the record, if that is asked for at this
// moment.
func (r *run) keepConfiguration(at Keeping) func(context.Context) error {
	return func(ctx context.Context) error {
		if r.spec.KeepConfiguration != at {
			return nil
		}
		if at == KeepLast && len(r.spec.Load.Faults) > 0 {
			if err := r.awaitQuiet(ctx); err != nil {
				return err
			}
			warnNotQuiet(r.fleet, r.journal)
		}
		return r.writeConfiguration(ctx)
	}
}

// awaitQuiet waits for the pushes that follow a fault after which the mesh has converged: endpoints that come back, and what
// a control plane that was started again finds out only then.
func (r *run) awaitQuiet(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, time.Duration(r.spec.Phases.ConvergeTimeout))
	defer cancel()
	if err := r.fleet.AwaitQuiet(limited); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil // what is not quiet at the limit has a warning
}

// warnNotQuiet warns if the control plane has sent something just now.
func warnNotQuiet(f *fleet.Fleet, j *journal.Journal) {
	if quiet, ago := f.Quiet(); !quiet {
		j.Warn(record.Warning{
			About: "controlPlane.steady", Reason: record.ReasonNotQuiet, Values: map[string]float64{"agoSeconds": ago.Seconds()},
		})
	}
}

// writeConfiguration writes the resources of every proxy into the record.
func (r *run) writeConfiguration(ctx context.Context) error {
	r.progress.say("keeping what every proxy holds")
	pods, err := r.api.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	services, err := r.api.Client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing services: %w", err)
	}
	held := r.dataplane().configurationOf(pods.Items, services.Items, r.workers.local.Contents())
	held.Unasked = r.spec.unasked()
	if r.spec.Captured != nil {
		assigned, err := r.adapter.Captured.Assigned(ctx)
		if err != nil {
			return fmt.Errorf("reading the addresses that the control plane assigned: %w", err)
		}
		held.Objects = append(held.Objects, assigned...)
	}
	return r.journal.Writer().Configuration(held)
}

// unasked returns the proxies of a captured mesh that a replay does not have.
func (s Spec) unasked() (all []record.UnaskedProxies) {
	if s.Captured == nil {
		return nil
	}
	pods := s.Captured.Mesh.Pods()
	for _, kind := range []struct {
		proxy capture.Proxy
		noun  string
	}{{capture.Ztunnel, "ztunnel"}, {capture.Waypoint, "waypoint"}, {capture.OtherRevision, "other revision's sidecar"}} {
		if n := pods[kind.proxy]; n > 0 {
			all = append(all, record.UnaskedProxies{Kind: kind.noun, Pods: n})
		}
	}
	return all
}

// owners returns what finds the workload of a pod, as [record.HeldBy] has it, and what its proxy is.
func (d dataplane) owners() func(*corev1.Pod) (workload string, kind record.ProxyKind) {
	kinds, waypoints := map[string]record.ProxyKind{}, map[string]string{}
	for _, s := range d.mesh.Services {
		if s.Gateway {
			kinds[s.Name] = record.OfGateway
		}
	}
	for _, w := range d.waypoints() {
		kinds[w.Label], waypoints[w.Label] = record.OfWaypoint, w.Name
	}
	return func(p *corev1.Pod) (string, record.ProxyKind) {
		label := p.Labels[kwok.ServiceLabel]
		if label == "" && p.Labels[kwok.RunLabel] != "" && d.adapter.Nodes != nil {
			return string(record.OfZtunnel), record.OfZtunnel
		}
		return cmp.Or(waypoints[label], label), kinds[label]
	}
}

// configurationOf returns the resources that proxies hold, by their pods. A resource that several hold is in it once.
func (d dataplane) configurationOf(pods []corev1.Pod, services []corev1.Service, contents map[string][]*proxy.Resource) *record.Configuration {
	c := new(record.Configuration)
	ownerOf := d.owners()
	index := map[*proxy.Resource]int{}
	for _, p := range pods {
		workload, kind := ownerOf(&p)
		object := record.AddressedObject{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, Workload: workload}
		for _, ip := range p.Status.PodIPs {
			object.Addresses = append(object.Addresses, ip.IP)
		}
		c.Objects = append(c.Objects, object)
		all, runs := contents[p.Namespace+"/"+p.Name]
		if !runs {
			continue
		}
		by := record.HeldBy{Namespace: p.Namespace, Workload: workload, Pod: p.Name, Kind: kind, Resources: make([]int, 0, len(all))}
		for _, one := range all {
			at, known := index[one]
			if !known {
				at = len(c.Resources)
				index[one] = at
				c.Resources = append(c.Resources, record.HeldResource{Type: one.Type.String(), Name: one.Name, Message: one.Message})
			}
			by.Resources = append(by.Resources, at)
		}
		c.Sidecars = append(c.Sidecars, by)
	}
	for _, s := range services {
		object := record.AddressedObject{Kind: "Service", Namespace: s.Namespace, Name: s.Name}
		for _, ip := range s.Spec.ClusterIPs {
			if ip != corev1.ClusterIPNone {
				object.Addresses = append(object.Addresses, ip)
			}
		}
		c.Objects = append(c.Objects, object)
	}
	return c
}
