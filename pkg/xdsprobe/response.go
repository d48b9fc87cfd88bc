package xdsprobe

import (
	"sync"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// resourceURL is the type of a resource that is wrapped with a name and a
// version, as state-of-the-world responses may do too.
const resourceURL = "type.googleapis.com/envoy.service.discovery.v3.Resource"

// bodies lends the slices for responses that are being read. Sidecars that wait for a
// response, which are nearly all, hold none.
var bodies = sync.Pool{New: func() any { return new([]body) }}

// response is a DiscoveryResponse or a DeltaDiscoveryResponse, which have nearly the same
// fields. Its byte slices are parts of the receive buffer, and become invalid when that
// is freed.
type response struct {
	receivedAt time.Time // when all of it had been read; see Counters.Waits
	size       int
	buffer     mem.Buffer

	typeURL        []byte
	version, nonce string
	resources      []body   // lent
	removed        []string // delta only
}

// body is one resource of a response. In the state-of-the-world variant, name and version
// are usually empty: the name is in the resource and the version in the response.
type body struct {
	name, version []byte
	present       bool   // there is a resource at all
	aliases       bool   // it has aliases
	resource      packed // as sent
}

// parse reads a response of either variant into r. It accepts what
// proto.Unmarshal accepts.
func (r *response) parse(b []byte, v Variant) error {
	r.typeURL, r.version, r.nonce, r.removed = nil, "", "", nil
	r.resources = (*bodies.Get().(*[]body))[:0]
	shape := known().delta
	if v == SotW {
		shape = known().sotw
	}
	m := read(b)
	for m.next() {
		if m.wire != protowire.BytesType {
			continue
		}
		switch {
		case m.number == 1:
			r.version = string(m.text())
		case m.number == 4:
			r.typeURL = m.text()
		case m.number == 5:
			r.nonce = string(m.text())
		case m.number == 2:
			var one body
			var err error
			if v == SotW {
				err = one.parseAny(m.bytes)
			} else {
				err = one.parse(m.bytes)
			}
			if err != nil {
				return err
			}
			r.resources = append(r.resources, one)
		case m.number == 6 && v != SotW:
			r.removed = append(r.removed, string(m.text()))
		case !shape.validField(&m, protowire.DefaultRecursionLimit-1):
			return errWire
		}
	}
	return m.err
}

// parse reads a discovery.v3.Resource.
func (o *body) parse(b []byte) error {
	m := read(b)
	for m.next() {
		if m.wire != protowire.BytesType {
			continue
		}
		switch m.number {
		case 1:
			o.version = m.text()
		case 2:
			o.present = true
			if err := o.resource.merge(m.bytes); err != nil {
				return err
			}
		case 3:
			o.name = m.text()
		case 4:
			o.aliases = true
			m.text()
		default:
			if !known().resource.validField(&m, protowire.DefaultRecursionLimit-2) {
				return errWire
			}
		}
	}
	return m.err
}

// parseAny reads the Any of a state-of-the-world resource.
func (o *body) parseAny(b []byte) error {
	o.present = true
	return o.resource.merge(b)
}

// unwrap replaces a resource that is wrapped with name and version by the resource
// inside.
func (o *body) unwrap() error {
	if string(o.resource.typeURL) != resourceURL {
		return nil
	}
	wrapper := o.resource.value
	*o = body{}
	return o.parse(wrapper)
}

// release frees the buffer, and with it every byte slice of r.
func (r *response) release() {
	r.buffer.Free()
	clear(r.resources)
	lent := r.resources
	bodies.Put(&lent)
	*r = response{}
}
