package loadagent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/measure"
)

const (
	// readTimeout bounds a short request.
	readTimeout = 5 * time.Second
	// maxIdle limits the open idle connections to an agent. A new connection takes
	// processor time in the pod whose usage is read, and all processes of a pod are read
	// at once.
	maxIdle = 8
	// clockTries is the number of times that an agent is asked for its time. The fastest
	// answer counts.
	clockTries = 5
)

// ErrBuild reports an agent of another version.
var ErrBuild = errors.New("its image has another version of scaler")

// Agent is the client of the program in one pod. Its methods may be called concurrently.
type Agent struct {
	name    string // of the pod
	address string
	client  *http.Client
}

// Connect makes a client of the agent at an address, and returns ErrBuild unless that is
// of the same build. name is the name of its pod, for messages.
func Connect(ctx context.Context, name, address, build string) (*Agent, error) {
	a := &Agent{name: name, address: address, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxIdle}}}
	said, err := a.hello(ctx)
	if err != nil {
		a.Close()
		return nil, fmt.Errorf("connecting to the agent of pod %s: %w", name, err)
	}
	if said.Build != build {
		a.Close()
		return nil, fmt.Errorf("connecting to the agent of pod %s: %w: %s: want %s", name, ErrBuild, said.Build, build)
	}
	return a, nil
}

// Close ends the connections that are idle.
func (a *Agent) Close() { a.client.CloseIdleConnections() }

func (a *Agent) hello(ctx context.Context) (hello, error) {
	var said hello
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return said, a.do(ctx, http.MethodGet, "/hello", nil, &said)
}

// do sends a request and decodes the answer.
func (a *Agent) do(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+a.address+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	answer, err := httpget.Do(a.client, request)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, into)
}

// Open calls dataplane.Open in the pod. The times of the result are by the clock of this
// program.
func (a *Agent) Open(ctx context.Context, l dataplane.OpenLoad) (*dataplane.Result, error) {
	return a.send(ctx, "/open", l)
}

// Closed calls dataplane.Closed in the pod. The times of the result are by the clock of
// this program.
func (a *Agent) Closed(ctx context.Context, l dataplane.ClosedLoad) (*dataplane.Result, error) {
	return a.send(ctx, "/closed", l)
}

func (a *Agent) send(ctx context.Context, path string, load any) (*dataplane.Result, error) {
	var r dataplane.Result
	if err := a.do(ctx, http.MethodPost, path, load, &r); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("sending requests from pod %s: %w", a.name, err)
	}
	if r.Latency == nil || r.Lateness == nil {
		return nil, fmt.Errorf("sending requests from pod %s: its agent sent no latencies", a.name)
	}
	ahead, err := a.ahead(ctx)
	if err != nil {
		return nil, fmt.Errorf("comparing the clock of pod %s: %w", a.name, err)
	}
	for _, at := range []*time.Time{&r.Begin, &r.Start, &r.End} {
		*at = at.Add(-ahead)
	}
	return &r, nil
}

// ahead returns how far the clock of the pod is ahead of this program's, to within half
// the round-trip time of the fastest answer.
func (a *Agent) ahead(ctx context.Context) (ahead time.Duration, err error) {
	fastest := time.Duration(-1)
	for range clockTries {
		sent := time.Now()
		said, err := a.hello(ctx)
		if err != nil {
			return 0, err
		}
		if took := time.Since(sent); fastest < 0 || took < fastest {
			fastest, ahead = took, said.Now.Sub(sent.Add(took/2))
		}
	}
	return ahead, nil
}

// DialContext connects to an address from the pod, like net.Dialer does from here.
func (a *Agent) DialContext(ctx context.Context, network, address string) (_ net.Conn, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, a.address)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
			err = fmt.Errorf("connecting from pod %s to %s: %w", a.name, address, err)
		}
	}()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	request := &http.Request{Method: http.MethodConnect, Host: address, Header: http.Header{}}
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() // empty where the tunnel is open
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10)) // what there is of it
		return nil, errors.New(strings.TrimSpace(string(text)))
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return &tunnelConn{conn, r}, nil
}

// tunnelConn is a connection of which a part may have been read already.
type tunnelConn struct {
	net.Conn
	r *bufio.Reader
}

// Read implements net.Conn.
func (c *tunnelConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// Process finds a process of the pod by the name of its program, or Own. Readings have the times of this program's clock.
func (a *Agent) Process(ctx context.Context, name string) (measure.Source, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	first, at, err := a.read(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("reading process %s of pod %s: %w", name, a.name, err)
	}
	ahead := first.Reading.At.Sub(at)
	return &remoteProcess{ctx: context.WithoutCancel(ctx), agent: a, name: name, id: first.ID, started: first.Started.Add(-ahead)}, nil
}

// read reads a process. The time is by this program's clock.
func (a *Agent) read(ctx context.Context, name string) (s sample, at time.Time, err error) {
	sent := time.Now()
	err = a.do(ctx, http.MethodGet, "/processes/"+name, nil, &s)
	return s, sent.Add(time.Since(sent) / 2), err
}

// remoteProcess reads one process of a pod.
type remoteProcess struct {
	ctx     context.Context // of readings; it has no end
	agent   *Agent
	name    string
	id      string
	started time.Time
}

// ID implements measure.Source.
func (p *remoteProcess) ID() string { return p.agent.name + "/" + p.name + "/" + p.id }

// Started implements measure.Source.
func (p *remoteProcess) Started() (time.Time, error) { return p.started, nil }

// ExitCPU implements measure.Source. It is never known for a process on another machine.
func (p *remoteProcess) ExitCPU() (time.Duration, bool) { return 0, false }

// Remote implements measure.Remote.
func (p *remoteProcess) Remote() bool { return true }

// Read implements measure.Source.
func (p *remoteProcess) Read() (measure.Reading, error) {
	ctx, cancel := context.WithTimeout(p.ctx, readTimeout)
	defer cancel()
	s, at, err := p.agent.read(ctx, p.name)
	if status, ok := errors.AsType[*httpget.StatusError](err); ok && status.Code == http.StatusGone || err == nil && s.ID != p.id {
		return measure.Reading{}, measure.ErrEnded
	}
	s.Reading.At = at
	return s.Reading, err
}
