package latency

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/record"
)

const (
	// successesInARow is the number of requests that must get through before a variant
	// counts as ready: each of an Envoy's workers learns of a change by itself.
	successesInARow = 20
	verifyEvery     = 100 * time.Millisecond
)

// errPlaintext reports that a strict variant would measure something else.
var errPlaintext = errors.New("a request in plaintext, past the client's sidecar, was answered")

// way says where a variant's requests go, for the checks before it is measured.
type way struct {
	variant string
	to      dataplane.Target
	dial    dialer // the client's; nil = as net.Dialer does
	// header is the header in which the last tier sees who called it, and identity is the
	// text that it must contain; "" = no header.
	header, identity string
	servers          []checkedServer
	past             dialer // connects past the client's sidecar; nil = as net.Dialer does
}

// checkedServer is a workload that serves.
type checkedServer struct {
	name          string
	to            dataplane.Target // past the client's sidecar
	strict        bool             // plaintext must be refused; else it must be answered
	otherIdentity *tls.Config      // of a caller that no policy allows; nil = not to be tried
	closed        bool             // otherIdentity must be refused; else it must be answered
}

// verify returns when requests get through a variant and, where a header shows it, the
// last tier sees the right caller: then what is measured is mutual TLS. In a chain this
// checks the last hop; of the other hops it is known if they are strict. Every workload
// of a strict variant must refuse plaintext, and every workload of a permissive one must
// accept it. limited bounds the checks; ctx is unlimited, for reading what was wrong.
func (m *sidecarMesh) verify(limited, ctx context.Context, w way) error {
	spec := &m.run.spec
	if err := w.awaitAnswers(limited, spec); err != nil {
		return errors.Join(fmt.Errorf("sending requests through the sidecars for %s: %w", sidecarTimeout, err), m.refusals(ctx))
	}
	check, err := w.check(limited, spec)
	if err == nil {
		m.run.record.Checks = append(m.run.record.Checks, check)
	}
	return err
}

// awaitAnswers returns when enough requests in a row were answered by the last tier,
// which saw the right caller.
func (w way) awaitAnswers(ctx context.Context, spec *Spec) error {
	client := newClient(spec, w.dial)
	defer client.CloseIdleConnections()
	row := 0
	for row < successesInARow {
		err := w.checkCaller(ctx, client)
		row++
		if err == nil {
			continue
		}
		row = 0
		if waitErr := task.WaitUntil(ctx, time.Now().Add(verifyEvery)); waitErr != nil {
			return err
		}
	}
	return nil
}

// check tries the requests that every server must refuse, or answer.
func (w way) check(ctx context.Context, spec *Spec) (record.LatencyCheck, error) {
	if err := w.verifyPlaintext(ctx, spec); err != nil {
		return record.LatencyCheck{}, err
	}
	if err := w.verifyOtherIdentities(ctx, spec); err != nil {
		return record.LatencyCheck{}, err
	}
	return w.checked(), nil
}

// checked returns the results of verify, once it has succeeded.
func (w way) checked() record.LatencyCheck {
	result := func(refused bool) record.CheckResult {
		if refused {
			return record.CheckRefused
		}
		return record.CheckAnswered
	}
	last := w.servers[len(w.servers)-1]
	c := record.LatencyCheck{Variant: w.variant, Plaintext: result(last.strict), Caller: record.CallerUnknown}
	if last.otherIdentity != nil {
		c.NoCertificate, c.OtherIdentity = record.CheckRefused, result(last.closed)
		if last.closed {
			c.Caller = record.CallerAllowed
		}
	}
	if w.header != "" {
		c.Caller = record.CallerSeen
	}
	return c
}

// spiffeHeader is the header in which an Envoy names the caller.
const spiffeHeader = "X-Forwarded-Client-Cert"

// way returns the way of a variant whose sidecars are addressed directly.
func (v *meshVariant) way(variant string) way {
	caller := clientTier
	if n := len(v.services); n > 1 {
		caller = v.services[n-2].Name
	}
	w := way{
		variant: variant, to: egress(v.client, v.services[0]),
		header: spiffeHeader, identity: fmt.Sprintf("/ns/%s/sa/%s", v.client.Namespace, caller),
	}
	for i, tier := range v.tiers {
		for _, one := range tier {
			w.servers = append(w.servers, checkedServer{name: one.Name, to: inboundListener(one, v.services[i]), strict: v.services[i].Strict})
		}
	}
	return w
}

// newClient makes a client for a few requests, with the HTTP version and the timeout of a
// run; dial nil = the host's network.
func newClient(spec *Spec, dial dialer) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(spec.Latency.HTTP == 1)
	protocols.SetUnencryptedHTTP2(spec.Latency.HTTP == 2)
	return &http.Client{Transport: &http.Transport{Protocols: protocols, DialContext: dial}, Timeout: time.Duration(spec.Latency.Timeout)}
}

// checkCaller returns nil if a request is answered by the last tier and, where there is a
// header for it, that tier saw a caller of the identity.
func (w way) checkCaller(ctx context.Context, client *http.Client) error {
	answer, err := get(ctx, client, w.to, dataplane.HeadersPath)
	if err != nil {
		return err
	}
	var headers http.Header
	if err := json.Unmarshal(answer, &headers); err != nil {
		return fmt.Errorf("reading what the server saw: %w", err)
	}
	if w.header == "" {
		return nil
	}
	if cert := headers.Get(w.header); !strings.Contains(cert, w.identity) {
		return fmt.Errorf("the server saw %s %q: want a caller of ...%s", w.header, cert, w.identity)
	}
	return nil
}

// get returns the body of a good answer.
func get(ctx context.Context, client *http.Client, to dataplane.Target, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+to.Addresses[0]+path, nil)
	if err != nil {
		return nil, err
	}
	request.Host = to.Host
	return httpget.Do(client, request)
}

// verifyPlaintext sends a request to each workload past the client's sidecar.
func (w way) verifyPlaintext(ctx context.Context, spec *Spec) error {
	for _, s := range w.servers {
		refused, err := plaintext(ctx, spec, s.to, w.past)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: sending a request in plaintext, past the client's sidecar: %w", s.name, context.Cause(ctx))
		case s.strict && err == nil:
			return fmt.Errorf("%s: %w", s.name, errPlaintext)
		case s.strict && !refused:
			return fmt.Errorf("%s: a request in plaintext, past the client's sidecar, was not refused but failed: %w", s.name, err)
		case !s.strict && err != nil:
			return fmt.Errorf("%s: a request in plaintext, past the client's sidecar: %w", s.name, err)
		}
	}
	return nil
}

// plaintext sends a request. It counts as refused if the peer ended the connection
// instead of answering, or answered 403. Any other failure is returned as an error,
// because it proves nothing.
func plaintext(ctx context.Context, spec *Spec, to dataplane.Target, dial dialer) (refused bool, err error) {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	var ended atomic.Bool
	client := newClient(spec, func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &watchedConn{c, &ended}, nil
	})
	defer client.CloseIdleConnections()
	_, err = get(ctx, client, to, "/")
	if status, ok := errors.AsType[*httpget.StatusError](err); ok {
		return status.Code == http.StatusForbidden, err
	}
	return err != nil && ended.Load(), err
}

// watchedConn records that its peer has closed it, because the errors of a client do not
// always show that.
type watchedConn struct {
	net.Conn
	ended *atomic.Bool
}

// Read implements net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.watch(err)
	return n, err
}

// Write implements net.Conn.
func (c *watchedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.watch(err)
	return n, err
}

func (c *watchedConn) watch(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		c.ended.Store(true)
	}
}

// inboundListener returns the address of a workload's inbound listener.
func inboundListener(w controlplane.HostWorkload, s controlplane.HostService) dataplane.Target {
	return dataplane.Target{Addresses: []string{net.JoinHostPort(w.Address, strconv.Itoa(w.ListenPort))}, Host: s.Host}
}
