package authority

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	securityv1 "istio.io/api/security/v1alpha1"

	"scaler.mesh/scaler/internal/onecall"
	"scaler.mesh/scaler/pkg/controlplane"
)

// Client speaks to the certificate authority for one proxy. Like that of Istio's
// agent, its connection is apart from the stream's and stays open, until a request
// fails.
type Client struct {
	options  onecall.Options
	headers  metadata.MD
	lifetime time.Duration

	mu   sync.Mutex // held while a request is under way
	link *link      // nil when there is no connection

	ending sync.Mutex         // never held for long
	closed bool               // guarded by ending, as is cut
	cut    context.CancelFunc // ends the newest connection; nil before the first
}

// errClosed is the error of requests after Close.
var errClosed = status.Error(codes.Canceled, "the client of the certificate authority is closed")

var _ controlplane.Issuer = (*Client)(nil)

// New makes the certificate client of one proxy; it does not connect yet. It
// fails when the proxy's roots hold no certificate.
func New(s controlplane.Sidecar) (*Client, error) {
	config, err := trust(s.RootPEM, s.ServerName)
	if err != nil {
		return nil, err
	}
	c := &Client{
		options:  onecall.Options{Address: s.Address, TLS: config},
		headers:  make(metadata.MD, len(s.Headers)+1),
		lifetime: cmp.Or(s.CertificateLifetime, DefaultLifetime),
	}
	for k, v := range s.Headers {
		c.headers.Set(k, v)
	}
	return c, nil
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
// was sent. A request that fails ends the connection, as in Istio's agent.
func (c *Client) Issue(ctx context.Context, token string, csrPEM []byte) (controlplane.Issued, error) {
	request, err := proto.Marshal(&securityv1.IstioCertificateRequest{
		Csr:              string(csrPEM),
		ValidityDuration: int64(c.lifetime / time.Second),
	})
	if err != nil {
		return controlplane.Issued{}, fmt.Errorf("asking for a certificate: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	issued, err := c.ask(ctx, token, request)
	if err != nil {
		return issued, fmt.Errorf("asking for a certificate: %w", err)
	}
	return issued, nil
}

// ask sends a request over the connection there is, or a new one.
func (c *Client) ask(ctx context.Context, token string, request []byte) (issued controlplane.Issued, err error) {
	if c.link == nil || c.link.over() {
		if c.link, err = c.connect(ctx); err != nil {
			return issued, err
		}
	}
	defer context.AfterFunc(ctx, c.link.cut)()
	defer func() {
		if err != nil {
			c.link.stop()
			c.link = nil
			err = cmp.Or(ctx.Err(), err)
		}
	}()
	md := c.headers.Copy()
	md.Set("authorization", "Bearer "+token)
	issued.Sent = time.Now()
	a := c.link.call(securityv1.IstioCertificateService_CreateCertificate_FullMethodName, md, request)
	issued.Received = a.at
	if a.err != nil {
		return issued, a.err
	}
	var response securityv1.IstioCertificateResponse
	if err := proto.Unmarshal(a.message, &response); err != nil {
		return issued, status.Errorf(codes.Internal, "reading the answer: %v", err)
	}
	for _, certificate := range response.GetCertChain() {
		issued.Chain = append(issued.Chain, []byte(certificate))
	}
	return issued, nil
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
	ctx     context.Context // of the connection
	cut     context.CancelFunc
	answers chan answer   // one for each call, unless the connection ends
	ended   chan struct{} // closed when it has, for why
	why     error
}

// answer is how a call ended.
type answer struct {
	message []byte
	at      time.Time
	err     error
}

// connect makes a connection that outlives ctx.
func (c *Client) connect(ctx context.Context) (*link, error) {
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
	conn, err := onecall.Dial(living, c.options)
	if err != nil {
		cut()
		return nil, cmp.Or(ctx.Err(), status.Errorf(codes.Unavailable, "connecting to the certificate authority: %v", err))
	}
	l := &link{conn: conn, ctx: living, cut: cut, answers: make(chan answer, 1), ended: make(chan struct{})}
	go l.serve()
	return l, nil
}

// call makes a call of one message and waits for its end.
func (l *link) call(method string, md metadata.MD, message []byte) answer {
	// That these fail is said by the answer, too, and better.
	_ = l.conn.Open(method, md)
	_ = l.conn.Send(message)
	_ = l.conn.CloseSend()
	select {
	case a := <-l.answers:
		return a
	case <-l.ended:
	}
	select {
	case a := <-l.answers: // which came first
		return a
	default:
		return answer{at: time.Now(), err: l.why}
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
	var message []byte
	for {
		b, err := l.conn.Receive()
		if err == nil {
			message = append(message[:0], b.ReadOnlyData()...)
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
			if message == nil {
				a.err = status.Error(codes.Internal, "the certificate authority answered without a message")
			}
		}
		message = nil
		l.conn.Again()
		select {
		case l.answers <- a:
		case <-l.ctx.Done(): // an answer that nobody waits for
			l.why = l.ctx.Err()
			return
		}
	}
}

// stop ends the connection and waits for that.
func (l *link) stop() {
	l.cut()
	<-l.ended
}
