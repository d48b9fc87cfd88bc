package onecall

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// minMaxFrame is the size of frames that every peer accepts (RFC 9113, 4.2).
const minMaxFrame = 16 << 10

// errSent means that nothing can be sent any more; Receive returns the reason.
var errSent = errors.New("the call is over")

// outgoing is the state of sending, including what is not sent yet. It is guarded by
// Conn.mu.
type outgoing struct {
	opened             bool  // headers were sent
	window, connWindow int64 // that the server still grants to the stream and to the connection
	initial            int64 // window of new streams
	maxFrame           int
	maxTable           uint32 // of the server's header decoder, the smallest so far
	leaving            bool   // the server is about to end the connection
	pending            []byte // of messages, waiting for the windows to open
	closing, closed    bool   // CloseSend was called; and that was sent
	received           uint32 // bytes that the server was not granted anew
}

// writes lends the buffers in which frames are assembled.
var writes = sync.Pool{New: func() any { return new([]byte) }}

// maxKept is the size up to which such a buffer is kept.
const maxKept = 64 << 10

// write sends the frames that the function appends. The caller holds mu.
func (c *Conn) write(frames func(b []byte) []byte) error {
	lent, _ := writes.Get().(*[]byte)
	b := frames((*lent)[:0])
	var err error
	if len(b) > 0 {
		err = c.writeInTime(b)
	}
	if *lent = b; cap(b) <= maxKept {
		writes.Put(lent)
	}
	if err != nil {
		return fmt.Errorf("writing: %w", c.cause(err))
	}
	return nil
}

// writeInTime writes. With a keepalive, the write must finish within pingTimeout, as with
// grpc-go's TCP_USER_TIMEOUT (gRFC A18): the writer holds mu meanwhile, so that no ping
// could detect that the server is gone.
func (c *Conn) writeInTime(b []byte) error {
	if c.options.Keepalive > 0 {
		c.writeUntil(time.Now().Add(pingTimeout))
		defer c.writeUntil(time.Time{})
	}
	_, err := c.conn.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.abort(status.Error(codes.Unavailable, "the server did not take what was sent")) // for who receives, too
	}
	return err
}

// writeUntil sets the write deadline, unless the connection was aborted.
func (c *Conn) writeUntil(deadline time.Time) {
	_ = c.conn.SetWriteDeadline(deadline)
	if c.cut.Load() != nil { // perhaps just before
		_ = c.conn.SetWriteDeadline(time.Now())
	}
}

// Send sends messages together. It does not wait for flow control: what exceeds the
// windows is sent by Receive when they open. After the end of the call it returns an
// error, and Receive returns the reason.
func (c *Conn) Send(messages ...[]byte) error {
	if err := sendable(messages...); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.outgoing.opened || c.outgoing.closing {
		return errSent
	}
	return c.flush(messages...)
}

// sendable returns an error for a message that is too large.
func sendable(messages ...[]byte) error {
	for _, m := range messages {
		if len(m) > maxMessage {
			return status.Errorf(codes.ResourceExhausted, "sending a message of %d bytes: want %d at most", len(m), maxMessage)
		}
	}
	return nil
}

// CloseSend closes the sending side: no more messages come.
func (c *Conn) CloseSend() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.outgoing.opened {
		return errSent
	}
	c.outgoing.closing = true
	return c.flush()
}

// flush sends the pending bytes and then messages, as far as the windows allow; the rest
// becomes pending. It also sends window updates that are due. The caller holds mu.
func (c *Conn) flush(messages ...[]byte) error {
	if err := c.ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	return c.write(func(b []byte) []byte { return c.appendMessages(b, messages...) })
}

// appendMessages appends what flush sends. The caller holds mu.
func (c *Conn) appendMessages(b []byte, messages ...[]byte) []byte {
	o, stream := &c.outgoing, c.stream.Load()
	b = c.grant(b, c.options.Window/16)
	b = o.appendPending(b, stream)
	for _, m := range messages {
		b = o.appendMessage(b, stream, m)
	}
	if o.closing && !o.closed && len(o.pending) == 0 {
		o.closed = true
		b = appendFrame(b, http2.FrameData, http2.FlagDataEndStream, stream, 0)
	}
	return b
}

// appendPending appends the pending bytes as far as the windows allow.
func (o *outgoing) appendPending(b []byte, stream uint32) []byte {
	for len(o.pending) > 0 && min(o.window, o.connWindow) > 0 {
		n := min(o.window, o.connWindow, int64(o.maxFrame), int64(len(o.pending)))
		b = o.appendData(b, stream, o.pending[:n], nil)
		o.pending = o.pending[n:]
	}
	if len(o.pending) == 0 {
		o.pending = nil
	}
	return b
}

// appendMessage appends a message, or makes it pending.
func (o *outgoing) appendMessage(b []byte, stream uint32, message []byte) []byte {
	var prefix [5]byte
	binary.BigEndian.PutUint32(prefix[1:], uint32(len(message)))
	if len(o.pending) == 0 && int64(len(prefix)+len(message)) <= min(o.window, o.connWindow, int64(o.maxFrame)) {
		return o.appendData(b, stream, prefix[:], message)
	}
	o.pending = append(append(o.pending, prefix[:]...), message...)
	return o.appendPending(b, stream)
}

// appendData adds a DATA frame of two parts.
func (o *outgoing) appendData(b []byte, stream uint32, first, second []byte) []byte {
	n := len(first) + len(second)
	o.window -= int64(n)
	o.connWindow -= int64(n)
	b = appendFrame(b, http2.FrameData, 0, stream, n)
	return append(append(b, first...), second...)
}

// grant appends window updates for the received bytes, if there are at least that many.
// The caller holds mu.
func (c *Conn) grant(b []byte, least int32) []byte {
	n := c.outgoing.received
	if n < uint32(least) {
		return b
	}
	c.outgoing.received = 0
	return appendWindowUpdate(appendWindowUpdate(b, 0, n), c.stream.Load(), n)
}

// granted takes the increment of a window.
func (c *Conn) granted(stream uint32, n uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := &c.outgoing
	switch stream {
	case 0:
		o.connWindow += int64(n)
	case c.stream.Load():
		o.window += int64(n)
	}
	if len(o.pending) == 0 {
		return nil
	}
	return c.flush()
}

// settings applies the server's settings and acknowledges them.
func (c *Conn) settings(f *http2.SettingsFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := &c.outgoing
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err // before it counts: no frame at all fits into one of 0 bytes
		}
		switch s.ID {
		case http2.SettingInitialWindowSize:
			o.window += int64(s.Val) - o.initial
			o.initial = int64(s.Val)
		case http2.SettingMaxFrameSize:
			o.maxFrame = int(s.Val)
		case http2.SettingHeaderTableSize:
			o.maxTable = min(o.maxTable, s.Val)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the server's HTTP/2 settings: %w", err)
	}
	err = c.write(func(b []byte) []byte { return appendFrame(b, http2.FrameSettings, http2.FlagSettingsAck, 0, 0) })
	if err != nil || len(o.pending) == 0 {
		return err
	}
	return c.flush()
}

// encode encodes a call's headers. Its encoder starts with an empty table. For a later
// call this is allowed although the server's table is not empty: entries count from the
// newest, and the oldest are evicted first (RFC 7541, 2.3.3 and 4.4). The table never
// grows again, so that the server agrees on its size.
func (o *outgoing) encode(fields []hpack.HeaderField) ([]byte, error) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSizeLimit(o.maxTable)
	for _, f := range fields {
		if err := encoder.WriteField(f); err != nil {
			return nil, fmt.Errorf("encoding the header %s: %w", f.Name, err)
		}
	}
	return block.Bytes(), nil
}

// appendHeaders appends the frames that open the stream. The caller holds mu.
func (c *Conn) appendHeaders(b, block []byte) []byte {
	stream, kind := c.stream.Load(), http2.FrameHeaders
	for rest := block; kind == http2.FrameHeaders || len(rest) > 0; kind = http2.FrameContinuation {
		part := rest[:min(len(rest), c.outgoing.maxFrame)]
		rest = rest[len(part):]
		var flags http2.Flags
		if len(rest) == 0 {
			flags = http2.FlagHeadersEndHeaders // and FlagContinuationEndHeaders
		}
		b = append(appendFrame(b, kind, flags, stream, len(part)), part...)
	}
	return b
}

// appendFrame appends the header of a frame (RFC 9113, 4.1).
func appendFrame(b []byte, kind http2.FrameType, flags http2.Flags, stream uint32, length int) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags))
	return appendUint32(b, stream)
}

// appendCancel appends the frame that cancels the call.
func (c *Conn) appendCancel(b []byte) []byte {
	return appendUint32(appendFrame(b, http2.FrameRSTStream, 0, c.stream.Load(), 4), uint32(http2.ErrCodeCancel))
}

func appendUint32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }

func appendSetting(b []byte, id http2.SettingID, value uint32) []byte {
	return appendUint32(binary.BigEndian.AppendUint16(b, uint16(id)), value)
}

func appendWindowUpdate(b []byte, stream, n uint32) []byte {
	return appendUint32(appendFrame(b, http2.FrameWindowUpdate, 0, stream, 4), n)
}

// ping holds the state of keepalive pings, which detect a dead connection. It is guarded
// by Conn.mu.
type ping struct {
	timer *time.Timer // nil means none
	sent  int64       // when, since begun; 0 if none is under way
	ended bool
}

func (p *ping) stop() {
	p.ended = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// keepalive schedules pings as grpc-go does: it sends one when nothing was read for a
// time, and ends the connection when then nothing is read for pingTimeout.
func (c *Conn) keepalive() {
	if c.options.Keepalive <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ping.timer = time.AfterFunc(c.options.Keepalive, c.onKeepalive)
}

func (c *Conn) onKeepalive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.ping
	if p.ended {
		return
	}
	now, last := int64(time.Since(begun)), c.read.Load()
	if last >= p.sent {
		p.sent = 0
	}
	quiet := time.Duration(now - last)
	switch {
	case p.sent != 0:
		c.abort(status.Error(codes.Unavailable, "the server did not answer a keepalive ping"))
	case quiet < c.options.Keepalive:
		p.timer.Reset(c.options.Keepalive - quiet)
	default:
		p.sent = now
		p.timer.Reset(pingTimeout)
		// What cannot be sent is found out by reading.
		_ = c.write(func(b []byte) []byte {
			return append(appendFrame(b, http2.FramePing, 0, 0, 8), make([]byte, 8)...)
		})
	}
}
