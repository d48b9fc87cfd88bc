package diff

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"scaler.mesh/scaler/pkg/record"
)

// typeOf returns the message of a type.
func typeOf(t *testing.T, kind string) protoreflect.MessageType {
	t.Helper()
	types, err := workloadTypes()
	if err != nil || types[messages[kind]] == nil {
		t.Fatalf("%s has no message: %v", kind, err)
	}
	return types[messages[kind]]
}

// ofZtunnels returns what two ztunnels hold: two pods of a workload and their service, and a policy. The number is of the run: names,
// addresses and nodes of pods differ by it.
func ofZtunnels(t *testing.T, run int, service, policy string) *record.Configuration {
	t.Helper()
	c := new(record.Configuration)
	add := func(kind, name, text string) {
		m := typeOf(t, kind).New().Interface()
		if err := protojson.Unmarshal([]byte(text), m); err != nil {
			t.Fatalf("%s: %s", text, err)
		}
		encoded, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		c.Resources = append(c.Resources, record.HeldResource{Type: kind, Name: name, Message: encoded})
	}
	address := func(text string) string {
		return base64.StdEncoding.EncodeToString(netip.MustParseAddr(text).AsSlice())
	}
	vip := fmt.Sprintf("10.96.%d.1", run)
	for i := range 2 {
		name, ip := fmt.Sprintf("cart-%d%d", run, i), fmt.Sprintf("10.0.%d.%d", run, i+1)
		c.Objects = append(c.Objects, record.AddressedObject{Kind: "Pod", Namespace: "shop", Name: name, Workload: "cart", Addresses: []string{ip}})
		add(addressType, "Kubernetes//Pod/shop/"+name, fmt.Sprintf(`{"workload": {"uid": "Kubernetes//Pod/shop/%s", "name": %q, "namespace": "shop", "addresses": [%q], "node": "node-%d", "workloadName": "cart",
			"services": {"shop/cart.shop.svc.cluster.local": {"ports": [{"servicePort": 80, "targetPort": 8080}]}}}}`, name, name, address(ip), run+i))
	}
	c.Objects = append(c.Objects, record.AddressedObject{Kind: "Service", Namespace: "shop", Name: "cart", Addresses: []string{vip}})
	add(addressType, "shop/cart.shop.svc.cluster.local", fmt.Sprintf(`{"service": {"name": "cart", "namespace": "shop", "hostname": "cart.shop.svc.cluster.local",
		"addresses": [{"address": %q}], "ports": [{"servicePort": 80, "targetPort": 8080}]%s}}`, address(vip), service))
	if policy != "" {
		add(authorizationType, "shop/cart", policy)
	}
	add(workloadType, "Kubernetes//Pod/shop/other", fmt.Sprintf(`{"name": "other", "status": %d}`, run/2)) // which a sidecar may have missed
	for i := range 2 {
		by := record.HeldBy{Namespace: "istio-system", Workload: "ztunnel", Pod: fmt.Sprintf("ztunnel-%d%d", run, i), Kind: record.OfZtunnel}
		for at := range c.Resources {
			by.Resources = append(by.Resources, at)
		}
		c.Sidecars = append(c.Sidecars, by)
	}
	return c
}

// Workloads, services and policies of ztunnels are compared field by field; what the cluster of a run chooses is no difference.
func TestZtunnels(t *testing.T) {
	const waypoint = `, "waypoint": {"hostname": {"namespace": "shop", "hostname": "waypoint.shop.svc.cluster.local"}, "hboneMtlsPort": 15008}`
	const allow, deny = `{"name": "cart", "namespace": "shop", "action": "ALLOW"}`, `{"name": "cart", "namespace": "shop", "action": "DENY"}`
	for name, c := range map[string]struct {
		service, before, after string
		keep                   []string
		want                   string // the groups
	}{
		"another run":      {"", allow, allow, nil, ""},
		"a waypoint":       {waypoint, "", "", nil, "workloads Address service service.waypoint added"},
		"a policy denies":  {"", allow, deny, nil, "policy-check Authorization policy action added"},
		"a policy is new":  {"", "", allow, nil, "policy-check Authorization policy  added"},
		"a policy is gone": {"", allow, "", nil, "policy-check Authorization policy  removed"},
		"peers are kept":   {"", "", "", []string{peers}, "workloads Workload workload status added"},
		"nodes are kept":   {"", "", "", []string{nodes}, "workloads Address workload workload.node changed; workloads Address workload workload.node changed"},
	} {
		r, err := Compare(ofZtunnels(t, 1, "", c.before), ofZtunnels(t, 3, c.service, c.after), Options{KeepNoise: c.keep})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, g := range r.Groups {
			got = append(got, strings.Join([]string{string(g.Effect), g.Type, g.Class, g.Path, string(g.Op)}, " "))
		}
		if strings.Join(got, "; ") != c.want || r.Ztunnels != 2 || r.Sidecars != 2 || r.Opaque != nil {
			t.Errorf("%s: %q, %d ztunnels, not known: %v; want %q", name, got, r.Ztunnels, r.Opaque, c.want)
		}
		if c.want != "" && (!strings.HasPrefix(r.outcome(), "2 of 2 proxies change, in ") || !strings.HasSuffix(r.outcome(), "Of these 2, 2 are ztunnels.")) {
			t.Errorf("%s: %s", name, r.outcome())
		}
	}
}

// The embedded types are those that are named here, and the lists and fields with a meaning of their own are fields of them.
func TestWorkloadTypes(t *testing.T) {
	for _, kind := range []string{addressType, workloadType, authorizationType} {
		typeOf(t, kind)
	}
	fields := map[protoreflect.FullName]bool{}
	types, _ := workloadTypes()
	for _, m := range types {
		for i := range m.Descriptor().Fields().Len() {
			fields[m.Descriptor().Fields().Get(i).FullName()] = true
		}
	}
	named := []protoreflect.FullName{chosenAnew}
	for name := range addressFields {
		named = append(named, name)
	}
	for name := range unordered {
		if strings.HasPrefix(name, "istio.") {
			named = append(named, protoreflect.FullName(name))
		}
	}
	for _, name := range slices.Sorted(slices.Values(named)) {
		if !fields[name] {
			t.Errorf("there is no field %s", name)
		}
	}
}
