package run

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// keepConfiguration writes the resources of every sidecar into the record, if that is
// asked for.
func (r *run) keepConfiguration(ctx context.Context) (steps.Undo, error) {
	if !r.spec.KeepConfiguration {
		return nil, nil
	}
	r.progress.say("keeping what every sidecar holds")
	pods, err := r.api.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	services, err := r.api.Client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing services: %w", err)
	}
	held := configurationOf(pods.Items, services.Items, r.spec.mesh(), r.workers.local.Contents())
	held.Unasked = r.spec.unasked()
	if r.spec.Captured != nil {
		assigned, err := r.adapter.Captured.Assigned(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the addresses that the control plane assigned: %w", err)
		}
		held.Objects = append(held.Objects, assigned...)
	}
	return nil, r.journal.Writer().Configuration(held)
}

// unasked are the proxies of a captured mesh that a replay does not have.
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

// configurationOf returns the resources that proxies hold, by their pods. A resource that several hold is in it once.
func configurationOf(pods []corev1.Pod, services []corev1.Service, mesh topology.Mesh, contents map[string][]*proxy.Resource) *record.Configuration {
	c := new(record.Configuration)
	gateways := map[string]bool{}
	for _, s := range mesh.Services {
		gateways[s.Name] = s.Gateway
	}
	index := map[*proxy.Resource]int{}
	for _, p := range pods {
		workload := p.Labels[kwok.ServiceLabel]
		object := record.AddressedObject{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, Workload: workload}
		for _, ip := range p.Status.PodIPs {
			object.Addresses = append(object.Addresses, ip.IP)
		}
		c.Objects = append(c.Objects, object)
		all, runs := contents[p.Namespace+"/"+p.Name]
		if !runs {
			continue
		}
		by := record.HeldBy{Namespace: p.Namespace, Workload: workload, Pod: p.Name, Gateway: gateways[workload], Resources: make([]int, 0, len(all))}
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
