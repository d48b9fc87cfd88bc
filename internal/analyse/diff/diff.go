// Package diff compares what the sidecars of two runs hold: every resource as a message, field by field, after
// what is not configuration was removed by rules that have names. Equal differences of many sidecars are one
// group, with what a running Envoy does about it.
//
// It is pure: the configurations of two records go in, groups come out. Who makes the runs, and where records are, is
// left to others.
package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"scaler.mesh/scaler/pkg/record"
)

// Options state how two sides are compared.
type Options struct {
	KeepNoise []string // names of Rules that are off
}

// Result has the differences between two sides.
type Result struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"` // Diff

	From Side `json:"from"`
	To   Side `json:"to"`
	// Sidecars is the number of proxies that were compared, each with one of the same workload on the other side. Gateways, Ztunnels and
	// Waypoints count those of them that are no sidecars, and Changed those that differ.
	Sidecars  int `json:"sidecars"`
	Gateways  int `json:"gateways"`
	Ztunnels  int `json:"ztunnels,omitempty"`
	Waypoints int `json:"waypoints,omitempty"`
	Changed   int `json:"changed"`
	// Effects are the effects that some difference has, the largest consequence first.
	Effects []EffectCount `json:"effects,omitempty"`
	Groups  []Group       `json:"groups"`
	// OnlyFrom and OnlyTo are sidecars without a counterpart.
	OnlyFrom []Workload `json:"onlyFrom,omitempty"`
	OnlyTo   []Workload `json:"onlyTo,omitempty"`
	// Rules list what was removed before the comparison.
	Rules []Rule `json:"rules"`
	// Opaque are the types that are not known, which are compared as bytes.
	Opaque []string `json:"opaque,omitempty"`
	// Validation is the result of validating the resources of both sides by an Envoy; nil without one.
	Validation *Validation `json:"validation,omitempty"`
}

// Side is one of the two.
type Side struct {
	Name     string `json:"name"` // as the caller calls it
	Sidecars int    `json:"sidecars"`
	// Resources is the number of distinct resources, and Bytes the bytes of what all sidecars hold together.
	Resources int   `json:"resources"`
	Bytes     int64 `json:"bytes"`
	// Unasked are proxies of the mesh that its replay does not have.
	Unasked []record.UnaskedProxies `json:"unasked,omitempty"`
	// NotQuiet reports that the control plane still sent something shortly before the configuration was kept: the
	// difference may be of two moments, and not of two sides.
	NotQuiet bool `json:"notQuiet,omitempty"`
}

// NotQuiet reports whether the control plane of a run had not come to rest when the phase settle ended.
func NotQuiet(r *record.Run) bool {
	return slices.ContainsFunc(r.Warnings, func(w record.Warning) bool { return w.Reason == record.ReasonNotQuiet })
}

// Group is a difference that several sidecars or resources have.
type Group struct {
	Effect Effect `json:"effect"`
	Type   string `json:"type"`  // of the resources, as in CDS
	Class  string `json:"class"` // of the resources, as in "outbound cluster"
	Op     Op     `json:"op"`
	// Path is the path of the field; "" is the resource as a whole. [*] is an element of a list or map, such as a virtual host.
	Path   string  `json:"path,omitempty"`
	Values []Value `json:"values,omitempty"`
	// Resources are the names of those that have the difference, of OfResources of this class.
	Resources   []string `json:"resources"`
	OfResources int      `json:"ofResources"`
	// Elements are the elements that [*] in the path includes, if it has any.
	Elements []string `json:"elements,omitempty"`
	// Sidecars have the difference, of OfSidecars that were compared.
	Sidecars   int        `json:"sidecars"`
	OfSidecars int        `json:"ofSidecars"`
	Workloads  []Workload `json:"workloads"`
	// Bytes is the growth, in bytes, of what all these sidecars hold, without the length prefixes of the messages around the field.
	Bytes   int64    `json:"bytes"`
	Meaning *Meaning `json:"meaning,omitempty"`
}

// Value is the value of a field before and after; "" means that the field is absent.
type Value struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Workload counts the affected sidecars of one workload, and all its sidecars.
type Workload struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Sidecars  int    `json:"sidecars"`
	Of        int    `json:"of"`
}

// EffectCount counts the groups with an effect, and the sidecars with such a group.
type EffectCount struct {
	Effect   Effect `json:"effect"`
	What     string `json:"what"`   // Envoy does
	Source   string `json:"source"` // where that is written
	Groups   int    `json:"groups"`
	Sidecars int    `json:"sidecars"`
}

// messages are the names of the messages of the resource types.
var messages = map[string]protoreflect.FullName{
	"CDS":  "envoy.config.cluster.v3.Cluster",
	"EDS":  "envoy.config.endpoint.v3.ClusterLoadAssignment",
	"LDS":  "envoy.config.listener.v3.Listener",
	"RDS":  "envoy.config.route.v3.RouteConfiguration",
	"ECDS": "envoy.config.core.v3.TypedExtensionConfig",
	"SDS":  "envoy.extensions.transport_sockets.tls.v3.Secret",

	addressType: "istio.workload.Address", workloadType: "istio.workload.Workload", authorizationType: "istio.security.Authorization",
}

// Types of resources. Ztunnels hold Address and Authorization. Waypoints, and sidecars in a mesh with ztunnels, hold Workload.
const (
	addressType       = "Address"
	workloadType      = "Workload"
	authorizationType = "Authorization"
)

// apiServer is the API server's own Service, as a ztunnel holds it.
const apiServer = "default/kubernetes.default.svc.cluster.local"

// off reports whether a rule is off.
func (o Options) off(rule string) bool { return slices.Contains(o.KeepNoise, rule) }

// leavesOut reports whether the rules leave a resource out of the comparison.
func (o Options) leavesOut(r record.HeldResource) bool {
	return r.Type == addressType && r.Name == apiServer && !o.off(addresses) || r.Type == workloadType && !o.off(peers)
}

// resource is one of either side. Two with the same id are the same, on whichever side.
type resource struct {
	id         int
	kind, name string
	root       *node
	size       int
}

// classOf returns the purpose of a resource, in Istio's words.
func classOf(kind, name string) string {
	direction, _, _ := strings.Cut(name, "|")
	switch kind {
	case "EDS":
		return strings.Replace(classOf("CDS", name), "cluster", "endpoint list", 1)
	case "CDS":
		switch direction {
		case "outbound", "outbound_":
			return "outbound cluster"
		case "inbound", "inbound-vip":
			return "inbound cluster"
		}
		return "cluster"
	case "LDS":
		switch name {
		case "virtualInbound", "virtualOutbound":
			return "listener " + name
		}
		return "listener"
	case "RDS":
		if direction == "inbound" {
			return "inbound route configuration"
		}
		return "route configuration"
	case "ECDS":
		return "extension configuration"
	case authorizationType:
		return "policy"
	case workloadType:
		return "workload"
	case addressType:
		if strings.Count(name, "/") > 1 { // CLUSTER/GROUP/KIND/NAMESPACE/NAME, of a service NAMESPACE/HOST
			return "workload"
		}
		return "service"
	}
	return "resource"
}

// classSizes returns the numbers of different names of each class.
func classSizes(sides ...map[workloadName][]*sidecar) map[string]int {
	seen, sizes := map[string]bool{}, map[string]int{}
	for _, side := range sides {
		for _, sidecars := range side {
			for _, s := range sidecars {
				for _, r := range s.held {
					if key := r.kind + " " + r.name; !seen[key] {
						seen[key] = true
						sizes[r.kind+" "+classOf(r.kind, r.name)]++
					}
				}
			}
		}
	}
	return sizes
}

// sidecar is one of a side.
type sidecar struct {
	by   workloadName
	kind record.ProxyKind
	held []*resource // sorted by kind and name
}

type workloadName struct{ namespace, name string }

// Compare compares two sides.
func Compare(from, to *record.Configuration, o Options) (*Result, error) {
	c := &comparison{
		ids: map[identity]int{}, opaque: map[string]bool{}, groups: map[groupKey]*gathered{}, pairs: map[[2]int][]difference{}, totals: map[workloadName]int{}, result: &Result{APIVersion: record.APIVersion, Kind: "Diff", Groups: []Group{}},
	}
	for _, r := range Rules {
		if !o.off(r.Name) {
			c.result.Rules = append(c.result.Rules, r)
		}
	}
	before, err := c.read(from, o, &c.result.From)
	if err != nil {
		return nil, err
	}
	after, err := c.read(to, o, &c.result.To)
	if err != nil {
		return nil, err
	}
	c.classes = classSizes(before, after)
	for _, w := range workloadsOf(before, after) {
		c.workload(w, before[w], after[w])
	}
	c.conclude()
	return c.result, nil
}

// comparison is the state of one.
type comparison struct {
	ids     map[identity]int
	opaque  map[string]bool
	pairs   map[[2]int][]difference // of two resources, by their ids
	groups  map[groupKey]*gathered
	keys    []groupKey // in the order in which they came
	classes map[string]int
	totals  map[workloadName]int // sidecars that were compared
	batches []batch
	result  *Result
}

type identity struct {
	kind, name string
	sum        uint64
}

// read makes the sidecars of a side, by workload.
func (c *comparison) read(side *record.Configuration, o Options, shown *Side) (map[workloadName][]*sidecar, error) {
	r := &reader{Options: o, names: newNames(side.Objects, o), opaque: c.opaque}
	resources := make([]*resource, len(side.Resources)) // nil = left out
	for i, held := range side.Resources {
		if o.leavesOut(held) {
			continue
		}
		one, err := c.resource(r, held)
		if err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", held.Type, held.Name, err)
		}
		resources[i] = one
	}
	all := map[workloadName][]*sidecar{}
	different := map[int]bool{}
	for _, s := range side.Sidecars {
		one := &sidecar{by: workloadName{s.Namespace, s.Workload}, kind: s.Kind}
		for _, i := range s.Resources {
			if resources[i] == nil {
				continue
			}
			one.held = append(one.held, resources[i])
			shown.Bytes += int64(resources[i].size)
			different[resources[i].id] = true
		}
		slices.SortFunc(one.held, func(a, b *resource) int {
			return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name), cmp.Compare(a.id, b.id))
		})
		all[one.by] = append(all[one.by], one)
	}
	shown.Sidecars, shown.Resources, shown.Unasked = len(side.Sidecars), len(different), side.Unasked
	return all, nil
}

func (c *comparison) resource(r *reader, held record.HeldResource) (*resource, error) {
	one := &resource{kind: held.Type, name: r.names.in(held.Name), size: len(held.Message)}
	if name, known := messages[held.Type]; known {
		root, err := r.resource(name, held.Message)
		if err != nil {
			return nil, err
		}
		one.root = root
	} else {
		c.opaque[held.Type] = true
		one.root = (&node{kind: message, fields: []field{{"value", leaf(number, bytesText(held.Message), len(held.Message))}}}).hashed()
	}
	id := identity{one.kind, one.name, one.root.sum}
	known, ok := c.ids[id]
	if !ok {
		known = len(c.ids) + 1
		c.ids[id] = known
	}
	one.id = known
	return one, nil
}

// workloadsOf returns the workloads of both sides, sorted.
func workloadsOf(sides ...map[workloadName][]*sidecar) []workloadName {
	all := map[workloadName]bool{}
	for _, side := range sides {
		for w := range side {
			all[w] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b workloadName) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
}

// profile are the sidecars of a workload that hold the same.
type profile struct {
	held     []*resource
	ids      map[int]bool
	sidecars int
}

func profilesOf(sidecars []*sidecar) (all []*profile) {
	index := map[string]*profile{}
	for _, s := range sidecars {
		var key strings.Builder
		for _, r := range s.held {
			fmt.Fprintf(&key, "%d ", r.id)
		}
		p := index[key.String()]
		if p == nil {
			p = &profile{held: s.held, ids: make(map[int]bool, len(s.held))}
			for _, r := range s.held {
				p.ids[r.id] = true
			}
			index[key.String()] = p
			all = append(all, p)
		}
		p.sidecars++
	}
	return all
}

// distance returns the number of resources that only one of two profiles has.
func (p *profile) distance(o *profile) int {
	n := 0
	for id := range p.ids {
		if !o.ids[id] {
			n++
		}
	}
	for id := range o.ids {
		if !p.ids[id] {
			n++
		}
	}
	return n
}

// workload compares the sidecars of a workload. Pods have no identity that lasts, so each sidecar is
// compared with one of those on the other side that are most like it.
func (c *comparison) workload(w workloadName, from, to []*sidecar) {
	before, after := profilesOf(from), profilesOf(to)
	type pair struct {
		a, b     *profile
		distance int
	}
	var pairs []pair
	for _, a := range before {
		for _, b := range after {
			pairs = append(pairs, pair{a, b, a.distance(b)})
		}
	}
	slices.SortStableFunc(pairs, func(x, y pair) int { return cmp.Compare(x.distance, y.distance) })
	of := min(len(from), len(to))
	c.totals[w] = of
	if of > 0 {
		switch to[0].kind {
		case record.OfGateway:
			c.result.Gateways += of
		case record.OfZtunnel:
			c.result.Ztunnels += of
		case record.OfWaypoint:
			c.result.Waypoints += of
		}
	}
	for _, p := range pairs {
		n := min(p.a.sidecars, p.b.sidecars)
		if n == 0 {
			continue
		}
		p.a.sidecars, p.b.sidecars = p.a.sidecars-n, p.b.sidecars-n
		c.result.Sidecars += n
		if p.distance > 0 {
			c.result.Changed += n
			c.profiles(batch{w, n}, p.a, p.b)
		}
	}
	if n := len(from) - of; n > 0 {
		c.result.OnlyFrom = append(c.result.OnlyFrom, Workload{w.namespace, w.name, n, len(from)})
	}
	if n := len(to) - of; n > 0 {
		c.result.OnlyTo = append(c.result.OnlyTo, Workload{w.namespace, w.name, n, len(to)})
	}
}
