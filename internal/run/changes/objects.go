package changes

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"

	"scaler.mesh/scaler/pkg/scenario"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// changedServices bounds over how many services the changes are spread.
const changedServices = 10

// annotation is set by a change of metadata.
const annotation = "scaler.mesh/change"

// object is an object that is changed again and again.
type object struct {
	at        func(version int) *unstructured.Unstructured // as it is at a version
	concerned func() []string                              // ids of sidecars
	creation  func() []string                              // ids of sidecars that its creation concerns; nil = as concerned
	kept      bool                                         // it is part of the mesh, and neither created nor deleted
	own       bool                                         // so it is, and its first version is written
}

// objects returns the objects that are changed; nil and the reason if the control plane has
// none of the kind.
func (p *phase) objects() ([]object, string) {
	services, why := p.suitable()
	var all []object
	switch p.Load.Kind {
	case scenario.EndpointChange:
		for i, service := range services {
			all = append(all, p.endpointObject(i, p.Mesh.Services[service], p.listing(service)))
		}
	case scenario.MetadataChange:
		for _, service := range services {
			all = append(all, metadataObject(p.listing(service)))
		}
	case scenario.RouteChange, scenario.RouteMetadataChange, scenario.PolicyChange, scenario.MeshWideChange:
		if p.Adapter.Probes == nil {
			return nil, "no change of it carries a marker that can be followed"
		}
		if p.Load.Kind == scenario.MeshWideChange {
			if p.Adapter.Nodes != nil && !p.Adapter.Mixed(p.Mesh) {
				return nil, "a change of the whole mesh is one of sidecars, of which there are none"
			}
			services = []int{0}
		}
		if p.Adapter.Unprobed != nil {
			if services = p.probed(services); len(services) == 0 {
				return nil, p.Adapter.Unprobed(probeKinds[p.Load.Kind])
			}
		}
		for i, service := range services {
			if made, _ := p.Adapter.Probes.Probe(probeKinds[p.Load.Kind], p.Mesh, p.Knobs, service, marker(i, 0)); made == nil {
				return nil, fmt.Sprintf("it has no change of the kind %s", p.Load.Kind)
			}
			if p.Load.Kind == scenario.RouteMetadataChange {
				all = append(all, p.annotatedObject(i, service))
				continue
			}
			all = append(all, p.probeObject(i, service))
		}
	}
	if len(all) == 0 {
		return nil, why
	}
	return all, ""
}

// suitable returns services, those that some sidecar is configured to call before the others, as a change of the others may concern
// nobody, and those with several pods before the others. Where there is none it returns why.
func (p *phase) suitable() (some []int, why string) {
	var called, single, others []int
	why = "no service has pods of the mesh"
	for i, s := range p.Mesh.Services {
		if s.Pods == 0 || s.Outside || len(s.Listings()) == 0 {
			continue
		}
		l := p.listing(i)
		if by := p.distributed(l); by != "" {
			why = fmt.Sprintf("%s sends connections to Service %s/%s, as to all others with sidecars, to endpoints of some localities, and that of a change has no locality", by, l.Namespace, l.Service)
			continue
		}
		switch known := len(p.Fleet.Tracker().Subscribers(l.String())) > topology.Value(p.Mesh.Profile.Gateways); { // which know every service
		case known && s.Pods > 1:
			called = append(called, i)
		case known:
			single = append(single, i)
		default:
			others = append(others, i)
		}
	}
	for _, some = range [][]int{called, single, others} {
		if len(some) > 0 {
			break
		}
	}
	some = onceEach(some, p.listing)
	return some[:min(len(some), changedServices)], why
}

// onceEach leaves one service of those that one Service lists, as versions of a workload: the endpoints of two changes in it have
// the same addresses, of which a control plane takes one, and a second annotation would be another version of the first.
func onceEach(services []int, listing func(int) topology.Listing) (some []int) {
	taken := map[topology.Listing]bool{}
	for _, i := range services {
		l := listing(i)
		l.Port = ""
		if !taken[l] {
			some = append(some, i)
		}
		taken[l] = true
	}
	return some
}

// distributed returns the part of the mesh by which not every sidecar that knows a Service holds the endpoint of a change; "" = there is none.
func (p *phase) distributed(l topology.Listing) string {
	if p.Load.Kind != scenario.EndpointChange || p.Adapter.Distributed == nil {
		return ""
	}
	return p.Adapter.Distributed(l)
}

// listing returns the port of a Service that lists the pods of a service: the first that sidecars compare, or else the first one.
func (p *phase) listing(service int) topology.Listing {
	all := p.Mesh.Services[service].Listings()
	for _, l := range all {
		if len(p.Fleet.Tracker().Subscribers(l.String())) > 0 {
			return l
		}
	}
	return all[0]
}

// probed returns the services of a captured mesh that have an object of the kind: of those given, or else any.
func (p *phase) probed(services []int) []int {
	able := func(i int) bool {
		made, _ := p.Adapter.Probes.Probe(probeKinds[p.Load.Kind], p.Mesh, p.Knobs, i, "")
		return made != nil
	}
	var some []int
	for _, i := range services {
		if able(i) {
			some = append(some, i)
		}
	}
	if len(some) > 0 {
		return some
	}
	for i := range p.Mesh.Services {
		if len(some) < changedServices && able(i) {
			some = append(some, i)
		}
	}
	return some
}

// probeKinds are the kinds that the control plane's adapter makes.
var probeKinds = map[scenario.ChangeKind]controlplane.ProbeKind{
	scenario.RouteChange: controlplane.RouteProbe, scenario.RouteMetadataChange: controlplane.RouteProbe, scenario.PolicyChange: controlplane.PolicyProbe, scenario.MeshWideChange: controlplane.MeshProbe,
}

// probeObject returns an object of the adapter, whose versions are markers.
func (p *phase) probeObject(index, service int) object {
	first, concerned := p.Adapter.Probes.Probe(probeKinds[p.Load.Kind], p.Mesh, p.Knobs, service, marker(index, 0))
	var names []string
	for _, i := range concerned {
		names = append(names, p.Mesh.Services[i].Name)
	}
	return object{
		at: func(version int) *unstructured.Unstructured {
			made, _ := p.Adapter.Probes.Probe(probeKinds[p.Load.Kind], p.Mesh, p.Knobs, service, marker(index, version))
			kwok.SetRun(made, p.Label)
			return made
		},
		concerned: func() []string { return p.Fleet.Followers(probeKinds[p.Load.Kind], service, names) },
		own:       first.GetLabels()[kwok.ProfileLabel] != "",
	}
}

// annotatedObject returns an object of the adapter of which an annotation has the version, and nothing
// else changes.
func (p *phase) annotatedObject(index, service int) object {
	of := p.probeObject(index, service)
	return object{
		at: func(version int) *unstructured.Unstructured {
			made := of.at(0)
			made.SetAnnotations(map[string]string{annotation: strconv.Itoa(version)})
			return made
		},
		concerned: func() []string { return nil },
		creation:  of.concerned,
		own:       of.own,
	}
}

// endpointObject returns an EndpointSlice of a service in addition to its own, with one
// endpoint whose address holds the version. No pod is behind it, no controller changes it
// and, as the address is of a range for benchmarks, no traffic reaches anybody.
func (p *phase) endpointObject(index int, s topology.Service, l topology.Listing) object {
	name := l.String()
	return object{
		at: func(version int) *unstructured.Unstructured {
			addr := address(index, version)
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "discovery.k8s.io/v1",
				"kind":       "EndpointSlice",
				"metadata": map[string]any{
					"namespace": s.Namespace, "name": "scaler-change-" + s.Name,
					"labels": map[string]any{kwok.RunLabel: p.Label, "kubernetes.io/service-name": l.Service, "endpointslice.kubernetes.io/managed-by": "scaler.mesh"},
				},
				"addressType": "IPv4",
				"endpoints": []any{map[string]any{
					"addresses": []any{addr.Addr().String()}, "conditions": map[string]any{"ready": true, "serving": true, "terminating": false},
				}},
				"ports": []any{map[string]any{"name": l.Port, "port": int64(addr.Port()), "protocol": "TCP"}},
			}}
		},
		concerned: func() []string {
			t := p.Fleet.Tracker()
			// Next to proxies of nodes, sidecars and waypoints know the endpoints by their own name.
			return append(t.Subscribers(name), t.Subscribers(controlplane.Listed(name))...)
		},
	}
}

// metadataObject returns a Service of the mesh, of which an annotation changes.
func metadataObject(l topology.Listing) object {
	return object{
		at: func(version int) *unstructured.Unstructured {
			var value any // the annotation is not there
			if version > 0 {
				value = strconv.Itoa(version)
			}
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Service",
				"metadata": map[string]any{"namespace": l.Namespace, "name": l.Service, "annotations": map[string]any{annotation: value}},
			}}
		},
		concerned: func() []string { return nil },
		kept:      true,
	}
}

// create makes an object as it is at first. What a try before made is fine.
func (p *phase) create(ctx context.Context, o object) error {
	if o.kept {
		return nil
	}
	if o.own {
		return p.write(ctx, o, 0)
	}
	made := o.at(0)
	err := workload.Persist(ctx, func(ctx context.Context, _ int) error {
		_, err := p.API.Resource(made).Create(ctx, made, metav1.CreateOptions{})
		return err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s %s: %w", made.GetKind(), made.GetName(), err)
	}
	return nil
}

// write makes an object as it is at a version.
func (p *phase) write(ctx context.Context, o object, version int) error {
	changed := o.at(version)
	patch, err := json.Marshal(changed.Object)
	if err != nil {
		return fmt.Errorf("changing %s %s: %w", changed.GetKind(), changed.GetName(), err)
	}
	err = workload.Persist(ctx, func(ctx context.Context, _ int) error {
		_, err := p.API.Resource(changed).Patch(ctx, changed.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("changing %s %s: %w", changed.GetKind(), changed.GetName(), err)
	}
	return nil
}

// remove takes an object away, or a mesh's own back to what it was.
func (p *phase) remove(ctx context.Context, o object) error {
	if o.kept || o.own {
		return p.write(ctx, o, 0)
	}
	made := o.at(0)
	err := workload.Persist(ctx, func(ctx context.Context, _ int) error {
		return p.API.Resource(made).Delete(ctx, made.GetName(), metav1.DeleteOptions{})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %s: %w", made.GetKind(), made.GetName(), err)
	}
	return nil
}

// benchmarks is the address range for benchmarks (RFC 2544). It has more addresses than
// a phase has changes.
var benchmarks = netip.MustParsePrefix("198.18.0.0/15")

// firstPort is the port of the first object's endpoint.
const firstPort = 1024

// address returns the endpoint of an object at a version.
func address(index, version int) netip.AddrPort {
	base := benchmarks.Addr().As4()
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(base[:])+uint32(version))
	return netip.AddrPortFrom(netip.AddrFrom4(b), uint16(firstPort+index))
}

// marker returns the marker of an object at a version.
func marker(index, version int) string { return xdsprobe.Marker(fmt.Sprintf("c%dv%d", index, version)) }

var markers = regexp.MustCompile(`^scaler-marker-c([0-9]+)v([0-9]+)-$`)

// versions returns the versions in a content.
func versions(c *convergence.Content) []convergence.Version {
	var all []convergence.Version
	for addr := range c.Endpoints {
		if benchmarks.Contains(addr.Addr()) && addr.Port() >= firstPort {
			base, b := benchmarks.Addr().As4(), addr.Addr().As4()
			all = append(all, convergence.Version{
				Object: int(addr.Port()) - firstPort, Number: int(binary.BigEndian.Uint32(b[:]) - binary.BigEndian.Uint32(base[:])),
			})
		}
	}
	for _, m := range c.Markers {
		parts := markers.FindStringSubmatch(m)
		if parts == nil {
			continue
		}
		index, err1 := strconv.Atoi(parts[1])
		version, err2 := strconv.Atoi(parts[2])
		if err1 == nil && err2 == nil {
			all = append(all, convergence.Version{Object: index, Number: version})
		}
	}
	return all
}
