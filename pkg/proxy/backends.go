package proxy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

// Backends hold the endpoints of Services that proxies connect to, as kube-proxy knows
// them: each new connection goes to one of the Service's current endpoints, chosen
// uniformly at random and regardless of their load (mode random of iptables' statistic
// match, which kube-proxy uses; see probability in its pkg/proxy/iptables). Established
// connections are not moved. Methods may be called by several goroutines. A nil Backends
// knows no Service.
type Backends struct {
	random func(n int) int // 0 to n-1

	mu        sync.RWMutex
	endpoints map[string][]string // host:port of each, by that of the Service
}

// NewBackends returns Backends without Services. random returns a number from 0 to n-1
// and may be called by several goroutines; nil = math/rand/v2.
func NewBackends(random func(n int) int) *Backends {
	if random == nil {
		random = rand.IntN
	}
	return &Backends{random: random, endpoints: map[string][]string{}}
}

// Set sets the endpoints of a Service. Connections to a Service without endpoints are
// refused.
func (b *Backends) Set(service string, endpoints []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endpoints[service] = slices.Clone(endpoints)
}

// Choose returns the address that a connection to an address goes to: one of the
// endpoints if it is a Service, else the address itself. It returns an error for a
// Service without endpoints.
func (b *Backends) Choose(address string) (string, error) {
	if b == nil {
		return address, nil
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	endpoints, ok := b.endpoints[address]
	switch {
	case !ok:
		return address, nil
	case len(endpoints) == 0:
		return "", fmt.Errorf("connecting to %s: the service has no endpoints", address)
	}
	return endpoints[b.random(len(endpoints))], nil
}
