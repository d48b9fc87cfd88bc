// Package onecall is a gRPC client for one call at a time on its own connection. It is
// made for processes with thousands of connections that nearly always wait for the next
// message: a waiting one costs a goroutine and a few kB, but no buffers. The receiving
// goroutine does all the work, except for messages sent by others, pings, and the end of
// the context.
//
// It speaks gRPC over HTTP/2 as https://github.com/grpc/grpc describes it in
// doc/PROTOCOL-HTTP2.md, with frames and header compression by golang.org/x/net, and is
// tested with gRPC's interoperability cases. It has no name resolution, load balancing,
// retries, compression, proxies or concurrent calls.
package onecall

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	// connectTimeout is grpc-go's timeout for TCP, TLS and the server's settings
	// together.
	connectTimeout = 20 * time.Second
	// pingTimeout is grpc-go's wait for the answer to a ping.
	pingTimeout = 20 * time.Second
	// shutdownTimeout limits how long sending the end of a call may take.
	shutdownTimeout = 100 * time.Millisecond

	defaultWindow = 65535 // RFC 9113, 6.9.2
	headerTable   = 4096  // RFC 9113, 6.5.2
	firstStream   = 1     // a client's streams have odd numbers (RFC 9113, 5.1.1)

	// maxHeaderList is the size of a header list that grpc-go's client accepts.
	maxHeaderList = 16 << 20
)

// Options configure a connection.
type Options struct {
	Address   string        // host:port
	TLS       *tls.Config   // nil means plaintext; without a ServerName the certificate must be for the host of Address
	Window    int32         // flow-control window of the stream and of the connection; below 65535 means that
	Keepalive time.Duration // HTTP/2 pings on an idle connection; 0 means none
}

// Conn is a connection with at most one call at a time.
type Conn struct {
	// fixed after Dial
	ctx     context.Context // of the call
	conn    net.Conn
	options Options
	unwatch func() bool // of ctx

	// only the goroutine that receives
	in        input
	framer    *http2.Framer // reads
	incoming  incoming
	header    metadata.MD
	trailer   metadata.MD
	over      error         // how the call ended, io.EOF for OK
	answered  bool          // by a status of the server's
	untouched bool          // the server reported that it has not seen to the call
	taken     int64         // of the budget, for a message
	waited    time.Duration // for it

	stream atomic.Uint32 // of the call, or of the next one

	read atomic.Int64 // when the last frame arrived, since begun
	cut  atomic.Pointer[error]

	mu       sync.Mutex // held while writing
	outgoing outgoing
	ping     ping
}

// begun is the epoch of times that are kept as numbers.
var begun = time.Now()

// Dial opens a connection, which ends with ctx at the latest: it returns when TCP, TLS
// and the exchange of HTTP/2 settings are done.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	o.Window = max(o.Window, defaultWindow)
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: -1, Interval: -1, Count: -1}} // as the system has them
	conn, err := dialer.DialContext(connecting, "tcp", o.Address)
	if err != nil {
		return nil, err
	}
	c := &Conn{ctx: ctx, conn: conn, options: o}
	c.stream.Store(firstStream)
	if err := c.handshake(connecting); err != nil {
		_ = conn.Close()
		return nil, err
	}
	c.unwatch = context.AfterFunc(ctx, func() { c.abort(status.FromContextError(ctx.Err()).Err()) })
	c.keepalive()
	return c, nil
}

// handshake starts HTTP/2 on a TCP connection.
func (c *Conn) handshake(ctx context.Context) error {
	if c.options.TLS != nil {
		config := c.options.TLS
		if len(config.NextProtos) == 0 || config.ServerName == "" {
			config = config.Clone()
			config.NextProtos = []string{http2.NextProtoTLS}
			config.ServerName = cmp.Or(config.ServerName, host(c.options.Address))
		}
		secured := tls.Client(&records{Conn: c.conn}, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			return fmt.Errorf("shaking hands: %w", err)
		}
		if got := secured.ConnectionState().NegotiatedProtocol; got != http2.NextProtoTLS {
			return fmt.Errorf("shaking hands: the server negotiated the protocol %q: want %s", got, http2.NextProtoTLS)
		}
		c.conn = secured
	}
	c.in.open(c.conn)
	c.framer = http2.NewFramer(nil, &c.in)
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(minMaxFrame)
	c.framer.MaxHeaderListSize = maxHeaderList
	c.framer.ReadMetaHeaders = hpack.NewDecoder(headerTable, nil)
	c.outgoing = outgoing{window: defaultWindow, initial: defaultWindow, connWindow: defaultWindow, maxFrame: minMaxFrame, maxTable: headerTable}

	defer context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Now()) })()
	if err := c.greet(); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return nil
}

// host returns the host of a host:port.
func host(address string) string {
	name, _, _ := net.SplitHostPort(address) // it was dialled
	return name
}

// greet exchanges the connection prefaces of RFC 9113, 3.4.
func (c *Conn) greet() error {
	b := []byte(http2.ClientPreface)
	var settings []byte
	if c.options.Window != defaultWindow {
		settings = appendSetting(nil, http2.SettingInitialWindowSize, uint32(c.options.Window))
	}
	b = append(appendFrame(b, http2.FrameSettings, 0, 0, len(settings)), settings...)
	if more := c.options.Window - defaultWindow; more > 0 {
		b = appendWindowUpdate(b, 0, uint32(more))
	}
	if _, err := c.conn.Write(b); err != nil {
		return fmt.Errorf("sending the HTTP/2 preface: %w", err)
	}
	frame, err := c.framer.ReadFrame()
	if err != nil {
		return fmt.Errorf("reading the server's HTTP/2 settings: %w", err)
	}
	theirs, ok := frame.(*http2.SettingsFrame)
	if !ok || theirs.IsAck() {
		return fmt.Errorf("reading the server's HTTP/2 settings: got a frame of type %v", frame.Header().Type)
	}
	return c.settings(theirs)
}

// Open begins the call of a method, as in "/package.Service/Method". The deadline of
// Dial's context is sent to the server. It returns an error while another call is in
// progress, and when the server is about to end the connection.
func (c *Conn) Open(method string, md metadata.MD) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	block, err := c.open(method, md)
	if err != nil {
		return err
	}
	return c.write(func(b []byte) []byte { return c.appendHeaders(b, block) })
}

// Ask combines Open, Send of one message and CloseSend in one write. If it returns an
// error, the server has not received the message.
func (c *Conn) Ask(method string, md metadata.MD, message []byte) error {
	if err := sendable(message); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	block, err := c.open(method, md)
	if err != nil {
		return err
	}
	c.outgoing.closing = true
	return c.write(func(b []byte) []byte { return c.appendMessages(c.appendHeaders(b, block), message) })
}

// open makes the headers that begin a call. The caller holds mu, and sends them.
func (c *Conn) open(method string, md metadata.MD) ([]byte, error) {
	o := &c.outgoing
	switch err := c.ctx.Err(); {
	case err != nil:
		return nil, status.FromContextError(err).Err()
	case o.opened:
		return nil, status.Error(codes.FailedPrecondition, "another call is under way")
	case o.leaving:
		return nil, status.Error(codes.Unavailable, "the server is about to end the connection")
	}
	scheme, authority := "http", c.options.Address
	if c.options.TLS != nil {
		scheme = "https"
		if name := c.options.TLS.ServerName; name != "" {
			authority = name
		}
	}
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: scheme},
		{Name: ":path", Value: method},
		{Name: ":authority", Value: authority},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "user-agent", Value: "grpc-go/" + grpc.Version},
		{Name: "te", Value: "trailers"},
	}
	if deadline, ok := c.ctx.Deadline(); ok {
		fields = append(fields, hpack.HeaderField{Name: "grpc-timeout", Value: timeout(time.Until(deadline))})
	}
	for name, values := range md {
		for _, v := range values {
			if strings.HasSuffix(name, binSuffix) {
				v = encodeBinary(v)
			}
			fields = append(fields, hpack.HeaderField{Name: strings.ToLower(name), Value: v})
		}
	}
	block, err := o.encode(fields)
	o.opened = err == nil
	return block, err
}

// Again prepares the connection for another call after the server has answered the last
// one: Open or Ask begins it, and Receive serves the connection meanwhile. It must be
// called by the goroutine that calls Receive. It returns false, and does nothing, if the
// server is about to end the connection, so that another call is not possible.
func (c *Conn) Again() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := &c.outgoing
	if o.leaving {
		return false
	}
	c.header, c.trailer, c.over, c.answered = nil, nil, nil, false
	c.incoming = incoming{}
	if o.opened && !o.closed {
		// The server did not wait for everything that was to be sent. A write error shows
		// up at the next read.
		_ = c.write(func(b []byte) []byte { return c.appendCancel(b) })
	}
	o.opened, o.closing, o.closed, o.pending = false, false, false, nil
	o.window = o.initial
	c.stream.Add(2)
	return true
}

// Header returns the metadata that the server sent before its first message, as of the
// last return of Receive; nil before.
func (c *Conn) Header() metadata.MD { return c.header }

// Trailer returns the metadata that the server sent with its status; nil before.
func (c *Conn) Trailer() metadata.MD { return c.trailer }

// Answered reports whether the server ended the call with a status, rather than the
// connection, the stream or the context.
func (c *Conn) Answered() bool { return c.answered }

// Untouched reports whether the server reported that it has not processed the call, which
// may then be retried elsewhere (gRPC's transparent retries).
func (c *Conn) Untouched() bool { return c.untouched }

// abort ends the current and all later operations with an error; only the first error
// counts.
func (c *Conn) abort(err error) {
	c.cut.CompareAndSwap(nil, &err)
	_ = c.conn.SetDeadline(time.Now())
}

// cause returns why reading or writing failed: the error of abort, or else err.
func (c *Conn) cause(err error) error {
	if cut := c.cut.Load(); cut != nil {
		return *cut
	}
	return status.Error(codes.Unavailable, err.Error())
}

// Close cancels the call if it is in progress, and closes the connection. No goroutine
// may be receiving.
func (c *Conn) Close() error {
	c.unwatch()
	err := errors.New("closed")
	c.abort(err) // for concurrent senders
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ping.stop()
	if c.over == nil && c.outgoing.opened {
		_ = c.conn.SetWriteDeadline(time.Now().Add(shutdownTimeout))
		_, _ = c.conn.Write(c.appendCancel(nil))
	}
	c.giveBack()
	c.in.release()
	return c.conn.Close()
}
