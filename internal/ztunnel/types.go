package ztunnel

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// The types that a ztunnel subscribes to. They must not be assigned to.
var (
	Address       = convergence.TypeOf("Address")       // workloads and services
	Authorization = convergence.TypeOf("Authorization") // policies
)

// Types returns the types that a ztunnel subscribes to, each as a wildcard, in the order
// of its requests.
func Types() []xdsprobe.ResourceType {
	return []xdsprobe.ResourceType{
		{Name: Address, URL: "type.googleapis.com/istio.workload.Address", Scan: scanAddress},
		{Name: Authorization, URL: "type.googleapis.com/istio.security.Authorization", Scan: scanAuthorization},
	}
}

// workload is the part of an istio.workload.Workload that is read.
type workload struct {
	name, namespace, account string
	trustDomain, node        string
	pod                      bool // its source is a Pod
	tunnelled                bool // it is reached through HBONE, so that it needs a certificate
	health                   convergence.Health
	addresses                []netip.Addr
	services                 map[string][]port // by "namespace/hostname"
}

// service is the part of an istio.workload.Service that is read.
type service struct {
	ports    []port
	waypoint string // as WaypointMember has it; "" = none
}

// WaypointMember returns the member of a service's content which says that requests to it
// go through a waypoint.
func WaypointMember(namespace, host string) string { return "waypoint " + namespace + "/" + host }

// port is an istio.workload.Port.
type port struct{ service, target uint16 }

// identity returns the SPIFFE identity of a workload; "" if it has none.
func (w *workload) identity() string {
	if w.account == "" {
		return ""
	}
	return fmt.Sprintf("spiffe://%s/ns/%s/sa/%s", w.trustDomain, w.namespace, w.account)
}

// local returns the workload as a pod of its node.
func (w *workload) local() proxy.NodePod {
	p := proxy.NodePod{ID: w.namespace + "/" + w.name}
	if w.tunnelled {
		p.Identity = w.identity()
	}
	return p
}

// errWire is the error for bytes that are not a message of their type.
var errWire = errors.New("invalid protobuf message")

// field is one field of a message.
type field struct {
	number protowire.Number
	wire   protowire.Type
	bytes  []byte // of a BytesType field
	varint uint64 // of a VarintType field
}

func (f *field) is(number protowire.Number, wire protowire.Type) bool {
	return f.number == number && f.wire == wire
}

// fields calls do with each field of a message, in wire order.
func fields(b []byte, do func(f *field) error) error {
	for len(b) > 0 {
		var f field
		var n int
		f.number, f.wire, n = protowire.ConsumeTag(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		switch f.wire {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(f.number, f.wire, b)
		}
		if n < 0 {
			return errWire
		}
		if err := do(&f); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// scanAddress reads an istio.workload.Address. Numbers of fields are those of Istio's
// pkg/workloadapi/workload.proto.
func scanAddress(b []byte) (xdsprobe.Scanned, error) {
	var s xdsprobe.Scanned
	err := fields(b, func(f *field) (err error) {
		switch {
		case f.is(1, protowire.BytesType):
			var w *workload
			s.Name, w, err = scanWorkload(f.bytes)
			s.Content = &convergence.Content{Detail: w}
		case f.is(2, protowire.BytesType):
			var o *service
			s.Name, o, err = scanService(f.bytes)
			s.Content = &convergence.Content{Detail: o}
			if o.waypoint != "" {
				s.Content.Members = []string{o.waypoint}
			}
		}
		return err
	})
	if err != nil {
		return xdsprobe.Scanned{}, fmt.Errorf("parsing an Address: %w", err)
	}
	return s, nil
}

func scanWorkload(b []byte) (uid string, w *workload, err error) {
	w = &workload{trustDomain: "cluster.local", services: map[string][]port{}}
	err = fields(b, func(f *field) error {
		switch {
		case f.is(20, protowire.BytesType):
			uid = string(f.bytes)
		case f.is(1, protowire.BytesType):
			w.name = string(f.bytes)
		case f.is(2, protowire.BytesType):
			w.namespace = string(f.bytes)
		case f.is(3, protowire.BytesType):
			address, ok := netip.AddrFromSlice(f.bytes)
			if !ok {
				return fmt.Errorf("an address of %d bytes", len(f.bytes))
			}
			w.addresses = append(w.addresses, address)
		case f.is(5, protowire.VarintType): // tunnel_protocol
			w.tunnelled = w.tunnelled || f.varint == 1
		case f.is(14, protowire.VarintType): // native_tunnel
			w.tunnelled = w.tunnelled || f.varint != 0
		case f.is(6, protowire.BytesType) && len(f.bytes) > 0:
			w.trustDomain = string(f.bytes)
		case f.is(7, protowire.BytesType):
			w.account = string(f.bytes)
		case f.is(9, protowire.BytesType):
			w.node = string(f.bytes)
		case f.is(17, protowire.VarintType) && f.varint == 1:
			w.health = convergence.Unhealthy
		case f.is(22, protowire.BytesType):
			return scanMembership(f.bytes, w.services)
		}
		return nil
	})
	w.pod = strings.Contains(uid, "//Pod/") // CLUSTER/GROUP/KIND/NAMESPACE/NAME, the group of pods is ""
	return uid, w, err
}

// scanMembership reads an entry of Workload.services.
func scanMembership(b []byte, into map[string][]port) error {
	var name string
	var ports []port
	err := fields(b, func(f *field) error {
		switch {
		case f.is(1, protowire.BytesType):
			name = string(f.bytes)
		case f.is(2, protowire.BytesType):
			return fields(f.bytes, func(f *field) (err error) {
				if f.is(1, protowire.BytesType) {
					ports, err = appendPort(ports, f.bytes)
				}
				return err
			})
		}
		return nil
	})
	into[name] = ports
	return err
}

func scanService(b []byte) (name string, s *service, err error) {
	s = &service{}
	var namespace, hostname string
	err = fields(b, func(f *field) (err error) {
		switch {
		case f.is(2, protowire.BytesType):
			namespace = string(f.bytes)
		case f.is(3, protowire.BytesType):
			hostname = string(f.bytes)
		case f.is(5, protowire.BytesType):
			s.ports, err = appendPort(s.ports, f.bytes)
		case f.is(7, protowire.BytesType):
			s.waypoint, err = scanWaypoint(f.bytes)
		}
		return err
	})
	return namespace + "/" + hostname, s, err
}

// scanWaypoint reads a GatewayAddress. Its destination is a host here.
func scanWaypoint(b []byte) (member string, err error) {
	err = fields(b, func(f *field) error {
		if !f.is(1, protowire.BytesType) {
			return nil
		}
		var namespace, host string
		err := fields(f.bytes, func(f *field) error {
			switch {
			case f.is(1, protowire.BytesType):
				namespace = string(f.bytes)
			case f.is(2, protowire.BytesType):
				host = string(f.bytes)
			}
			return nil
		})
		member = WaypointMember(namespace, host)
		return err
	})
	return member, err
}

func appendPort(ports []port, b []byte) ([]port, error) {
	var p port
	err := fields(b, func(f *field) error {
		switch {
		case f.is(1, protowire.VarintType):
			p.service = uint16(f.varint)
		case f.is(2, protowire.VarintType):
			p.target = uint16(f.varint)
		}
		return nil
	})
	return append(ports, p), err
}

// scanAuthorization reads only the name of an istio.security.Authorization: markers are
// found in its bytes.
func scanAuthorization(b []byte) (xdsprobe.Scanned, error) {
	var name, namespace string
	err := fields(b, func(f *field) error {
		switch {
		case f.is(1, protowire.BytesType):
			name = string(f.bytes)
		case f.is(2, protowire.BytesType):
			namespace = string(f.bytes)
		}
		return nil
	})
	if err != nil {
		return xdsprobe.Scanned{}, fmt.Errorf("parsing an Authorization: %w", err)
	}
	return xdsprobe.Scanned{Name: namespace + "/" + name}, nil
}
