package xdsprobe

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
)

// ResourceType is one type of resource that clients subscribe to.
type ResourceType struct {
	Name convergence.Type // its short name, such as "CDS"
	URL  string           // type URL of its resources

	// Parents are the types whose resources name those of this type: a resource is
	// subscribed to by name while at least one held resource names it. nil means that all
	// resources of the type are subscribed to (a wildcard).
	Parents []convergence.Type

	// Scan reads a resource's message. nil means that only its name is read, from field
	// 1, if the response has none.
	Scan func(message []byte) (Scanned, error)

	// Warming means that a parent cannot be used before the resources that it names have
	// arrived: the ACK of parents waits for them, once types that are AfterWarming have
	// been subscribed to. In the state-of-the-world variant, a parent that changes
	// repeats the request if Resubscribed is set.
	Warming, Resubscribed bool
	// AfterWarming means that the type, a wildcard, is first subscribed to when
	// everything of the Warming types was answered, and at once on every later stream.
	AfterWarming bool
	// FetchTimeout limits how long types that are AfterWarming wait for the first
	// response of this type, if it is a wildcard that names what is to be warmed; 0 means
	// no limit. It is the initial_fetch_timeout of a ConfigSource in Envoy's bootstrap.
	FetchTimeout time.Duration
	// Drains means that a removed or changed resource still needs the resources it names
	// for Config.Drain.
	Drains bool
}

// Scanned is the part of a resource that a client reads.
type Scanned struct {
	Name  string
	Names []convergence.Key // of other resources, of types whose parent this one's is
	// Wait limits how long a named Warming resource is waited for; 0 means no limit.
	Wait time.Duration
	// Secured means that the resource needs the workload's certificate; see
	// Config.AwaitCertificate.
	Secured bool
	Secret  *Secret              // of a certificate; else nil
	Content *convergence.Content // nil where only the presence matters
}

// Secret is a certificate that was received as a resource.
type Secret struct {
	Chain []byte // PEM, leaf first
}

// EnvoyTypes returns the types of an Envoy's configuration over ADS, in Envoy's order of
// requests.
func EnvoyTypes() []ResourceType {
	return []ResourceType{
		{Name: convergence.CDS, URL: clusterURL, Scan: envoyScan(convergence.CDS)},
		{
			Name: convergence.EDS, URL: assignmentURL, Scan: envoyScan(convergence.EDS),
			Parents: []convergence.Type{convergence.CDS}, Warming: true, Resubscribed: true,
		},
		{Name: convergence.LDS, URL: listenerURL, Scan: envoyScan(convergence.LDS), AfterWarming: true, Drains: true},
		{Name: convergence.RDS, URL: routeURL, Scan: envoyScan(convergence.RDS), Parents: []convergence.Type{convergence.LDS}},
		{Name: convergence.ECDS, URL: extensionURL, Scan: envoyScan(convergence.ECDS), Parents: []convergence.Type{convergence.LDS}},
	}
}

// EnvoyTypesWithSecrets returns EnvoyTypes and secrets, which clusters and listeners name
// in their TLS contexts. Clusters wait for their secrets as for their endpoints.
func EnvoyTypesWithSecrets() []ResourceType {
	types := EnvoyTypes()
	for i := range types {
		if types[i].Name == convergence.CDS || types[i].Name == convergence.LDS {
			types[i].Scan = withSecrets(types[i].Name, types[i].Scan)
		}
	}
	return slices.Insert(types, 2, ResourceType{
		Name: convergence.SDS, URL: secretURL, Scan: scanSecret,
		Parents: []convergence.Type{convergence.CDS, convergence.LDS}, Warming: true,
	})
}

// Types is a set of resource types that is ready to use; NewTypes makes one. It
// does not change and is shared by all clients of a Store.
type Types struct {
	kinds   []*kind // in the order of the first requests
	warming []*kind
	gated   []*kind // AfterWarming
}

// kind is a resource type with its position in the graph.
type kind struct {
	ResourceType
	index             int
	shape             *shape // nil for messages that are not known
	parents, children []*kind
	lingers           bool // one of its parents drains
}

// wildcard reports whether all resources of the type are subscribed to.
func (k *kind) wildcard() bool { return len(k.parents) == 0 }

// envoyTypes returns the types of a Store made by NewStore.
var envoyTypes = sync.OnceValues(func() (*Types, error) { return NewTypes(EnvoyTypes()) })

// NewTypes makes a set of types, which are first subscribed to in this order. It returns
// an error if a parent is not among them, if two have the same name or URL, or if there
// is no type that could be subscribed to first.
func NewTypes(types []ResourceType) (*Types, error) {
	ts := &Types{}
	for i, t := range types {
		if t.Name == (convergence.Type{}) || t.URL == "" {
			return nil, fmt.Errorf("resource type %d has name %q and URL %q: want both", i, t.Name, t.URL)
		}
		if ts.byName(t.Name) != nil || ts.byURL([]byte(t.URL)) != nil {
			return nil, fmt.Errorf("resource type %s (%s) is given twice", t.Name, t.URL)
		}
		if t.AfterWarming && len(t.Parents) > 0 {
			return nil, fmt.Errorf("resource type %s is subscribed to by name: want a wildcard where AfterWarming is set", t.Name)
		}
		k := &kind{ResourceType: t, index: i, shape: known().resources[t.URL]}
		ts.kinds = append(ts.kinds, k)
		if t.Warming {
			ts.warming = append(ts.warming, k)
		}
		if t.AfterWarming {
			ts.gated = append(ts.gated, k)
		}
	}
	if !slices.ContainsFunc(types, func(t ResourceType) bool { return len(t.Parents) == 0 && !t.AfterWarming }) {
		return nil, errors.New("no resource type can be subscribed to at first: want a wildcard")
	}
	for _, k := range ts.kinds {
		for _, name := range k.Parents {
			parent := ts.byName(name)
			if parent == nil {
				return nil, fmt.Errorf("resource type %s has parent %s, which is not among the types", k.Name, name)
			}
			k.parents = append(k.parents, parent)
			parent.children = append(parent.children, k)
			k.lingers = k.lingers || parent.Drains
		}
	}
	return ts, nil
}

// only returns the types of the set that have one of these names; nil means all. It
// returns an error for a name that is not in the set.
func (ts *Types) only(names []convergence.Type) (*Types, error) {
	if names == nil {
		return ts, nil
	}
	some := &Types{}
	for _, name := range names {
		if ts.byName(name) == nil {
			return nil, fmt.Errorf("subscribing to %s: want a type of the store", name)
		}
	}
	chosen := func(all []*kind) (these []*kind) {
		for _, k := range all {
			if slices.Contains(names, k.Name) {
				these = append(these, k)
			}
		}
		return these
	}
	some.kinds, some.warming, some.gated = chosen(ts.kinds), chosen(ts.warming), chosen(ts.gated)
	return some, nil
}

// Names returns the short names of the types, in their order.
func (ts *Types) Names() []convergence.Type {
	names := make([]convergence.Type, len(ts.kinds))
	for i, k := range ts.kinds {
		names[i] = k.Name
	}
	return names
}

// byName returns the type of that name; nil if there is none.
func (ts *Types) byName(name convergence.Type) *kind {
	for _, k := range ts.kinds {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// byURL returns the type of that URL; nil if there is none.
func (ts *Types) byURL(url []byte) *kind {
	for _, k := range ts.kinds {
		if k.URL == string(url) {
			return k
		}
	}
	return nil
}
