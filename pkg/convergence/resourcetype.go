package convergence

import (
	"strings"
	"unique"
)

// Type is a type of resource, identified by its short name: the abbreviation of the
// discovery service that serves it, or the last part of its type URL. The set is open:
// TypeOf makes a Type of any name. Types of the same name are equal (==). The zero value
// means no type; its name is "".
//
// A Type has the size of a pointer, because a sidecar's updates hold one for each
// resource. It is encoded as its name in JSON, text and gob.
type Type struct{ name unique.Handle[string] }

// The resource types of an Envoy's configuration. They must not be assigned to.
var (
	CDS  = TypeOf("CDS")  // clusters
	EDS  = TypeOf("EDS")  // cluster load assignments: endpoints
	LDS  = TypeOf("LDS")  // listeners
	RDS  = TypeOf("RDS")  // route configurations
	ECDS = TypeOf("ECDS") // extension configurations
	SDS  = TypeOf("SDS")  // secrets: certificates and roots
)

// TypeOf returns the type with this short name; "" is no type.
func TypeOf(name string) Type {
	if name == "" {
		return Type{}
	}
	return Type{unique.Make(name)}
}

// String returns the short name.
func (t Type) String() string {
	if t == (Type{}) {
		return ""
	}
	return t.name.Value()
}

// Compare orders types by their names, as strings.Compare does.
func (t Type) Compare(o Type) int { return strings.Compare(t.String(), o.String()) }

// MarshalText returns the short name.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText takes a short name.
func (t *Type) UnmarshalText(name []byte) error {
	*t = TypeOf(string(name))
	return nil
}

// GobEncode returns the short name. Package gob does not use MarshalText.
func (t Type) GobEncode() ([]byte, error) { return t.MarshalText() }

// GobDecode takes a short name.
func (t *Type) GobDecode(name []byte) error { return t.UnmarshalText(name) }
