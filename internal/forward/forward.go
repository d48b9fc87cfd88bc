// Package forward forwards TCP connections, each to one of several endpoints, as a
// Service of Kubernetes does. It replaces kube-proxy for clients that cannot choose an
// endpoint themselves, and for little traffic.
package forward

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// Forwarder listens on a port.
type Forwarder struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	endpoints []string
	open      map[net.Conn]bool
}

// Listen calls ListenOn for any port of loopback.
func Listen() (*Forwarder, error) { return ListenOn("127.0.0.1:0") }

// ListenOn makes a forwarder without endpoints: it closes connections at once.
func ListenOn(address string) (*Forwarder, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for connections to pass on: %w", err)
	}
	return From(listener), nil
}

// From makes a forwarder for the connections of a listener, without endpoints. Close
// closes the listener.
func From(listener net.Listener) *Forwarder {
	f := &Forwarder{listener: listener, open: map[net.Conn]bool{}}
	f.serving.Go(f.accept)
	return f
}

// Port returns the port on which it listens.
func (f *Forwarder) Port() int { return f.listener.Addr().(*net.TCPAddr).Port }

// To sets the endpoints of new connections: each is forwarded to one of these addresses,
// chosen uniformly at random. Existing connections are not moved.
func (f *Forwarder) To(endpoints []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endpoints = slices.Clone(endpoints)
}

// Close ends all connections and returns when all goroutines have ended. It may be called
// again.
func (f *Forwarder) Close() error {
	f.mu.Lock()
	f.closed = true
	err := f.listener.Close()
	for c := range f.open {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.serving.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (f *Forwarder) accept() {
	for {
		client, err := f.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptors are left, for now
			<-time.After(10 * time.Millisecond)
			continue
		}
		f.serving.Go(func() { f.pass(client) })
	}
}

// choose returns a random endpoint for a connection; "" if there is none.
func (f *Forwarder) choose() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.endpoints) == 0 {
		return ""
	}
	return f.endpoints[rand.IntN(len(f.endpoints))]
}

// keep registers a connection that Close will end; false after Close.
func (f *Forwarder) keep(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.open[c] = true
	}
	return !f.closed
}

func (f *Forwarder) drop(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, c)
	_ = c.Close()
}

// pass forwards one connection until either end closes it.
func (f *Forwarder) pass(client net.Conn) {
	defer f.drop(client)
	to := f.choose()
	if to == "" || !f.keep(client) {
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		return // the client sees its connection end, as a reset
	}
	defer f.drop(server)
	if !f.keep(server) {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // its end is the connection's
			_ = way[0].(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}
