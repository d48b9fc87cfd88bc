package authority

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	securityv1 "istio.io/api/security/v1alpha1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/istioagent"
	"scaler.mesh/scaler/internal/onecall"
	"scaler.mesh/scaler/pkg/proxy"
)

// Client speaks to the certificate authority for one proxy. Like that of Istio's
// agent, its connection is not the stream's and stays open.
type Client struct {
	options  onecall.Options // its address may be a Service of backends
	backends *proxy.Backends
	headers  metadata.MD
	lifetime time.Duration
	slowdown proxy.Slowdown // of what is a matter of time

	mu       sync.Mutex // held while a request is under way
	link     *link      // nil when there is no connection
	failures int        // one after the other
	redial   redial

	ending sync.Mutex         // never held for long
	closed bool               // guarded by ending, as is cut
	cut    context.CancelFunc // ends the newest connection; nil before the first
}

// errClosed is the error of requests after Close.
var errClosed = status.Error(codes.Canceled, "the client of the certificate authority is closed")

var _ controlplane.Issuer = (*Client)(nil)

// New makes the certificate client of one proxy; it does not connect yet. The address of
// the proxy may be a Service of backends. It fails when the proxy's roots hold no
// certificate.
func New(s proxy.Spec, backends *proxy.Backends) (*Client, error) {
	config, err := trust(s.RootPEM, s.ServerName)
	if err != nil {
		return nil, err
	}
	c := &Client{
		options:  onecall.Options{Address: s.Address, TLS: config},
		backends: backends,
		headers:  headers(s),
		lifetime: cmp.Or(s.CertificateLifetime, DefaultLifetime),
		slowdown: s.Slowdown,
	}
	return c, nil
}

// headers returns the gRPC metadata of every request of a proxy.
func headers(s proxy.Spec) metadata.MD {
	md := make(metadata.MD, len(s.Headers)+1)
	for k, v := range s.Headers {
		md.Set(k, v)
	}
	return md
}

// trusted holds the settings of TLS by roots and server name: thousands of proxies
// have the same, and each set of roots takes more memory than a connection.
var trusted sync.Map

func trust(rootPEM []byte, serverName string) (*tls.Config, error) {
	key := [2]string{string(rootPEM), serverName}
	if config, ok := trusted.Load(key); ok {
		return config.(*tls.Config), nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(rootPEM) {
		return nil, errors.New("reading the certificate authority's root: no certificate in it")
	}
	config, _ := trusted.LoadOrStore(key, &tls.Config{RootCAs: roots, ServerName: serverName, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
	return config.(*tls.Config), nil
}

// Issue has csrPEM signed. Issued.Sent is taken when the connection is up, so
// that dialling is not counted as the authority's time; it is zero when nothing
// was sent, or the authority did not process it.
func (c *Client) Issue(ctx context.Context, token string, csrPEM []byte) (proxy.Issued, error) {
	request, err := proto.Marshal(&securityv1.IstioCertificateRequest{Csr: string(csrPEM), ValidityDuration: int64(c.lifetime / time.Second)})
	if err != nil {
		return proxy.Issued{}, fmt.Errorf("asking for a certificate: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	issued, err := c.ask(ctx, token, request)
	if errors.Is(err, errUnseen) { // what gRPC retries by itself, once
		issued, err = c.ask(ctx, token, request)
	}
	if err != nil {
		c.fail(err)
		return issued, fmt.Errorf("asking for a certificate: %w", err)
	}
	c.failures = 0
	return issued, nil
}

// errUnseen marks a request over the connection of an earlier one that turned out to
// have ended, or was about to: the server has not processed it.
var errUnseen = errors.New("the connection was about to end")

// ask sends a request over the connection there is, or a new one.
func (c *Client) ask(ctx context.Context, token string, request []byte) (proxy.Issued, error) {
	used := c.link != nil && !c.link.over()
	if !used {
		var err error
		if c.link, err = c.connect(ctx); err != nil {
			return proxy.Issued{}, err
		}
	}
	defer context.AfterFunc(ctx, c.link.cut)()
	md := c.headers.Copy()
	md.Set("authorization", "Bearer "+token)
	sent := time.Now()
	a := c.link.call(securityv1.IstioCertificateService_CreateCertificate_FullMethodName, md, request)
	if err := ctx.Err(); err != nil && a.err != nil {
		a.err = err
	} else if a.unseen && used {
		a.err = fmt.Errorf("%w: %w", errUnseen, a.err)
	}
	if a.unseen {
		c.link.stop() // an answer might come all the same
		c.link = nil
		return proxy.Issued{}, a.err
	}
	issued := proxy.Issued{Sent: sent, Received: a.at}
	if a.err != nil {
		return issued, a.err
	}
	var response securityv1.IstioCertificateResponse
	if err := proto.Unmarshal(a.message, &response); err != nil {
		return issued, status.Errorf(codes.Internal, "reading the answer: %v", err)
	}
	if len(response.GetCertChain()) <= 1 { // as in the agent
		return issued, errors.New("the certificate authority answered without a chain")
	}
	for _, certificate := range response.GetCertChain() {
		issued.Chain = append(issued.Chain, []byte(certificate))
	}
	return issued, nil
}

// Istio's agent tries a request as often as a round has tries, over one gRPC
// client, and takes a new one before it goes on (CSRSign of its citadel client, and
// CARetryOptions). That client dials again no sooner than by gRPC's backoff
// (doc/connection-backoff.md); meanwhile requests fail at once.
const (
	redialBase    = time.Second
	redialGrowth  = 1.6
	redialJitter  = 0.2
	redialLongest = 2 * time.Minute
)

// fail keeps or closes the connection after a request failed, as the agent does.
func (c *Client) fail(err error) {
	c.failures++
	if istioagent.Transient(err) && c.failures < istioagent.TriesInRound {
		return
	}
	c.failures, c.redial = 0, redial{}
	if c.link != nil {
		c.link.stop()
		c.link = nil
	}
}

// redial has the backoff of dials that failed.
type redial struct {
	wait time.Duration // after the last; 0 means that it did not fail
	next time.Time
	why  error
}

// failed notes that a dial which began at that time failed. The wait is slowed.
func (r *redial) failed(began time.Time, why error, slowdown proxy.Slowdown) {
	r.wait = min(max(redialBase, time.Duration(float64(r.wait)*redialGrowth)), redialLongest)
	r.next = began.Add(slowdown.Of(time.Duration(float64(r.wait) * (1 + redialJitter*(2*rand.Float64()-1)))))
	r.why = why
}

// Close ends the connection.
func (c *Client) Close() error {
	c.ending.Lock()
	c.closed = true
	if c.cut != nil {
		c.cut()
	}
	c.ending.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != nil {
		c.link.stop()
		c.link = nil
	}
	return nil
}

// link is a connection, which is served whether a call is under way or not.
type link struct {
	conn    *onecall.Conn
	cut     context.CancelFunc
	answers chan answer   // one for each call, unless the connection ends
	ended   chan struct{} // closed when it has, for why
	why     error
}

// answer is the result of a call.
type answer struct {
	message []byte
	at      time.Time
	err     error
	unseen  bool // nobody has seen to the call
}

// connect makes a connection that outlives ctx, unless it is too early for that.
func (c *Client) connect(ctx context.Context) (*link, error) {
	began := time.Now()
	if began.Before(c.redial.next) {
		return nil, c.redial.why
	}
	living, cut := context.WithCancel(context.WithoutCancel(ctx))
	c.ending.Lock()
	closed := c.closed
	c.cut = cut
	c.ending.Unlock()
	if closed {
		cut()
		return nil, errClosed
	}
	defer context.AfterFunc(ctx, cut)()
	conn, err := c.dial(living)
	if err != nil {
		cut()
		err = cmp.Or(ctx.Err(), status.Errorf(codes.Unavailable, "connecting to the certificate authority: %v", err))
		c.redial.failed(began, err, c.slowdown)
		return nil, err
	}
	c.redial = redial{}
	l := &link{conn: conn, cut: cut, answers: make(chan answer, 1), ended: make(chan struct{})}
	go l.serve()
	return l, nil
}

// dial connects to the address, or an endpoint of it.
func (c *Client) dial(ctx context.Context) (*onecall.Conn, error) {
	options := c.options
	var err error
	if options.Address, err = c.backends.Choose(options.Address); err != nil {
		return nil, err
	}
	return onecall.Dial(ctx, options)
}

// call makes a call of one message and waits for its end.
func (l *link) call(method string, md metadata.MD, message []byte) answer {
	if err := l.conn.Ask(method, md, message); err != nil {
		return answer{at: time.Now(), err: err, unseen: true}
	}
	select {
	case a := <-l.answers:
		return a
	case <-l.ended:
	}
	select {
	case a := <-l.answers: // which came first
		return a
	default:
		return answer{at: time.Now(), err: l.why, unseen: l.conn.Untouched()}
	}
}

// over reports whether the connection has ended.
func (l *link) over() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// serve receives until the connection ends.
func (l *link) serve() {
	defer close(l.ended)
	defer l.conn.Close()
	defer l.cut()
	var message []byte
	came := false
	for {
		b, err := l.conn.Receive()
		if err == nil {
			message, came = append([]byte(nil), b.ReadOnlyData()...), true
			b.Free()
			continue
		}
		if !l.conn.Answered() {
			l.why = err
			return
		}
		a := answer{message: message, at: time.Now(), err: err}
		if errors.Is(err, io.EOF) {
			a.err = nil
			if !came {
				a.err = status.Error(codes.Internal, "the certificate authority answered without a message")
			}
		}
		message, came = nil, false
		again := l.conn.Again()
		l.answers <- a // there is room: a call waits for it, or none is made any more
		if !again {
			l.why = errUnseen
			return
		}
	}
}

// stop ends the connection and waits for that.
func (l *link) stop() {
	l.cut()
	<-l.ended
}
