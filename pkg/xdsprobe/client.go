package xdsprobe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"scaler.mesh/scaler/internal/onecall"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/proxy"
)

// Client is an ADS client with its own connection.
type Client struct {
	// fixed after New
	config   Config
	node     []byte // encoded
	trust    *trust // nil for plaintext
	store    *Store
	observer proxy.Observer
	err      error // of the Config

	tokens tokens

	// used only by Run's goroutine, and by a stream as its comment states
	state   state
	backoff backoff
	attempt int
	server  string // that the attempt was made to
	served  bool   // a stream that has ended was answered
	// answered is true if the server ended the last attempt with a status.
	answered bool

	holding sync.Mutex // held while the state's tables change or are read from outside

	cutting sync.Mutex
	cut     context.CancelFunc // of the current attempt; nil between two. Guarded by cutting.
	stream  *stream            // of that, once there is one. Guarded by cutting.
}

// New returns a client. It subscribes to the types of the store, shares the resources it
// holds with the store's other clients, and reports events to obs.
func New(c Config, store *Store, obs proxy.Observer) *Client {
	s := &Client{store: store, observer: obs}
	s.err = s.prepare(c)
	return s
}

// prepare fills in what New fixes.
func (s *Client) prepare(c Config) (err error) {
	if c.Variant == "" {
		c.Variant = Delta
	}
	if c.Variant != Delta && c.Variant != SotW {
		return fmt.Errorf("parsing xDS variant %q: want %s or %s", c.Variant, Delta, SotW)
	}
	if c.BackoffBase == 0 {
		c.BackoffBase = streamBackoffBase
	}
	if c.BackoffMax == 0 {
		c.BackoffMax = streamBackoffMax
	}
	c.BackoffBase, c.BackoffMax = c.Slowdown.Of(c.BackoffBase), c.Slowdown.Of(c.BackoffMax)
	if s.node, err = c.encodeNode(); err != nil {
		return fmt.Errorf("encoding the node metadata of %s: %w", c.ID, err)
	}
	c.Metadata = nil // encoded now, and large
	if c.RootPEM != nil {
		if s.trust, err = s.store.trustOf(c.RootPEM, c.ServerName); err != nil {
			return err
		}
	}
	if c.Certificate != nil && c.RootPEM == nil {
		return errors.New("a client certificate needs TLS: want roots")
	}
	s.config = c
	if err = s.state.prepare(&c, s.store); err != nil {
		return err
	}
	s.state.certified.Store(!c.AwaitCertificate)
	s.backoff = backoff{base: c.BackoffBase, max: c.BackoffMax}
	s.tokens = tokens{source: c.Token, fetched: func(e proxy.TokenFetched) { s.observer.TokenFetched(c.ID, e) }}
	return nil
}

// encodeNode encodes the node of the first request, without its Build.
func (c *Config) encodeNode() ([]byte, error) {
	node := &corev3.Node{Id: c.NodeID, Cluster: c.NodeCluster}
	if c.Build == nil {
		node.UserAgentName = "envoy"
	}
	if len(c.Metadata) > 0 {
		var err error
		if node.Metadata, err = structpb.NewStruct(c.Metadata); err != nil {
			return nil, err
		}
	}
	return proto.Marshal(node)
}

// Err returns the error of the Config, or nil if it is valid.
func (s *Client) Err() error { return s.err }

// Token returns the token that the client's next stream would carry; "" without a
// TokenSource. The last one is returned until it is due to be renewed.
func (s *Client) Token(ctx context.Context) (string, error) { return s.tokens.get(ctx) }

// Roots returns the roots that the server is verified against; nil for plaintext.
func (s *Client) Roots() *x509.CertPool {
	if s.trust == nil {
		return nil
	}
	return s.trust.roots
}

// Run connects and serves the stream, repeatedly, until the context ends. It returns
// after all the client's goroutines have ended. A failure on the way is reported as an
// event and retried; the only error is that of an invalid Config. A Client can run only
// once.
func (s *Client) Run(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	for ctx.Err() == nil {
		token, err := s.tokens.get(ctx)
		if err != nil {
			task.Sleep(ctx, s.retry(proxy.StreamEnded{Class: proxy.Unauthorized, Err: err}))
			continue
		}
		end := s.try(ctx, token)
		if end.Class != proxy.Stopped {
			end.Backoff = s.retry(end)
		}
		s.count(end)
		s.observer.StreamEnded(s.config.ID, end)
		if end.Class == proxy.Stopped || !task.Sleep(ctx, end.Backoff) {
			return nil
		}
	}
	return nil
}

// retry returns how long to wait before the next attempt, after one has ended.
func (s *Client) retry(end proxy.StreamEnded) time.Duration {
	if s.config.Retry != nil {
		return s.config.Slowdown.Of(s.config.Retry(end, s.answered))
	}
	return s.backoff.next()
}

// count adds the end of an attempt to the counters.
func (s *Client) count(end proxy.StreamEnded) {
	s.served = s.served || end.Responses > 0
	switch end.Class {
	case proxy.Stopped:
	case proxy.Refused:
		s.store.counters.Refusals.Add(1)
	default:
		s.store.counters.Failures.Add(1)
	}
}

// try makes one attempt: it opens a connection and a stream on it, and processes
// everything received until the stream ends.
func (s *Client) try(ctx context.Context, token string) proxy.StreamEnded {
	s.attempt++
	s.answered = false
	s.store.counters.Attempts.Add(1)
	end := proxy.StreamEnded{Attempt: s.attempt, Dialed: time.Now()}

	class, err := s.connect(ctx, token, &end)
	end.Ended, end.Class, end.Err = time.Now(), class, err
	if ctx.Err() != nil {
		end.Class, end.Err = proxy.Stopped, ctx.Err()
	}
	if end.Err == io.EOF {
		end.Err = nil
	}
	return end
}

// connect dials, opens the stream and serves it.
func (s *Client) connect(ctx context.Context, token string, end *proxy.StreamEnded) (_ proxy.Class, err error) {
	// The connection is closed when the attempt is over, before this context ends.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.setCut(cancel)
	defer s.setCut(nil)
	if s.server, err = s.config.Backends.Choose(s.config.Address); err != nil {
		return proxy.Unreachable, err
	}
	conn, err := onecall.Dial(ctx, s.transport(s.server))
	if err != nil {
		return proxy.Unreachable, fmt.Errorf("connecting to %s: %w", s.server, err)
	}
	defer conn.Close()
	end.Connected = time.Now()
	if err := conn.Open(s.config.Variant.method(), s.headers(token)); err != nil {
		return proxy.Unreachable, fmt.Errorf("opening a stream to %s: %w", s.server, err)
	}
	s.store.counters.Connected.Add(1)
	defer s.store.counters.Connected.Add(-1)

	one := &stream{conn: conn, client: s, end: end}
	s.setStream(one)
	defer s.setStream(nil)
	err = one.serve()
	s.answered = conn.Answered()
	return classify(err, end.Responses, s.answered), err
}

// Reset cuts the client's stream and connection, or the next ones if it is just
// connecting: the attempt ends as Lost or Unreachable, and the next one follows as after
// any loss. Between two attempts it does nothing.
func (s *Client) Reset() {
	s.cutting.Lock()
	defer s.cutting.Unlock()
	if s.cut != nil {
		s.cut()
	}
}

func (s *Client) setCut(cut context.CancelFunc) {
	s.cutting.Lock()
	defer s.cutting.Unlock()
	s.cut = cut
}

func (s *Client) setStream(one *stream) {
	s.cutting.Lock()
	defer s.cutting.Unlock()
	s.stream = one
}

// Certified notifies the client that the workload's first certificate has arrived, so that
// it continues what waits for it; see Config.AwaitCertificate. The Observer must
// not call it.
func (s *Client) Certified() {
	if s.state.certified.Swap(true) {
		return
	}
	s.cutting.Lock()
	one := s.stream
	s.cutting.Unlock()
	if one != nil {
		one.certified()
	}
}

// opened reports that a stream is up.
func (s *Client) opened(end *proxy.StreamEnded, requested time.Time) {
	if s.served {
		s.store.counters.Reconnects.Add(1)
	}
	s.observer.StreamOpened(s.config.ID, proxy.StreamOpened{
		Attempt: end.Attempt, Server: s.server, Dialed: end.Dialed, Connected: end.Connected, Requested: requested,
	})
}

// report counts an update and reports it.
func (s *Client) report(u *proxy.Update) {
	c := &s.store.counters
	if u.Rejected == nil {
		c.Acks.Add(1)
	} else {
		c.Nacks.Add(1)
	}
	if u.Wasted {
		c.Wasted.Add(1)
	}
	s.observer.Updated(s.config.ID, *u)
}

// transport returns the options of a connection to an address.
func (s *Client) transport(address string) onecall.Options {
	o := onecall.Options{Address: address, Window: window, Keepalive: s.config.Keepalive}
	if s.trust != nil {
		o.TLS = s.trust.tls
		if certificate := s.config.Certificate; certificate != nil {
			o.TLS = o.TLS.Clone()
			o.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate() }
		}
	}
	return o
}

// headers returns the stream's metadata.
func (s *Client) headers(token string) metadata.MD {
	md := make(metadata.MD, len(s.config.Headers)+1)
	for k, v := range s.config.Headers {
		md.Set(k, v)
	}
	if token != "" {
		md.Set("authorization", "Bearer "+token)
	}
	return md
}
