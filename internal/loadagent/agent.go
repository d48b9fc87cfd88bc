// Package loadagent is the part of `scaler latency --context` that runs in the cluster: a
// program in each pod that sends requests and connects to addresses from there, and reads
// the usage of the pod's processes. Agent is its client. internal/latency decides which
// pods there are, and what is sent.
//
// The program listens on loopback of its pod and answers any client; scaler connects
// through the API server. The protocol may change with every version of scaler; Connect
// refuses other versions.
package loadagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/measure"
)

// Command is the hidden command of scaler that runs Serve.
const Command = "load-agent"

// Own is the name under which an agent's own process is read.
const Own = "self"

const (
	// maxRequest limits the bytes that an agent reads of a request.
	maxRequest = 1 << 20
	// dialTimeout limits the time to open a connection for the client.
	dialTimeout = 10 * time.Second
)

// hello is an agent's description of itself.
type hello struct {
	Build string    `json:"build"`
	Now   time.Time `json:"now"` // by the clock of its node
}

// sample is one reading of a process.
type sample struct {
	ID      string          `json:"id"` // of the process among those of the pod
	Started time.Time       `json:"started"`
	Reading measure.Reading `json:"reading"`
}

// server is an agent.
type server struct {
	build string
	find  func(name string) (measure.Source, error)

	mu        sync.Mutex
	processes map[string]*observed // by name
}

// observed is a process that is read.
type observed struct {
	mu     sync.Mutex // a Source is not called concurrently
	source measure.Source
}

// Serve answers at the listener until ctx ends. build is the version that a client must
// have too.
func Serve(ctx context.Context, listener net.Listener, build string) error {
	return serve(ctx, listener, &server{build: build, find: find, processes: map[string]*observed{}})
}

func serve(ctx context.Context, listener net.Listener, s *server) error {
	ctx, stop := context.WithCancel(ctx)
	var tunnels sync.WaitGroup
	defer tunnels.Wait()
	defer stop()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { answer(w, hello{s.build, time.Now()}) })
	mux.HandleFunc("POST /open", load(dataplane.Open))
	mux.HandleFunc("POST /closed", load(dataplane.Closed))
	mux.HandleFunc("GET /processes/{name}", s.process)
	web := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodConnect {
				mux.ServeHTTP(w, r)
				return
			}
			tunnels.Add(1)
			defer tunnels.Done()
			tunnel(ctx, w, r.Host)
		}),
	}
	defer context.AfterFunc(ctx, func() { web.Close() })()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", listener.Addr(), err)
	}
	return nil
}

// answer writes a value. It fails only when the client has gone.
func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

// load answers a request for a load with the result. The load ends with the request.
func load[T any](do func(context.Context, T) (*dataplane.Result, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var l T
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&l); err != nil {
			http.Error(w, "reading a load: "+err.Error(), http.StatusBadRequest)
			return
		}
		result, err := do(r.Context(), l)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		answer(w, result)
	}
}

// process answers with a reading of the pod's process of that name.
func (s *server) process(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	one, err := s.observe(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	started, err := one.source.Started()
	var reading measure.Reading
	if err == nil {
		reading, err = one.source.Read()
	}
	if err != nil {
		s.forget(name, one)
		status := http.StatusInternalServerError
		if errors.Is(err, measure.ErrEnded) {
			status = http.StatusGone
		}
		http.Error(w, fmt.Sprintf("reading %s: %v", name, err), status)
		return
	}
	answer(w, sample{one.source.ID(), started, reading})
}

// observe returns the process of that name, which is read from now on if it was not
// before.
func (s *server) observe(name string) (*observed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.processes[name]; one != nil {
		return one, nil
	}
	source, err := s.find(name)
	if err != nil {
		return nil, err
	}
	s.processes[name] = &observed{source: source}
	return s.processes[name], nil
}

// forget makes the next request look for a process of that name again.
func (s *server) forget(name string, one *observed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.processes[name] == one {
		delete(s.processes, name)
	}
}

// tunnel connects the client with an address until either end closes, or ctx ends.
func tunnel(ctx context.Context, w http.ResponseWriter, address string) {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	far, err := new(net.Dialer).DialContext(dialing, "tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer far.Close()
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer near.Close()
	defer context.AfterFunc(ctx, func() { near.Close(); far.Close() })()
	if _, err := io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return // the client has disconnected
	}
	var both sync.WaitGroup
	pass := func(to, from net.Conn, r io.Reader) {
		_, err := io.Copy(to, r) // its end is the connection's
		if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite()
			return
		}
		to.Close() // reset at one end is the end of both
		from.Close()
	}
	both.Go(func() { pass(far, near, buffered) })
	both.Go(func() { pass(near, far, far) })
	both.Wait()
}
