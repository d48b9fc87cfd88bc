package xdsprobe

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// diary is an Observer that writes everything down.
type diary struct {
	sidecar *Client

	mu           sync.Mutex
	tokens       []proxy.TokenFetched
	opened       []proxy.StreamOpened
	updates      []proxy.Update
	ended        []proxy.StreamEnded
	certificates []proxy.Certificate
	held         map[convergence.Key]*convergence.Content // as the updates say
	resources    []*Resource                              // as the sidecar says, after the last update
}

func (d *diary) TokenFetched(_ string, e proxy.TokenFetched) {
	d.note(func() { d.tokens = append(d.tokens, e) })
}
func (d *diary) StreamOpened(_ string, e proxy.StreamOpened) {
	d.note(func() { d.opened = append(d.opened, e) })
}
func (d *diary) StreamEnded(_ string, e proxy.StreamEnded) {
	d.note(func() { d.ended = append(d.ended, e) })
}
func (d *diary) Certified(_ string, e proxy.Certificate) {
	d.note(func() { d.certificates = append(d.certificates, e) })
}

func (d *diary) Updated(_ string, e proxy.Update) {
	d.note(func() {
		d.updates = append(d.updates, e)
		for _, k := range e.Removed {
			delete(d.held, k)
		}
		for _, r := range e.Set {
			d.held[r.Key] = r.Content
		}
		d.resources = nil
		for _, t := range d.sidecar.state.tables {
			d.resources = append(d.resources, t.held...)
		}
	})
}

func (d *diary) note(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// noted returns a copy of something in the diary.
func noted[T any](d *diary, f func() T) T {
	d.mu.Lock()
	defer d.mu.Unlock()
	return f()
}

func (d *diary) Updates() []proxy.Update {
	return noted(d, func() []proxy.Update { return slices.Clone(d.updates) })
}
func (d *diary) Ended() []proxy.StreamEnded {
	return noted(d, func() []proxy.StreamEnded { return slices.Clone(d.ended) })
}
func (d *diary) Opened() []proxy.StreamOpened {
	return noted(d, func() []proxy.StreamOpened { return slices.Clone(d.opened) })
}
func (d *diary) Certificates() []proxy.Certificate {
	return noted(d, func() []proxy.Certificate { return slices.Clone(d.certificates) })
}
func (d *diary) Resources() []*Resource {
	return noted(d, func() []*Resource { return slices.Clone(d.resources) })
}

// Held returns the names that are held, as "CDS a".
func (d *diary) Held() []string {
	return noted(d, func() (names []string) {
		for k := range d.held {
			names = append(names, k.String())
		}
		slices.Sort(names)
		return names
	})
}

func (d *diary) Content(t convergence.Type, name string) *convergence.Content {
	return noted(d, func() *convergence.Content { return d.held[convergence.Key{Type: t, Name: name}] })
}

// run is a sidecar that runs until the spec ends, or stop is called.
type run struct {
	*diary
	stop func()
}

func start(store *Store, c Config) run {
	if c.ID == "" {
		c.ID, c.NodeID = "test", "test"
	}
	if c.BackoffBase == 0 {
		c.BackoffBase, c.BackoffMax = time.Millisecond, 4*time.Millisecond
	}
	d := &diary{held: make(map[convergence.Key]*convergence.Content)}
	d.sidecar = New(c, store, d)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.sidecar.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		Eventually(done).Should(Receive(Succeed()))
	})
	DeferCleanup(stop)
	return run{d, stop}
}
