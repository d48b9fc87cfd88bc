package xdsprobe

import (
	"encoding/binary"
	"hash/maphash"

	"google.golang.org/protobuf/encoding/protowire"
)

// digest is a hash of what a valid message says, whatever the order of its maps'
// entries: that is no part of it, and istiod as it is released writes them in
// another order each time (vtprotobuf). Envoy compares resources by such a hash and
// leaves one as it is that says the same (source/common/protobuf/deterministic_hash.cc).
// Of what an Any holds, what is of no known type is hashed as it stands. The keys of a
// map are taken to differ, as they do in whatever was marshalled from a map.
func (s *shape) digest(seed maphash.Seed, b []byte) uint64 {
	switch {
	case s == nil || !s.mapped:
		return maphash.Bytes(seed, b)
	case s.any:
		return digestAny(seed, b)
	}
	var d digester
	d.hash.SetSeed(seed)
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
		sum := f.nested.digest(seed, m.bytes)
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

// digestAny is digest for a google.protobuf.Any, whose content may be invalid.
func digestAny(seed maphash.Seed, b []byte) uint64 {
	var a packed
	if a.merge(b) != nil {
		return maphash.Bytes(seed, b)
	}
	content := known().packed[string(a.typeURL)]
	if content == nil || !content.valid(a.value) {
		return maphash.Bytes(seed, b)
	}
	var d digester
	d.hash.SetSeed(seed)
	_, _ = d.hash.Write(a.typeURL)
	d.put(content.digest(seed, a.value))
	return d.hash.Sum64()
}

// digester is a hash that takes numbers.
type digester struct {
	hash   maphash.Hash
	number [8]byte
}

func (d *digester) put(n uint64) {
	binary.LittleEndian.PutUint64(d.number[:], n)
	_, _ = d.hash.Write(d.number[:])
}
