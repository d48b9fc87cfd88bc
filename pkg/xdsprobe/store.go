package xdsprobe

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
	"weak"

	"google.golang.org/protobuf/encoding/protowire"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// shards is a power of two well above the number of processors.
const shards = 64

// Store holds what the sidecars of a fleet share: each resource once, however many
// sidecars hold it, the counters, and the trusted roots. A resource that no sidecar holds
// any more is garbage-collected.
type Store struct {
	// Keep has each resource keep its message (proxy.Resource.Message); it is set before the
	// first client runs. Otherwise a message is dropped once it was scanned.
	Keep bool

	seed     maphash.Seed // of the hashes of bytes, which only this process uses
	types    *Types
	counters Counters
	byBytes  [shards]shard // by a hash of their bytes, which is fast
	byDigest [shards]shard // by their digest: equal resources are one

	mu    sync.Mutex
	trust map[trustKey]*trust
}

type shard struct {
	mu        sync.RWMutex
	resources map[resourceKey]weak.Pointer[Resource]
}

// maxEncodings limits how many encodings of a resource are recognised by their bytes. Any
// further encoding is digested each time it is received.
const maxEncodings = 64

// resourceKey identifies a resource. sum is a 64-bit hash: the probability that two
// different contents of one type, name, version and length are taken for equal is 2^-64
// for each pair.
type resourceKey struct {
	kind          *kind
	size          int
	sum           uint64
	name, version string // as in the response; "" where it has none
}

// NewStore returns a Store for a new fleet of clients that subscribe to EnvoyTypes.
func NewStore() *Store {
	types, _ := envoyTypes() // these are right, as every test shows
	return NewStoreOf(types)
}

// NewStoreOf returns a Store for a new fleet of clients that subscribe to these
// types.
func NewStoreOf(types *Types) *Store {
	s := &Store{seed: maphash.MakeSeed(), types: types, trust: make(map[trustKey]*trust)}
	s.counters.types, s.counters.kinds = types.Names(), make([]kindCounters, len(types.kinds)+1)
	for i := range shards {
		s.byBytes[i].resources = make(map[resourceKey]weak.Pointer[Resource])
		s.byDigest[i].resources = make(map[resourceKey]weak.Pointer[Resource])
	}
	return s
}

// Counters returns the counters of all sidecars of the store together.
func (s *Store) Counters() *Counters { return &s.counters }

// Len returns the number of different resources that sidecars hold, or held until
// recently.
func (s *Store) Len() int {
	n := 0
	for i := range s.byDigest {
		s.byDigest[i].mu.RLock()
		n += len(s.byDigest[i].resources)
		s.byDigest[i].mu.RUnlock()
	}
	return n
}

// Resource is one resource, shared by the sidecars that hold it. It does not
// change.
type Resource struct {
	proxy.Resource

	version   string
	sum       uint64            // its digest
	encodings atomic.Int32      // that are known
	names     []convergence.Key // of other resources, of types that are subscribed to by name
	wait      time.Duration
	secured   bool
	repeats   bool // it names resources of a type that is Resubscribed
	secret    *Secret
}

// naming appends the names of a type that the resource names.
func (r *Resource) naming(t convergence.Type, names []string) []string {
	for i := range r.names {
		if r.names[i].Type == t {
			names = append(names, r.names[i].Name)
		}
	}
	return names
}

// equal reports whether two resources with the same key are the same, ignoring their
// versions.
func (r *Resource) equal(o *Resource) bool {
	return r == o || r.sum == o.sum && r.Size == o.Size
}

// resource returns the resource of a type that a response contains. It makes a new one
// only if nobody holds it yet. It returns an error if the resource cannot be parsed.
func (s *Store) resource(t *kind, b *body) (*Resource, error) {
	value := b.resource.value
	sum := maphash.Bytes(s.seed, value)
	bytes := &s.byBytes[sum%shards]
	// The conversions to string in this expression do not allocate.
	bytes.mu.RLock()
	r := bytes.resources[resourceKey{t, len(value), sum, string(b.name), string(b.version)}].Value()
	bytes.mu.RUnlock()
	if r != nil {
		return r, nil
	}

	found, err := t.scan(value)
	if err != nil {
		return nil, err
	}
	key := resourceKey{t, len(value), sum, string(b.name), string(b.version)}
	same := key
	same.sum = t.shape.digest(value)
	name := key.name
	if name == "" {
		name = found.Name
	}
	if name == "" {
		return nil, errors.New("a resource without a name")
	}
	content := marked(found.Content, value)
	if content != nil {
		content.Digest = convergence.Digest(same.sum)
	}
	r = &Resource{
		Resource: proxy.Resource{
			Key:     convergence.Key{Type: t.Name, Name: name},
			Size:    len(value),
			Content: content,
		},
		version: key.version,
		sum:     same.sum,
		names:   found.Names,
		wait:    found.Wait,
		secured: found.Secured,
		secret:  found.Secret,
	}
	r.repeats = slices.ContainsFunc(t.children, func(c *kind) bool {
		return c.Resubscribed && slices.ContainsFunc(r.names, func(n convergence.Key) bool { return n.Type == c.Name })
	})
	if s.Keep {
		r.Message = slices.Clone(value)
	}
	r = s.byDigest[same.sum%shards].add(same, r)
	if r.encodings.Load() < maxEncodings {
		r.encodings.Add(1)
		r = bytes.add(key, r)
	}
	return r, nil
}

// scan reads a resource.
func (k *kind) scan(message []byte) (Scanned, error) {
	if k.Scan != nil {
		return k.Scan(message)
	}
	m := read(message)
	var name string
	for m.next() {
		if m.is(1, protowire.BytesType) && utf8.Valid(m.bytes) {
			name = string(m.bytes)
		}
	}
	if m.err != nil {
		return Scanned{}, fmt.Errorf("parsing a resource of %v: %w", k.Name, errWire)
	}
	return Scanned{Name: name}, nil
}

// add adds r, or returns an equal existing resource.
func (sh *shard) add(key resourceKey, r *Resource) *Resource {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if other := sh.resources[key].Value(); other != nil {
		return other
	}
	sh.resources[key] = weak.Make(r)
	runtime.AddCleanup(r, sh.forget, key)
	return r
}

// forget removes a resource that was collected, unless another one has replaced it.
func (sh *shard) forget(key resourceKey) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if p, ok := sh.resources[key]; ok && p.Value() == nil {
		delete(sh.resources, key)
	}
}

// trust holds the roots and the TLS configuration with which sidecars verify their
// server.
type trust struct {
	roots *x509.CertPool
	tls   *tls.Config
}

type trustKey struct{ rootPEM, serverName string }

// trustOf returns the trust in these roots, which is made once for the whole fleet.
func (s *Store) trustOf(rootPEM []byte, serverName string) (*trust, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := trustKey{string(rootPEM), serverName}
	if t := s.trust[key]; t != nil {
		return t, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(rootPEM) {
		return nil, errors.New("reading the root certificates: no certificate in the PEM data")
	}
	t := &trust{roots: roots, tls: &tls.Config{
		RootCAs:    roots,
		ServerName: serverName,
		NextProtos: []string{"h2"},
		MinVersion: tls.VersionTLS12,
	}}
	s.trust[key] = t
	return t, nil
}
