package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"scaler.mesh/scaler/internal/informer"
	"scaler.mesh/scaler/pkg/convergence"
)

// byService is an index of EndpointSlices.
const byService = "service"

// source turns what the cluster says into the cache's resources.
type source struct {
	client   kubernetes.Interface
	selector string // of Services and EndpointSlices
	pace     time.Duration
	cache    *cache
	count    *counters

	services, slices, configs toolscache.SharedIndexInformer

	mu        sync.Mutex
	structure bool                // anything but endpoints changed
	stale     map[string]struct{} // workloads whose endpoints may have changed
	wake      chan struct{}

	// only run's goroutine
	assigned map[string][]string // names of load assignments, by workload
}

func newSource(o Options, c *cache, count *counters) *source {
	return &source{
		client: o.Client, selector: o.Selector, pace: o.Pace, cache: c, count: count,
		stale: map[string]struct{}{}, wake: make(chan struct{}, 1), assigned: map[string][]string{},
	}
}

// run follows the cluster until ctx is done. synced is called when all that was
// there at the start is served.
func (s *source) run(ctx context.Context, synced func()) error {
	s.services = informer.New(s.client, s.client.CoreV1().Services(metav1.NamespaceAll), &corev1.Service{}, s.selector)
	s.slices = informer.New(s.client, s.client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll), &discoveryv1.EndpointSlice{}, s.selector)
	s.configs = informer.New(s.client, s.client.CoreV1().ConfigMaps(metav1.NamespaceAll), &corev1.ConfigMap{}, ConfigLabel)
	all := []toolscache.SharedIndexInformer{s.services, s.slices, s.configs}
	for _, each := range all {
		if err := each.SetTransform(strip); err != nil {
			return fmt.Errorf("watching the cluster: %w", err)
		}
	}
	if err := s.slices.AddIndexers(toolscache.Indexers{byService: func(object any) ([]string, error) {
		return []string{sliceWorkload(object)}, nil
	}}); err != nil {
		return fmt.Errorf("indexing endpoint slices: %w", err)
	}
	services, err1 := s.services.AddEventHandler(handler(func(object any) { s.touch(true, key(object)) }))
	endpoints, err2 := s.slices.AddEventHandler(handler(func(object any) { s.touch(false, sliceWorkload(object)) }))
	configs, err3 := s.configs.AddEventHandler(handler(func(any) { s.touch(true, "") }))
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("watching the cluster: %w", err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, each := range all {
		running.Go(func() { each.RunWithContext(ctx) })
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), services.HasSynced, endpoints.HasSynced, configs.HasSynced) {
		return nil // ctx is done
	}
	s.touch(true, "")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		}
		pushes, err := s.apply()
		if err != nil {
			return err
		}
		if synced != nil {
			synced()
			synced = nil
		}
		if wait := time.Duration(pushes) * s.pace; wait > 0 {
			pause := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				pause.Stop()
				return nil
			case <-pause.C:
			}
		}
	}
}

// touch notes that something changed. workload may be "".
func (s *source) touch(structure bool, workload string) {
	s.mu.Lock()
	s.structure = s.structure || structure
	if workload != "" {
		s.stale[workload] = struct{}{}
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// apply takes over what changed, and returns how many pushes that caused.
func (s *source) apply() (pushes int, err error) {
	s.mu.Lock()
	restructure, stale := s.structure, s.stale
	s.structure, s.stale = false, map[string]struct{}{}
	s.mu.Unlock()

	assignments := set{}
	for workload := range stale {
		if err := s.assign(workload, assignments); err != nil {
			return 0, err
		}
	}
	var st *structure
	if restructure {
		if st, err = build(s.mesh()); err != nil {
			return 0, err
		}
	}
	s.count.updates.Inc()
	return s.cache.update(assignments, st), nil
}

// assign puts the load assignments of one workload's service into all, nil for
// those that are no more.
func (s *source) assign(workload string, all set) error {
	for _, name := range s.assigned[workload] {
		all[name] = nil
	}
	delete(s.assigned, workload)
	object, exists, err := s.services.GetStore().GetByKey(workload)
	if err != nil {
		return fmt.Errorf("looking up service %s: %w", workload, err)
	}
	if !exists {
		return nil
	}
	slicesOf, err := s.slices.GetIndexer().ByIndex(byService, workload)
	if err != nil {
		return fmt.Errorf("looking up the endpoint slices of %s: %w", workload, err)
	}
	service := object.(*corev1.Service)
	for _, port := range service.Spec.Ports {
		name := Cluster(service.Namespace, service.Name, port.Name)
		r, err := newResource(convergence.EDS, assignment(name, endpoints(slicesOf, port.Name)))
		if err != nil {
			return err
		}
		all[name] = r
		s.assigned[workload] = append(s.assigned[workload], name)
	}
	return nil
}

// endpoints merges the endpoints of one port of all EndpointSlices of a
// service. An address that several slices list counts once.
func endpoints(slicesOf []any, port string) []Endpoint {
	found := map[netip.AddrPort]convergence.Health{}
	for _, object := range slicesOf {
		slice := object.(*discoveryv1.EndpointSlice)
		for _, p := range slice.Ports {
			if value(p.Name) != port || p.Port == nil {
				continue
			}
			for _, e := range slice.Endpoints {
				// Conditions that are left out mean what the API says they mean.
				ready := e.Conditions.Ready == nil || *e.Conditions.Ready
				terminating := value(e.Conditions.Terminating)
				serving := ready
				if e.Conditions.Serving != nil {
					serving = *e.Conditions.Serving
				}
				health, ok := Health(ready, serving, terminating)
				for _, a := range e.Addresses {
					if addr, err := netip.ParseAddr(a); err == nil && ok {
						found[netip.AddrPortFrom(addr, uint16(*p.Port))] = health
					}
				}
			}
		}
	}
	all := make([]Endpoint, 0, len(found))
	for addr, health := range found {
		all = append(all, Endpoint{addr, health})
	}
	return all
}

// mesh reads everything but endpoints.
func (s *source) mesh() Mesh {
	m := Mesh{Hosts: map[string]Host{}}
	for _, object := range s.services.GetStore().List() {
		service := object.(*corev1.Service)
		described := Service{Namespace: service.Namespace, Name: service.Name}
		for _, p := range service.Spec.Ports {
			target := uint32(p.TargetPort.IntVal)
			if target == 0 { // left out, or a name, which only pods can resolve
				target = uint32(p.Port)
			}
			described.Ports = append(described.Ports, Port{Name: p.Name, Number: uint32(p.Port), Target: target})
		}
		m.Services = append(m.Services, described)
	}
	m.Sort()

	configs := s.configs.GetStore().List()
	slices.SortFunc(configs, func(a, b any) int { return strings.Compare(key(a), key(b)) })
	for _, object := range configs {
		configure(&m, object.(*corev1.ConfigMap))
	}
	return m
}

// configure applies one ConfigMap.
func configure(m *Mesh, config *corev1.ConfigMap) {
	of := func(service string) *Service {
		return cmp.Or(m.service(Workload(config.Namespace, service)), &Service{}) // it may come later
	}
	switch config.Labels[ConfigLabel] {
	case MeshConfig:
		m.Settings = Settings{
			StrictMTLS:    config.Data["mtls"] == "strict",
			DeclaredScope: config.Data["scope"] == "declared",
			DeclaredAuthz: config.Data["authz"] == "declared",
		}
	case WorkloadConfig:
		s := of(config.Name)
		s.Account, s.Calls = config.Data["account"], strings.Fields(config.Data["calls"])
	case HostConfig:
		if h, err := parseHost(config.Data["host"]); err == nil { // what is none has no listeners
			m.Hosts[HostWorkload(config.Namespace, config.Name)] = h
		}
	case RouteConfig:
		s := of(config.Data["service"])
		s.Routes = append(s.Routes, config.Data["name"])
	case PolicyConfig:
		if config.Data["service"] == EveryService {
			for i := range m.Services {
				m.Services[i].Policies = append(m.Services[i].Policies, config.Data["name"])
			}
			return
		}
		s := of(config.Data["service"])
		s.Policies = append(s.Policies, config.Data["name"])
	}
}

// strip drops what is large and not needed.
func strip(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
		accessor.SetAnnotations(nil)
	}
	return object, nil
}

// handler reports every event of an object.
func handler(touch func(object any)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    touch,
		UpdateFunc: func(_, object any) { touch(object) },
		DeleteFunc: touch,
	}
}

// key is "namespace/name"; an object whose deletion was found out late too has
// one.
func key(object any) string {
	k, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return ""
	}
	return k
}

// sliceWorkload returns the workload of an EndpointSlice's service.
func sliceWorkload(object any) string {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return ""
	}
	return Workload(slice.Namespace, slice.Labels[discoveryv1.LabelServiceName])
}

// value returns the value that p points to, or the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
