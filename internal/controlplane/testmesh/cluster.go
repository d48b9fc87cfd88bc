package testmesh

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// cluster reads the mesh from Services, EndpointSlices and ConfigMaps.
type cluster struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	configs  corelisters.ConfigMapLister
}

// follow calls set with the mesh, at first when all of it has been read and then after
// changes, until ctx ends. selector selects Services and EndpointSlices; "" = all.
func follow(ctx context.Context, client kubernetes.Interface, selector string, set func(*mesh) error) error {
	labelled := func(selector string) informers.SharedInformerFactory {
		return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
	}
	selected, configured := labelled(selector), labelled(configLabel)
	c := &cluster{
		services: selected.Core().V1().Services().Lister(),
		slices:   selected.Discovery().V1().EndpointSlices().Lister(),
		configs:  configured.Core().V1().ConfigMaps().Lister(),
	}
	changed := make(chan struct{}, 1)
	notify := func(any) {
		select {
		case changed <- struct{}{}:
		default: // there is a notice already
		}
	}
	handler := toolscache.ResourceEventHandlerFuncs{AddFunc: notify, UpdateFunc: func(_, o any) { notify(o) }, DeleteFunc: notify}
	var synced []toolscache.InformerSynced
	for _, informer := range []toolscache.SharedIndexInformer{
		selected.Core().V1().Services().Informer(), selected.Discovery().V1().EndpointSlices().Informer(), configured.Core().V1().ConfigMaps().Informer(),
	} {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("watching the cluster: %w", err)
		}
		synced = append(synced, registration.HasSynced)
	}
	selected.Start(ctx.Done())
	configured.Start(ctx.Done())
	defer func() { selected.Shutdown(); configured.Shutdown() }()
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil // ctx has ended
	}
	notify(nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		m, err := c.mesh()
		if err == nil {
			err = set(m)
		}
		if err != nil {
			return err
		}
	}
}

// mesh reads the mesh as it is now.
func (c *cluster) mesh() (*mesh, error) {
	all := labels.Everything()
	services, err1 := c.services.List(all)
	endpointSlices, err2 := c.slices.List(all)
	configs, err3 := c.configs.List(all)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("reading the cluster: %w", err)
	}
	of := map[string][]*discoveryv1.EndpointSlice{} // by "namespace/service"
	for _, s := range endpointSlices {
		key := s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]
		of[key] = append(of[key], s)
	}
	m := &mesh{}
	for _, s := range services {
		read := service{namespace: s.Namespace, name: s.Name}
		for _, p := range s.Spec.Ports {
			read.ports = append(read.ports, port{
				name: p.Name, number: uint32(p.Port), target: uint32(p.TargetPort.IntVal), endpoints: ready(of[s.Namespace+"/"+s.Name], p.Name),
			})
		}
		m.services = append(m.services, read)
	}
	m.sort()
	for _, object := range configs {
		m.configure(object)
	}
	return m, nil
}

// configure takes one of the mesh's own settings.
func (m *mesh) configure(object *corev1.ConfigMap) {
	kind := object.Labels[configLabel]
	if kind == meshConfig {
		m.isolated = object.Data["isolation"] == isolationNamespace
		return
	}
	for i := range m.services {
		s := &m.services[i]
		if s.namespace != object.Namespace || s.name != object.Data["service"] {
			continue
		}
		switch kind {
		case routeConfig:
			s.route = object.Data["marker"]
		case policyConfig:
			s.policy = object.Data["marker"]
		}
	}
}

// ready are the endpoints of one port that are ready, each once and sorted.
func ready(of []*discoveryv1.EndpointSlice, name string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, s := range of {
		for _, p := range s.Ports {
			if p.Port == nil || p.Name == nil || *p.Name != name {
				continue
			}
			for _, e := range s.Endpoints {
				if e.Conditions.Ready != nil && !*e.Conditions.Ready {
					continue
				}
				for _, a := range e.Addresses {
					if addr, err := netip.ParseAddr(a); err == nil {
						all = append(all, netip.AddrPortFrom(addr, uint16(*p.Port)))
					}
				}
			}
		}
	}
	slices.SortFunc(all, netip.AddrPort.Compare)
	return slices.Compact(all)
}
