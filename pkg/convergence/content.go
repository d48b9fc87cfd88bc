package convergence

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// ContentOf returns a content that consists of endpoints only. Equal endpoints have equal
// digests, in every process.
func ContentOf(endpoints Endpoints) *Content {
	var hash xxhash.Digest
	hash.Reset()
	var text []byte
	for _, at := range slices.SortedFunc(maps.Keys(endpoints), func(a, b netip.AddrPort) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Port(), b.Port()))
	}) {
		text = append(at.AppendTo(text[:0]), ' ', byte(endpoints[at]), '\n')
		_, _ = hash.Write(text) // never fails
	}
	return &Content{Endpoints: endpoints, Digest: Digest(hash.Sum64())}
}
