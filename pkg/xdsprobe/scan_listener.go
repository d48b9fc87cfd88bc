package xdsprobe

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"scaler.mesh/scaler/pkg/convergence"
)

// managerURL is the type of an HTTP connection manager in an Any.
const managerURL = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"

// scanListener reads a Listener, its filters and the HTTP connection managers packed in
// them. It returns false if one of those is an invalid message.
func scanListener(b []byte) (s Scanned, ok bool) {
	ok = true
	var (
		api       packed
		direction int32
		rules     enforced
		fallback  *chain
	)
	for m := read(b); m.next(); {
		if m.is(16, protowire.VarintType) {
			direction = int32(m.varint)
		}
		if m.wire != protowire.BytesType {
			continue
		}
		switch m.number {
		case 1:
			s.Name = string(m.bytes)
		case 3, 25: // filter_chains, default_filter_chain
			var one chain
			if m.number == 25 {
				if fallback == nil {
					fallback = &one
				}
				fallback.merge(m.bytes)
			} else {
				one.merge(m.bytes)
				rules.chain(one)
			}
			for c := read(m.bytes); c.next(); {
				if c.is(3, protowire.BytesType) { // filters
					config := s.filter(c.bytes, 4)
					rules.filter(config)
					ok = s.manager(config, &rules) && ok
				}
			}
		case 9: // listener_filters
			s.filter(m.bytes, 3)
		case 19: // api_listener
			for a := read(m.bytes); a.next(); {
				if a.is(1, protowire.BytesType) {
					_ = api.merge(a.bytes) // it was found valid before
				}
			}
		}
	}
	ok = s.manager(api, &rules) && ok
	if fallback != nil {
		rules.chain(*fallback)
	}
	if direction == inbound {
		s.Content = rules.content()
	}
	slices.SortFunc(s.Names, convergence.Key.Compare)
	s.Names = slices.Compact(s.Names)
	return s, ok
}

// filter reads a filter of any kind and returns its typed_config, the field
// numbered typed. All have their name in field 1 and their config_discovery in
// field 5.
func (s *Scanned) filter(b []byte, typed protowire.Number) (config packed) {
	var (
		name       string
		discovered bool // config_discovery, one of two
		src        source
	)
	for m := read(b); m.next(); {
		if m.wire != protowire.BytesType {
			continue
		}
		switch m.number {
		case 1:
			name = string(m.bytes)
		case typed:
			discovered, src = false, source{}
			_ = config.merge(m.bytes) // it was found valid before
		case 5:
			discovered, config = true, packed{}
			for d := read(m.bytes); d.next(); {
				if d.is(1, protowire.BytesType) { // config_source
					src.merge(d.bytes)
				}
			}
		}
	}
	if discovered && src.ads && name != "" {
		s.Names = append(s.Names, convergence.Key{Type: convergence.ECDS, Name: name})
	}
	return config
}

// manager reads a packed message if it is an HTTP connection manager, including the
// policies that it enforces.
func (s *Scanned) manager(config packed, rules *enforced) bool {
	if string(config.typeURL) != managerURL {
		return true
	}
	if !config.validAs(managerURL) {
		return false
	}
	var (
		route string
		src   source
	)
	for m := read(config.value); m.next(); {
		if m.wire != protowire.BytesType {
			continue
		}
		switch m.number {
		case 3: // rds, one of three
			for r := read(m.bytes); r.next(); {
				switch {
				case r.is(1, protowire.BytesType):
					src.merge(r.bytes)
				case r.is(2, protowire.BytesType):
					route = string(r.bytes)
				}
			}
		case 4, 31: // route_config, scoped_routes
			route, src = "", source{}
		case 5: // http_filters
			rules.filter(s.filter(m.bytes, 4))
		}
	}
	if src.ads && route != "" {
		s.Names = append(s.Names, convergence.Key{Type: convergence.RDS, Name: route})
	}
	return true
}
