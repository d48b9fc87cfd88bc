package dataplane

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// http2 calls over HTTP/2 without TLS and with prior knowledge. It uses the standard
// library's transport, which opens another connection when a server accepts no more
// streams on one.
type http2 struct {
	// fixed after start
	load      Load
	sink      *sink
	transport *http.Transport
	requests  []*http.Request // by address
	ctx       context.Context
	stop      context.CancelFunc

	ended sync.WaitGroup
	next  atomic.Int64
	under atomic.Int64 // requests under way
	open  atomic.Int64
	most  atomic.Int64 // that open ever was
}

func newHTTP2(ctx context.Context, l Load, s *sink) *http2 {
	h := &http2{load: l, sink: s}
	h.ctx, h.stop = context.WithCancel(ctx)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	h.transport = &http.Transport{Protocols: protocols, DialContext: h.dial, DisableKeepAlives: l.NoKeepalive, DisableCompression: true}
	for _, address := range l.Target.Addresses {
		url, _ := l.Target.url(address) // was validated
		h.requests = append(h.requests, &http.Request{Method: http.MethodGet, URL: url, Host: l.Target.host(address), Header: http.Header{}})
	}
	return h
}

func (h *http2) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := h.load.Dial(ctx, network, address)
	if err != nil {
		return nil, &dialError{err}
	}
	now := h.open.Add(1)
	for most := h.most.Load(); now > most && !h.most.CompareAndSwap(most, now); most = h.most.Load() {
	}
	return &counted{Conn: c, open: &h.open}, nil
}

// dialError marks errors of dialling.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// counted is a connection that is counted while it is open.
type counted struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

func (h *http2) call(due time.Duration) bool {
	if h.under.Add(1) > int64(h.load.Connections) {
		h.under.Add(-1)
		h.sink.came(due)
		return false
	}
	request := h.requests[int((h.next.Add(1)-1)%int64(len(h.requests)))]
	h.ended.Go(func() {
		problem := h.exchange(request, due)
		h.under.Add(-1)
		h.sink.done(due, problem)
	})
	return true
}

// exchange sends a request and reads its answer.
func (h *http2) exchange(request *http.Request, due time.Duration) (problem string) {
	h.sink.came(due) // here, where the wait for this goroutine's turn is over
	ctx, cancel := context.WithDeadline(h.ctx, h.sink.start.Add(due+h.load.Timeout))
	defer cancel()
	answer, err := h.transport.RoundTrip(request.WithContext(ctx))
	if err == nil {
		_, err = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	_, dialling := errors.AsType[*dialError](err)
	switch {
	case err == nil:
		return problemOf(answer.StatusCode)
	case ctx.Err() != nil:
		return problemTimeout
	case dialling:
		return problemConnect
	default:
		return problemClosed
	}
}

func (h *http2) abort() { h.stop() }

func (h *http2) close() {
	h.stop()
	h.ended.Wait()
	h.transport.CloseIdleConnections()
}

func (h *http2) connections() int { return int(h.most.Load()) }
