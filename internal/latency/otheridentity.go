package latency

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"scaler.mesh/scaler/internal/httpget"
)

// errOtherIdentity reports that a variant would measure something else.
var errOtherIdentity = errors.New("a request with a certificate of the mesh that is no allowed caller's was answered")

// verifyOtherIdentities connects to each workload over TLS past the client's sidecar, as
// the mesh's own proxies do: without a certificate, which every workload must refuse, and
// with the certificate of a caller that is not allowed, which closed workloads must
// refuse and the others must accept.
func (w way) verifyOtherIdentities(ctx context.Context, spec *Spec) error {
	for _, s := range w.servers {
		if s.otherIdentity == nil {
			continue
		}
		nobody := s.otherIdentity.Clone()
		nobody.Certificates = nil
		if err := w.requestOverTLS(ctx, spec, s, nobody); err == nil {
			return fmt.Errorf("%s: a request over TLS without a certificate was answered", s.name)
		} else if !isRemoteAlert(err) {
			return fmt.Errorf("%s: a request over TLS without a certificate was not refused but failed: %w", s.name, err)
		}
		err := w.requestOverTLS(ctx, spec, s, s.otherIdentity)
		_, refused := errors.AsType[*refusedError](err)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: connecting with a certificate of the mesh: %w", s.name, context.Cause(ctx))
		case s.closed && err == nil:
			return fmt.Errorf("%s: %w", s.name, errOtherIdentity)
		case s.closed && !refused:
			return fmt.Errorf("%s: a request with a certificate of the mesh that is no allowed caller's was not refused but failed: %w", s.name, err)
		case !s.closed && err != nil:
			return fmt.Errorf("%s: a request with a certificate of the mesh: %w", s.name, err)
		}
	}
	return nil
}

// isRemoteAlert reports whether the peer has ended a handshake with an alert.
func isRemoteAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// refusedError is a refusal by a peer that had accepted the certificate: the end of the
// connection, or a 403.
type refusedError struct{ cause error }

func (e *refusedError) Error() string { return "refused: " + e.cause.Error() }
func (e *refusedError) Unwrap() error { return e.cause }

// requestOverTLS sends a request with this TLS configuration, in HTTP/1.1. It returns nil
// for a successful answer.
func (w way) requestOverTLS(ctx context.Context, spec *Spec, s checkedServer, config *tls.Config) error {
	dial := w.past
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(spec.Latency.Timeout))
	defer cancel()
	raw, err := dial(ctx, "tcp", s.to.Addresses[0])
	if err != nil {
		return err
	}
	defer raw.Close()
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.to.Addresses[0]+"/", nil)
	if err != nil {
		return err
	}
	request.Host, request.Close = s.to.Host, true
	if err := request.Write(conn); err != nil {
		return ended(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		return ended(err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusForbidden:
		return &refusedError{errors.New(answer.Status)}
	}
	return fmt.Errorf("GET: %s", answer.Status)
}

// ended returns err as a refusal, unless it is a timeout.
func ended(err error) error {
	if httpget.TimedOut(err) {
		return err
	}
	return &refusedError{err}
}
