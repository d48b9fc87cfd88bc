package diff

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	internalv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/bootstrap/internal_listener/v3"
	filterstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"scaler.mesh/scaler/pkg/record"
)

// Rejected is the name of a rejected resource in --fail-on. It is not one of the effects of a difference.
const Rejected = "rejected"

// Accepts validates an encoded bootstrap configuration by an Envoy. refusal is its error message; "" = it accepts the configuration.
type Accepts func(ctx context.Context, bootstrap []byte) (refusal string, err error)

// Validation is the result of validating the resources of both sides by an Envoy. Equal resources count once.
type Validation struct {
	Envoy string `json:"envoy"` // its version
	// Whole resources were validated as sidecars hold them, Cut ones without the filters that Istio's Envoy alone has,
	// and NotValidated ones not at all: they are of a type that no bootstrap configuration can have, they configure a Wasm
	// module, or the bound on runs was reached.
	Whole        int `json:"whole"`
	Cut          int `json:"cut"`
	NotValidated int `json:"notValidated"`
	// Rejected are the resources that it rejects, those of the second side first.
	Rejected []Rejection `json:"rejected,omitempty"`
}

// Rejection is a resource that an Envoy rejects.
type Rejection struct {
	Type   string `json:"type"`
	Name   string `json:"name"`
	Reason string `json:"reason"` // Envoy's error message
	From   int    `json:"from"`   // sidecars of either side that hold it
	To     int    `json:"to"`
}

// On returns how many rejected resources sidecars of the second side hold; 0 without a validation.
func (v *Validation) On() (resources int) {
	if v == nil {
		return 0
	}
	for _, r := range v.Rejected {
		if r.To > 0 {
			resources++
		}
	}
	return resources
}

const (
	batchSize = 200 // resources that one run of Envoy validates
	maxRuns   = 300 // runs that look for those that are refused
)

// candidate is a resource to be validated.
type candidate struct {
	kind, name string
	whole, cut proto.Message // cut is nil where nothing is to be cut
	sidecars   [2]int
}

// Validate validates all resources of both sides, in batches. A batch that is rejected is divided in halves, until the
// rejected resources are found.
func Validate(ctx context.Context, from, to *record.Configuration, version string, accepts Accepts) (*Validation, error) {
	v := &Validation{Envoy: version}
	var all []*candidate
	for _, c := range candidatesOf(from, to) {
		if c.whole == nil {
			v.NotValidated++
			continue
		}
		all = append(all, c)
	}
	w := &validator{accepts: accepts, result: v}
	if err := w.probe(ctx, all); err != nil {
		return nil, err
	}
	for batch := range slices.Chunk(all, batchSize) {
		if err := w.batch(ctx, batch); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(v.Rejected, func(a, b Rejection) int {
		return cmp.Or(cmp.Compare(min(b.To, 1), min(a.To, 1)), strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name), cmp.Compare(b.To, a.To))
	})
	return v, nil
}

// candidatesOf returns the resources of both sides, each content once, in their order.
func candidatesOf(sides ...*record.Configuration) (all []*candidate) {
	type key struct{ kind, name, message string }
	index := map[key]*candidate{}
	for side, c := range sides {
		held := make([]int, len(c.Resources))
		for _, s := range c.Sidecars {
			for _, r := range s.Resources {
				held[r]++
			}
		}
		for i, r := range c.Resources {
			k := key{r.Type, r.Name, string(r.Message)}
			if index[k] == nil {
				index[k] = newCandidate(r)
				all = append(all, index[k])
			}
			index[k].sidecars[side] += held[i]
		}
	}
	return all
}

// newCandidate decodes a resource. One that a bootstrap configuration cannot have is without messages, and so is an
// extension that is a Wasm module: the sidecar's agent loads the module and gives Envoy the path of a file in place of what
// istiod sent (MaybeConvertWasmExtensionConfig in pkg/wasm/convert.go of istio.io/istio).
func newCandidate(r record.HeldResource) *candidate {
	c := &candidate{kind: r.Type, name: r.Name}
	name, known := messages[r.Type]
	if !known || slices.Contains([]string{"SDS", addressType, workloadType, authorizationType}, r.Type) {
		return c
	}
	m, err := decode(name, r.Message)
	if err != nil {
		return c
	}
	if e, ok := m.Interface().(*corev3.TypedExtensionConfig); ok && slices.Contains(wasms, configured(e.TypedConfig)) {
		return c
	}
	c.whole = m.Interface()
	cut := proto.Clone(c.whole)
	if withoutIstio(cut.ProtoReflect()) {
		c.cut = cut
	}
	return c
}

type validator struct {
	accepts Accepts
	result  *Validation
	cut     bool // this Envoy does not have Istio's filters
	runs    int
}

// probe finds out whether this Envoy has Istio's filters: it has if it accepts a resource with one, and has not if it accepts
// one without them alone. A resource that it refuses in both forms says nothing.
func (w *validator) probe(ctx context.Context, all []*candidate) error {
	for i, c := range all {
		if c.cut == nil {
			continue
		}
		for _, w.cut = range []bool{false, true} {
			if refusal, err := w.run(ctx, all[i:i+1]); err != nil || refusal == "" {
				return err
			}
		}
		if w.runs >= maxRuns/2 {
			break
		}
	}
	return nil
}

func (w *validator) run(ctx context.Context, batch []*candidate) (refusal string, err error) {
	w.runs++
	config, err := bootstrapOf(batch, w.cut)
	if err != nil {
		return "", err
	}
	return w.accepts(ctx, config)
}

// batch validates resources, and divides them where one is refused.
func (w *validator) batch(ctx context.Context, batch []*candidate) error {
	if w.runs >= maxRuns {
		w.result.NotValidated += len(batch)
		return nil
	}
	refusal, err := w.run(ctx, batch)
	if err != nil {
		return err
	}
	if refusal != "" && len(batch) > 1 {
		half := len(batch) / 2
		if err := w.batch(ctx, batch[:half]); err != nil {
			return err
		}
		return w.batch(ctx, batch[half:])
	}
	for _, c := range batch {
		if w.cut && c.cut != nil {
			w.result.Cut++
		} else {
			w.result.Whole++
		}
	}
	if refusal != "" {
		c := batch[0]
		w.result.Rejected = append(w.result.Rejected, Rejection{c.kind, c.name, refusal, c.sidecars[0], c.sidecars[1]})
	}
	return nil
}

// istios are the beginnings of the names of messages that configure filters which Istio's Envoy alone has, and of what
// makes objects of a connection's state.
var istios = []string{"istio.", "io.istio.", "stats.", "envoy.tcp.metadataexchange."}

// wasms configure filters that are Wasm modules.
var wasms = []string{"envoy.extensions.filters.http.wasm.v3.Wasm", "envoy.extensions.filters.network.wasm.v3.Wasm"}

func ofIstio(name string) bool {
	return slices.ContainsFunc(istios, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// configured returns the name of the message in an Any. A TypedStruct names the message that it is of.
func configured(a *anypb.Any) string {
	name := string(a.MessageName())
	if name == "udpa.type.v1.TypedStruct" || name == "xds.type.v3.TypedStruct" {
		if m, err := a.UnmarshalNew(); err == nil {
			url := m.ProtoReflect().Get(m.ProtoReflect().Descriptor().Fields().ByName("type_url")).String()
			name = url[strings.LastIndex(url, "/")+1:]
		}
	}
	return name
}

// istioAlone reports whether an element of a list is an extension, as a filter is, that Istio's Envoy alone has, or an object of a
// connection's state that it alone can make.
func istioAlone(m protoreflect.Message) bool {
	if v, ok := m.Interface().(*filterstatev3.FilterStateValue); ok {
		return ofIstio(cmp.Or(v.FactoryKey, v.GetObjectKey()))
	}
	if fd := m.Descriptor().Fields().ByName("typed_config"); fd != nil && fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Any" && m.Has(fd) {
		a, _ := m.Get(fd).Message().Interface().(*anypb.Any)
		return ofIstio(configured(a))
	}
	return false
}

// withoutIstio takes the filters out of a message that Istio's Envoy alone has, and reports whether there were any.
func withoutIstio(m protoreflect.Message) (cut bool) {
	err := protorange.Range(m, func(p protopath.Values) error {
		switch all := p.Index(-1).Value.Interface().(type) {
		case protoreflect.Map:
			all.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				if of, ok := value.Interface().(protoreflect.Message); ok {
					if a, ok := of.Interface().(*anypb.Any); ok && ofIstio(configured(a)) {
						all.Clear(key)
						cut = true
					}
				}
				return true
			})
		case protoreflect.List:
			kept := 0
			for i := range all.Len() {
				value := all.Get(i)
				if of, ok := value.Interface().(protoreflect.Message); ok && istioAlone(of) {
					cut = true
					continue
				}
				all.Set(kept, value)
				kept++
			}
			all.Truncate(kept)
		}
		return nil
	})
	return cut && err == nil
}

// serving is the cluster of the control plane, from which everything that is discovered comes.
const serving = "xds-grpc"

// bootstrapOf returns a configuration with resources in it, encoded: clusters and listeners as they are, endpoints in a
// cluster, routes and filters in a listener. They have names and addresses of their own, since several may have the same.
func bootstrapOf(batch []*candidate, cut bool) ([]byte, error) {
	static := &bootstrapv3.Bootstrap_StaticResources{}
	named := map[string]bool{serving: true, "sds-grpc": true, "zipkin": true, "agent": true, "prometheus_stats": true}
	for i, c := range batch {
		m := c.whole
		if cut && c.cut != nil {
			m = c.cut
		}
		m = proto.Clone(m)
		if err := errors.Join(prepare(m.ProtoReflect(), named), addTo(static, m, i)); err != nil {
			return nil, fmt.Errorf("validating %s %s: %w", c.kind, c.name, err)
		}
	}
	for name := range named {
		static.Clusters = append(static.Clusters, &clusterv3.Cluster{
			Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
			LoadAssignment: &endpointv3.ClusterLoadAssignment{ClusterName: name},
		})
	}
	internal, err := anypb.New(&internalv3.InternalListener{}) // which Istio's bootstrap has, for tunnels
	if err != nil {
		return nil, err
	}
	return proto.Marshal(&bootstrapv3.Bootstrap{
		BootstrapExtensions: []*corev3.TypedExtensionConfig{{Name: "envoy.bootstrap.internal_listener", TypedConfig: internal}},
		Node:                &corev3.Node{Id: "scaler", Cluster: "scaler"}, StaticResources: static,
		DynamicResources: &bootstrapv3.Bootstrap_DynamicResources{AdsConfig: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: serving}}}},
		}},
	})
}

// prepare adds the clusters that have to be there when a configuration is loaded: those of services that Envoy itself calls.
// Those that routes name need not be there, which they would where routes are a part of a listener.
func prepare(m protoreflect.Message, named map[string]bool) error {
	return protorange.Range(m, func(p protopath.Values) error {
		m, ok := p.Index(-1).Value.Interface().(protoreflect.Message)
		if !ok {
			return nil
		}
		switch of := m.Interface().(type) {
		case *corev3.GrpcService_EnvoyGrpc:
			named[of.ClusterName] = true
		case *corev3.HttpUri:
			named[of.GetCluster()] = true
		case *routev3.RouteConfiguration:
			of.ValidateClusters = wrapperspb.Bool(false)
		}
		if fd := m.Descriptor().Fields().ByName("collector_cluster"); fd != nil && m.Get(fd).String() != "" {
			named[m.Get(fd).String()] = true
		}
		return nil
	})
}

// addTo puts a resource into a configuration, as number i.
func addTo(static *bootstrapv3.Bootstrap_StaticResources, m proto.Message, i int) error {
	name := fmt.Sprintf("resource-%d", i)
	var manager *hcmv3.HttpConnectionManager // of a listener for what is no listener or cluster
	switch m := m.(type) {
	case *clusterv3.Cluster:
		if m.GetType() == clusterv3.Cluster_EDS && m.EdsClusterConfig != nil && m.EdsClusterConfig.ServiceName == "" {
			m.EdsClusterConfig.ServiceName = m.Name
		}
		m.Name = name
		static.Clusters = append(static.Clusters, m)
	case *endpointv3.ClusterLoadAssignment:
		static.Clusters = append(static.Clusters, &clusterv3.Cluster{Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}, LoadAssignment: m})
	case *listenerv3.Listener:
		m.Name = name
		if a := m.GetAddress().GetSocketAddress(); a != nil {
			a.Address = ownAddress(i, a.Address)
		}
		for k, of := range m.AdditionalAddresses {
			if a := of.GetAddress().GetSocketAddress(); a != nil {
				a.Address = ownAddress(batchSize*(k+1)+i, a.Address)
			}
		}
		static.Listeners = append(static.Listeners, m)
	case *routev3.RouteConfiguration:
		manager = &hcmv3.HttpConnectionManager{StatPrefix: name, RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: m}}
	case *corev3.TypedExtensionConfig:
		manager = &hcmv3.HttpConnectionManager{
			StatPrefix: name, RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{Name: name}},
			HttpFilters: []*hcmv3.HttpFilter{{Name: m.Name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: m.TypedConfig}}},
		}
	}
	if manager == nil {
		return nil
	}
	l, err := listenerOf(name, i, manager)
	if err != nil {
		return err
	}
	static.Listeners = append(static.Listeners, l)
	return nil
}

// ownAddress returns an address that no other resource of a batch has, of the family of another.
func ownAddress(i int, of string) string {
	if a, err := netip.ParseAddr(of); err == nil && a.Is6() {
		var own [16]byte
		own[0] = 0xfd
		binary.BigEndian.PutUint32(own[12:], uint32(i+1))
		return netip.AddrFrom16(own).String()
	}
	var own [4]byte
	binary.BigEndian.PutUint32(own[:], uint32(127<<24+1<<16+i+1))
	return netip.AddrFrom4(own).String()
}

// listenerOf returns a listener with a connection manager, which has a router.
func listenerOf(name string, i int, manager *hcmv3.HttpConnectionManager) (*listenerv3.Listener, error) {
	router, err := anypb.New(&routerv3.Router{})
	if err != nil {
		return nil, err
	}
	manager.HttpFilters = append(manager.HttpFilters, &hcmv3.HttpFilter{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}})
	filter, err := anypb.New(manager)
	if err != nil {
		return nil, err
	}
	return &listenerv3.Listener{
		Name: name,
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: ownAddress(i, ""), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
		}}},
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "envoy.filters.network.http_connection_manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: filter},
		}}}},
	}, nil
}
