package xdsprobe

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"

	"scaler.mesh/scaler/pkg/convergence"
)

// Type URLs of an Envoy's resources.
const (
	clusterURL    = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	assignmentURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerURL   = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeURL      = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	extensionURL  = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
	secretURL     = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

// envoyScan returns the Scan function of one of Envoy's types.
func envoyScan(t convergence.Type) func([]byte) (Scanned, error) {
	return func(b []byte) (Scanned, error) { return scan(t, b) }
}

// scan reads a resource without decoding it into an object. It accepts what
// proto.Unmarshal accepts, unpacks the HTTP connection managers of listeners, and returns
// the values that the getters of that object would return.
func scan(t convergence.Type, b []byte) (Scanned, error) {
	var s Scanned
	shape := known().envoy[t]
	ok := shape != nil && shape.valid(b)
	if ok {
		switch t {
		case convergence.CDS:
			s = scanCluster(b)
		case convergence.EDS:
			s = scanAssignment(b)
		case convergence.LDS:
			s, ok = scanListener(b)
		case convergence.RDS:
			s = scanRoute(b)
		case convergence.ECDS:
			s.Name = scanName(b)
		}
	}
	if !ok {
		return Scanned{}, fmt.Errorf("parsing a resource of %v: %w", t, errWire)
	}
	return s, nil
}

// scanName returns field 1, which is the name in every resource type.
func scanName(b []byte) (name string) {
	for m := read(b); m.next(); {
		if m.is(1, protowire.BytesType) {
			name = string(m.bytes)
		}
	}
	return name
}

// FetchTimeout is the default of a ConfigSource's initial_fetch_timeout.
const FetchTimeout = 15 * time.Second

// source is a ConfigSource: whether the resource comes over the same ADS stream, and how
// long to wait for it.
type source struct {
	ads     bool
	limited bool // initial_fetch_timeout is given
	seconds int64
	nanos   int32
}

// timeout returns how long to wait for the resource; 0 means no limit.
func (s *source) timeout() time.Duration {
	if !s.limited {
		return FetchTimeout
	}
	return max(0, (&durationpb.Duration{Seconds: s.seconds, Nanos: s.nanos}).AsDuration())
}

func (s *source) merge(b []byte) {
	for m := read(b); m.next(); {
		if m.wire != protowire.BytesType {
			continue
		}
		switch m.number { // one of
		case 3, 5: // ads, self
			s.ads = true
		case 1, 2, 8: // path, api_config_source, path_config_source
			s.ads = false
		case 4: // initial_fetch_timeout
			s.limited = true
			for d := read(m.bytes); d.next(); {
				switch {
				case d.is(1, protowire.VarintType):
					s.seconds = int64(d.varint)
				case d.is(2, protowire.VarintType):
					s.nanos = int32(d.varint)
				}
			}
		}
	}
}

func scanCluster(b []byte) (s Scanned) {
	var (
		eds     bool
		src     source
		service string
		own     transportSocket
	)
	for m := read(b); m.next(); {
		switch {
		case m.is(1, protowire.BytesType):
			s.Name = string(m.bytes)
		case m.is(2, protowire.VarintType): // type, one of two
			eds = int32(m.varint) == 3
		case m.is(38, protowire.BytesType): // cluster_type, the other
			eds = false
		case m.is(3, protowire.BytesType): // eds_cluster_config
			for c := read(m.bytes); c.next(); {
				switch {
				case c.is(1, protowire.BytesType):
					src.merge(c.bytes)
				case c.is(2, protowire.BytesType):
					service = string(c.bytes)
				}
			}
		case m.is(24, protowire.BytesType): // transport_socket
			own.merge(m.bytes)
		case m.is(43, protowire.BytesType): // transport_socket_matches
			var one transportSocket
			for c := read(m.bytes); c.next(); {
				if c.is(3, protowire.BytesType) {
					one.merge(c.bytes)
				}
			}
			s.Secured = s.Secured || one.secured()
		}
	}
	s.Secured = s.Secured || own.secured()
	if eds && src.ads {
		s.Names = []convergence.Key{{Type: convergence.EDS, Name: cmp.Or(service, s.Name)}}
		s.Wait = src.timeout()
	}
	return s
}

// tlsURL is the type URL of a TLS transport socket's configuration.
const tlsURL = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"

// transportSocket is a core.v3.TransportSocket, as far as it was read.
type transportSocket struct{ config packed }

func (t *transportSocket) merge(b []byte) {
	for m := read(b); m.next(); {
		if m.is(3, protowire.BytesType) { // typed_config
			_ = t.config.merge(m.bytes) // it was found valid before
		}
	}
}

func (t *transportSocket) secured() bool { return string(t.config.typeURL) == tlsURL }

func scanAssignment(b []byte) (s Scanned) {
	endpoints := convergence.Endpoints{}
	for m := read(b); m.next(); {
		switch {
		case m.is(1, protowire.BytesType):
			s.Name = string(m.bytes)
		case m.is(2, protowire.BytesType): // endpoints, by locality
			for l := read(m.bytes); l.next(); {
				if l.is(2, protowire.BytesType) { // lb_endpoints
					scanEndpoint(l.bytes, endpoints)
				}
			}
		}
	}
	s.Content = &convergence.Content{Endpoints: endpoints}
	return s
}

// socket holds the address and the port of an endpoint's address.
type socket struct {
	host     string
	port     uint32
	internal bool // it is that of an envoy_internal_address
}

// scanEndpoint adds an LbEndpoint to endpoints, unless its address has no IP and port: a
// pipe, a host name, or a name declared elsewhere.
func scanEndpoint(b []byte, endpoints convergence.Endpoints) {
	var (
		at     socket
		health int32
	)
	for m := read(b); m.next(); {
		switch {
		case m.is(1, protowire.BytesType): // endpoint, one of two
			for e := read(m.bytes); e.next(); {
				if e.is(1, protowire.BytesType) { // address
					at.mergeAddress(e.bytes)
				}
			}
		case m.is(5, protowire.BytesType): // endpoint_name, the other
			at = socket{}
		case m.is(2, protowire.VarintType):
			health = int32(m.varint)
		}
	}
	ip, err := netip.ParseAddr(at.host)
	if err != nil || at.port > 65535 {
		return
	}
	endpoints[netip.AddrPortFrom(ip, uint16(at.port))] = healthOf(health)
}

// mergeAddress reads a core.v3.Address.
func (s *socket) mergeAddress(b []byte) {
	for m := read(b); m.next(); {
		switch {
		case m.is(2, protowire.BytesType): // pipe, one of three
			*s = socket{}
		case m.is(3, protowire.BytesType): // envoy_internal_address
			s.mergeInternal(m.bytes)
		case m.is(1, protowire.BytesType): // socket_address
			if s.internal {
				*s = socket{}
			}
			for a := read(m.bytes); a.next(); {
				switch {
				case a.is(2, protowire.BytesType):
					s.host = string(a.bytes)
				case a.is(3, protowire.VarintType): // port_value, one of two
					s.port = uint32(a.varint)
				case a.is(4, protowire.BytesType): // named_port, the other
					s.port = 0
				}
			}
		}
	}
}

// mergeInternal reads a core.v3.EnvoyInternalAddress. An endpoint behind one of the
// proxy's internal listeners, which opens a tunnel to it, is identified by the address at
// the end of the tunnel (BuildInternalAddressWithIdentifier of Istio's
// pilot/pkg/networking/util).
func (s *socket) mergeInternal(b []byte) {
	if !s.internal {
		*s = socket{internal: true}
	}
	for m := read(b); m.next(); {
		if !m.is(2, protowire.BytesType) { // endpoint_id
			continue
		}
		*s = socket{internal: true}
		if at, err := netip.ParseAddrPort(string(m.bytes)); err == nil {
			s.host, s.port = at.Addr().String(), uint32(at.Port())
		}
	}
}

// healthOf maps a health status as a proxy's load balancer uses it: it avoids TIMEOUT as
// it avoids UNHEALTHY, and uses UNKNOWN and DEGRADED hosts.
func healthOf(status int32) convergence.Health {
	switch status {
	case 2, 4: // UNHEALTHY, TIMEOUT
		return convergence.Unhealthy
	case 3:
		return convergence.Draining
	default:
		return convergence.Healthy
	}
}

func scanRoute(b []byte) (s Scanned) {
	var domains []string
	for m := read(b); m.next(); {
		switch {
		case m.is(1, protowire.BytesType):
			s.Name = string(m.bytes)
		case m.is(2, protowire.BytesType): // virtual_hosts
			for h := read(m.bytes); h.next(); {
				if h.is(2, protowire.BytesType) {
					domains = append(domains, string(h.bytes))
				}
			}
		}
	}
	slices.Sort(domains)
	s.Content = &convergence.Content{Members: slices.Compact(domains)}
	return s
}
