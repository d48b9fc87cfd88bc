package dataplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"scaler.mesh/scaler/internal/task"
)

// HeadersPath is answered with the headers of the request as a JSON object of lists,
// which shows what a sidecar has added.
const HeadersPath = "/headers"

// EchoCommand is the name of the hidden command of scaler that runs Echo.
const EchoCommand = "echo"

// EchoOptions state what an echo server does.
type EchoOptions struct {
	// Listen is HOST:PORT. It has no default.
	Listen string
	// Name is the name that it answers with; "" means "echo".
	Name string
	// Wait is the time that it waits before it answers or forwards; 0 means no wait.
	Wait time.Duration
	// Next is the server to forward requests to; its answer is returned. Without
	// addresses the echo server answers itself.
	Next Target
	// HTTP is the version for forwarding, 1 or 2; 0 means 1. The server accepts both.
	HTTP int
}

// Echo serves until ctx ends.
func Echo(ctx context.Context, o EchoOptions) error {
	if o.Name == "" {
		o.Name = "echo"
	}
	if len(o.Next.Addresses) > 0 {
		if err := o.Next.Validate(); err != nil {
			return err
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("serving on %s: %w", o.Listen, err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	e := &echo{opts: o, next: newForwarder(o)}
	server := &http.Server{
		Handler: e, Protocols: protocols, ReadHeaderTimeout: 10 * time.Second,
		// A server that closes idle connections would fail requests in flight.
		IdleTimeout: time.Hour,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", o.Listen, err)
	}
	return nil
}

type echo struct {
	opts EchoOptions
	next *forwarder // nil = it answers itself
}

// ServeHTTP implements http.Handler.
func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == HeadersPath && e.next == nil {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.Header) // fails only if the client has disconnected
		return
	}
	if e.opts.Wait > 0 && !task.Sleep(r.Context(), e.opts.Wait) {
		return
	}
	if e.next != nil {
		e.next.forward(w, r)
		return
	}
	_, _ = io.WriteString(w, e.opts.Name+"\n") // fails only if the client has disconnected
}

// forwarder calls the next tier.
type forwarder struct {
	target    Target
	transport *http.Transport
	turn      atomic.Uint64
}

func newForwarder(o EchoOptions) *forwarder {
	if len(o.Next.Addresses) == 0 {
		return nil
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(o.HTTP != 2)
	protocols.SetUnencryptedHTTP2(o.HTTP == 2)
	return &forwarder{target: o.Next, transport: &http.Transport{
		Protocols: protocols, MaxIdleConnsPerHost: defaultBound, DisableCompression: true,
	}}
}

// forward passes on the path and the answer, but no headers: the sidecars report who
// called.
func (f *forwarder) forward(w http.ResponseWriter, r *http.Request) {
	address := f.target.Addresses[int(f.turn.Add(1)%uint64(len(f.target.Addresses)))]
	url := *r.URL
	url.Scheme, url.Host = "http", address
	request := (&http.Request{Method: r.Method, URL: &url, Host: f.target.host(address), Header: http.Header{}}).WithContext(r.Context())
	answer, err := f.transport.RoundTrip(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // fails only if either side has disconnected
}
