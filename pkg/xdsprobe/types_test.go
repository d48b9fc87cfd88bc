package xdsprobe

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"

	"scaler.mesh/scaler/pkg/convergence"
)

// typeURLs has the type URLs of the types that tests use.
var typeURLs = map[convergence.Type]string{
	convergence.CDS: clusterURL, convergence.EDS: assignmentURL, convergence.LDS: listenerURL,
	convergence.RDS: routeURL, convergence.ECDS: extensionURL, convergence.SDS: secretURL,
}

// typeOf returns the type with this URL, no type if it is none of those.
func typeOf(url []byte) convergence.Type {
	for t, u := range typeURLs {
		if u == string(url) {
			return t
		}
	}
	return convergence.Type{}
}

// kindOf returns the kind in EnvoyTypes of a type.
func kindOf(t convergence.Type) *kind {
	types, err := envoyTypes()
	if err != nil {
		panic(err)
	}
	return types.byName(t)
}

// digest returns the digest of a resource of one of EnvoyTypes.
func digest(t convergence.Type, message []byte) uint64 { return kindOf(t).shape.digest(message) }

var _ = It("checks types", func() {
	t := GinkgoTB()
	a, b, c := convergence.TypeOf("A"), convergence.TypeOf("B"), convergence.TypeOf("C")
	wildcard := ResourceType{Name: a, URL: "a"}
	for want, types := range map[string][]ResourceType{
		"given twice":          {wildcard, {Name: a, URL: "b"}},
		"want both":            {{Name: a}},
		"not among the types":  {wildcard, {Name: b, URL: "b", Parents: []convergence.Type{c}}},
		"want a wildcard":      {{Name: a, URL: "a", AfterWarming: true}},
		"subscribed to by nam": {wildcard, {Name: b, URL: "b", Parents: []convergence.Type{a}, AfterWarming: true}},
	} {
		if _, err := NewTypes(types); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for _, types := range [][]ResourceType{EnvoyTypes(), EnvoyTypesWithSecrets(), {wildcard}} {
		if _, err := NewTypes(types); err != nil {
			t.Error(err)
		}
	}
})

// envoyNames are the names of EnvoyTypes.
var envoyNames = []convergence.Type{convergence.CDS, convergence.EDS, convergence.LDS, convergence.RDS, convergence.ECDS}

// received reads how many responses of a type were received.
func received(c *Counters, t convergence.Type) func() int64 {
	return func() int64 {
		for _, of := range c.Now().Subscribed() {
			if of.Type == t {
				return of.Responses
			}
		}
		return 0
	}
}

var _ = It("subscribes to some types only", func() {
	t := GinkgoTB()
	all, err := NewTypes(EnvoyTypes())
	if err != nil {
		t.Fatal(err)
	}
	some, err := all.only([]convergence.Type{convergence.EDS, convergence.CDS})
	if err != nil {
		t.Fatal(err)
	}
	if got := some.Names(); !slices.Equal(got, []convergence.Type{convergence.CDS, convergence.EDS}) {
		t.Errorf("they are %v", got)
	}
	if len(some.gated) != 0 || len(some.warming) != 1 {
		t.Errorf("%d wait, for %d", len(some.gated), len(some.warming))
	}
	if _, err := all.only([]convergence.Type{convergence.SDS}); err == nil {
		t.Error("a type is taken that is not there")
	}
})
