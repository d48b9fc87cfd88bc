package xdsprobe

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/encoding/protowire"
)

// digest returns a hash of a valid message that does not depend on the order of map
// entries: the order has no meaning, and released versions of istiod write the entries in
// a different order each time (vtprotobuf). Envoy compares resources by such a hash and
// leaves an equal one unchanged (source/common/protobuf/deterministic_hash.cc). The
// digest is the same in every process: the hash is XXH64 without a seed. The content of
// an Any of unknown type is hashed as raw bytes. Map keys are assumed to be distinct, as
// they are in anything that was marshalled from a map.
func (s *shape) digest(b []byte) uint64 {
	switch {
	case s == nil || !s.mapped:
		return xxhash.Sum64(b)
	case s.any:
		return digestAny(b)
	}
	d := newDigester()
	var (
		entries protowire.Number // of the map that is being read, 0 = none
		total   uint64           // of its entries so far
		from    int              // what stands there is not hashed yet
		at      int
	)
	for m := read(b); m.next(); {
		begin := at
		at = len(b) - len(m.rest)
		f := s.fields[m.number]
		inside := f != nil && m.wire == protowire.BytesType && f.nested != nil && (f.isMap || f.nested.mapped)
		if entries != 0 && (!inside || m.number != entries) {
			d.put(total)
			entries, total = 0, 0
		}
		if !inside {
			continue
		}
		_, _ = d.hash.Write(b[from:begin])
		from = at
		sum := f.nested.digest(m.bytes)
		if !f.isMap {
			d.put(uint64(m.number))
			d.put(sum)
			continue
		}
		if entries == 0 {
			d.put(uint64(m.number))
			entries = m.number
		}
		total += sum // not exclusive or, in which equal entries would be none
	}
	if entries != 0 {
		d.put(total)
	}
	_, _ = d.hash.Write(b[from:])
	return d.hash.Sum64()
}

// digestAny returns the digest of a google.protobuf.Any, whose content may be invalid.
func digestAny(b []byte) uint64 {
	var a packed
	if a.merge(b) != nil {
		return xxhash.Sum64(b)
	}
	content := known().packed[string(a.typeURL)]
	if content == nil || !content.valid(a.value) {
		return xxhash.Sum64(b)
	}
	d := newDigester()
	_, _ = d.hash.Write(a.typeURL)
	d.put(content.digest(a.value))
	return d.hash.Sum64()
}

// digester is a hash that takes numbers.
type digester struct {
	hash   xxhash.Digest
	number [8]byte
}

func newDigester() (d digester) {
	d.hash.Reset()
	return d
}

func (d *digester) put(n uint64) {
	binary.LittleEndian.PutUint64(d.number[:], n)
	_, _ = d.hash.Write(d.number[:])
}
