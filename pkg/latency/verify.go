package latency

import (
	"context"
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

	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/dataplane"
	"scaler.mesh/scaler/pkg/experiment"
)

const (
	// successesInARow is how many requests must get through before a variant counts
	// as ready: each of an Envoy's workers learns of a change by itself.
	successesInARow = 20
	verifyEvery     = 100 * time.Millisecond
)

// errPlaintext reports that a strict variant would measure something else.
var errPlaintext = errors.New("a request in plaintext, past the client's sidecar, was answered")

// verify returns when requests get through a variant and its last tier sees who
// calls: what is measured then is mutual TLS. Of a chain that is its last hop; of
// the others it is known where they are strict. Every workload of a strict variant
// must refuse plaintext, and of a permissive one must not. ctx is unlimited, for reading what
// was wrong.
func (m *sidecarMesh) verify(limited, ctx context.Context, v *meshVariant) error {
	client := newClient(&m.run.spec, nil)
	defer client.CloseIdleConnections()
	caller := clientTier
	if n := len(v.services); n > 1 {
		caller = v.services[n-2].Name
	}
	identity := fmt.Sprintf("/ns/%s/sa/%s", v.client.Namespace, caller)
	way := egress(v.client, v.services[0])
	row := 0
	for row < successesInARow {
		err := checkCaller(limited, client, way, identity)
		row++
		if err == nil {
			continue
		}
		row = 0
		if waitErr := experiment.WaitUntil(limited, time.Now().Add(verifyEvery)); waitErr != nil {
			return errors.Join(fmt.Errorf("sending requests through the sidecars for %s: %w", sidecarTimeout, err), m.refusals(ctx))
		}
	}
	return verifyPlaintext(limited, &m.run.spec, v)
}

// newClient makes a client for a few requests, with the version of HTTP and the
// timeout of a run; dial nil = the network's.
func newClient(spec *Spec, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(spec.HTTP == 1)
	protocols.SetUnencryptedHTTP2(spec.HTTP == 2)
	return &http.Client{Transport: &http.Transport{Protocols: protocols, DialContext: dial}, Timeout: spec.Timeout}
}

// checkCaller is nil when a request is answered by the last tier, which saw a caller of
// that identity.
func checkCaller(ctx context.Context, client *http.Client, to dataplane.Target, identity string) error {
	answer, err := get(ctx, client, to, dataplane.HeadersPath)
	if err != nil {
		return err
	}
	var headers http.Header
	if err := json.Unmarshal(answer, &headers); err != nil {
		return fmt.Errorf("reading what the server saw: %w", err)
	}
	if cert := headers.Get("X-Forwarded-Client-Cert"); !strings.Contains(cert, identity) {
		return fmt.Errorf("the server saw X-Forwarded-Client-Cert %q: want a caller of spiffe://...%s", cert, identity)
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
func verifyPlaintext(ctx context.Context, spec *Spec, v *meshVariant) error {
	for i, tier := range v.tiers {
		for _, w := range tier {
			refused, err := plaintext(ctx, spec, inboundListener(w, v.services[i]))
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("%s: sending a request in plaintext, past the client's sidecar: %w", w.Name, context.Cause(ctx))
			case v.services[i].Strict && err == nil:
				return fmt.Errorf("%s: %w", w.Name, errPlaintext)
			case v.services[i].Strict && !refused:
				return fmt.Errorf("%s: a request in plaintext, past the client's sidecar, was not refused but failed: %w", w.Name, err)
			case !v.services[i].Strict && err != nil:
				return fmt.Errorf("%s: a request in plaintext, past the client's sidecar: %w", w.Name, err)
			}
		}
	}
	return nil
}

// plaintext sends a request. It was refused if whoever was reached ended the
// connection instead of an answer, or answered 403. Whatever
// else went wrong shows nothing.
func plaintext(ctx context.Context, spec *Spec, to dataplane.Target) (refused bool, err error) {
	var ended atomic.Bool
	client := newClient(spec, func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
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

// watchedConn records that its peer has ended it: the errors of a client do not
// always show that.
type watchedConn struct {
	net.Conn
	ended *atomic.Bool
}

// Read is part of net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.watch(err)
	return n, err
}

// Write is part of net.Conn.
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

// inboundListener is a workload's inbound listener.
func inboundListener(w controlplane.HostWorkload, s controlplane.HostService) dataplane.Target {
	return dataplane.Target{Addresses: []string{net.JoinHostPort(w.Address, strconv.Itoa(w.ListenPort))}, Host: s.Host}
}
