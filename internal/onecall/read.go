package onecall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// maxMessage is the size of the largest message that is accepted.
const maxMessage = 1 << 30

// announced limits the memory allocated for a message on the strength of its announced
// length; more is allocated as its bytes arrive.
const announced = 1 << 20

// incoming is the position of the next byte in the stream of messages and frames.
type incoming struct {
	frame   int  // bytes left of the DATA frame's messages
	padding int  // that follow
	last    bool // the frame ends the stream

	prefix [5]byte
	have   int     // of the prefix, then of the message
	size   int     // of the message
	body   *[]byte // nil while the prefix is read; grows to size
}

// Receive returns the next message, which the caller frees before it receives
// again. It returns io.EOF when the server ended the call with OK, else its status.
func (c *Conn) Receive() (mem.Buffer, error) {
	c.giveBack()
	if err := c.ctx.Err(); err != nil { // which abort may be about to report
		c.end(status.FromContextError(err).Err())
	}
	for c.over == nil {
		message, err := c.next()
		if message != nil {
			return message, nil
		}
		if err != nil {
			c.end(c.wrong(err))
		}
	}
	return nil, c.over
}

// end notes how the call ended.
func (c *Conn) end(err error) {
	if c.over == nil {
		c.over = err
	}
	if body := c.incoming.body; body != nil {
		messages.Put(body)
		c.incoming.body = nil
	}
	c.giveBack()
	if !c.answered { // otherwise the bytes belong to the next call
		c.in.release()
	}
}

// wrong makes a status of an error.
func (c *Conn) wrong(err error) error {
	var broken http2.ConnectionError
	var stream http2.StreamError
	switch {
	case c.cut.Load() != nil:
		return c.cause(err)
	case errors.As(err, &broken), errors.As(err, &stream), errors.Is(err, errProtocol):
		return status.Error(codes.Internal, err.Error())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return status.Error(codes.Unavailable, "the server closed the connection")
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return c.cause(err)
}

// errProtocol means that the server violated gRPC over HTTP/2.
var errProtocol = errors.New("the server broke the protocol")

// next processes a frame, or a part of one. It returns a message when one is complete.
func (c *Conn) next() (mem.Buffer, error) {
	in := &c.incoming
	if in.frame > 0 {
		return c.message()
	}
	if in.last {
		return nil, fmt.Errorf("%w: the stream ended without a status", errProtocol)
	}
	head, err := c.framer.ReadFrameHeader()
	if err != nil {
		return nil, err
	}
	c.read.Store(int64(time.Since(begun)))
	if head.Type == http2.FrameData {
		return nil, c.data(head)
	}
	frame, err := c.framer.ReadFrameForHeader(head)
	if err != nil {
		return nil, err
	}
	return nil, c.frame(frame)
}

// frame takes a frame that holds no data.
func (c *Conn) frame(frame http2.Frame) error {
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		if f.StreamID == c.stream.Load() {
			if !c.opened() {
				return fmt.Errorf("%w: headers on stream %d, which is not open", errProtocol, f.StreamID)
			}
			return c.headers(f)
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return c.settings(f)
		}
	case *http2.WindowUpdateFrame:
		return c.granted(f.StreamID, f.Increment)
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.locked(func(b []byte) []byte {
				return append(appendFrame(b, http2.FramePing, http2.FlagPingAck, 0, 8), f.Data[:]...)
			})
		}
	case *http2.RSTStreamFrame:
		if f.StreamID == c.stream.Load() {
			c.untouched = f.ErrCode == http2.ErrCodeRefusedStream
			return c.reset(f.ErrCode)
		}
	case *http2.GoAwayFrame: // a call that the server has seen continues
		if opened := c.leave(); !opened || f.LastStreamID < c.stream.Load() {
			c.untouched = opened
			return status.Errorf(codes.Unavailable, "the server went away: %v %s", f.ErrCode, f.DebugData())
		}
	case *http2.PushPromiseFrame:
		return fmt.Errorf("%w: it pushed", errProtocol)
	}
	return nil
}

// opened reports whether a call is under way.
func (c *Conn) opened() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outgoing.opened
}

// leave prevents further calls, and reports whether one is in progress.
func (c *Conn) leave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outgoing.leaving = true
	return c.outgoing.opened
}

// locked sends frames.
func (c *Conn) locked(frames func(b []byte) []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write(frames)
}

// data begins a DATA frame. The server is granted the same number of bytes again,
// together with the next write or when half of the windows was used.
func (c *Conn) data(head http2.FrameHeader) error {
	in := &c.incoming
	length := int(head.Length)
	c.mu.Lock()
	c.outgoing.received += head.Length
	var err error
	if c.outgoing.received >= uint32(c.options.Window)/2 {
		err = c.write(func(b []byte) []byte { return c.grant(b, 0) })
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	padding := 0
	if head.Flags.Has(http2.FlagDataPadded) {
		var one [1]byte
		if _, err := io.ReadFull(&c.in, one[:]); err != nil {
			return err
		}
		length--
		if padding = int(one[0]); padding > length {
			return fmt.Errorf("%w: more padding than frame", errProtocol)
		}
	}
	if head.StreamID != c.stream.Load() || c.header == nil {
		return fmt.Errorf("%w: data on stream %d before its headers", errProtocol, head.StreamID)
	}
	in.frame, in.padding, in.last = length-padding, padding, head.Flags.Has(http2.FlagDataEndStream)
	if in.frame == 0 {
		return c.skip()
	}
	return nil
}

// skip reads over the padding of a frame.
func (c *Conn) skip() error {
	n := c.incoming.padding
	c.incoming.padding = 0
	_, err := io.CopyN(io.Discard, &c.in, int64(n))
	return err
}

// message reads the part of a message in a DATA frame, and returns the message if that
// completes it.
func (c *Conn) message() (mem.Buffer, error) {
	in := &c.incoming
	target := in.prefix[:]
	if in.body != nil {
		target = *in.body
	}
	target = target[in.have:]
	target = target[:min(len(target), in.frame)]
	n, err := io.ReadFull(&c.in, target)
	in.have += n
	in.frame -= n
	if err != nil {
		return nil, err
	}
	if in.frame == 0 {
		if err := c.skip(); err != nil {
			return nil, err
		}
	}
	if in.body == nil {
		if in.have < len(in.prefix) {
			return nil, nil
		}
		if in.prefix[0] != 0 {
			return nil, fmt.Errorf("%w: a compressed message", errProtocol)
		}
		size := binary.BigEndian.Uint32(in.prefix[1:])
		if size > maxMessage {
			return nil, status.Errorf(codes.ResourceExhausted, "receiving a message of %d bytes: want %d at most", size, maxMessage)
		}
		c.take(int(size))
		in.have, in.size, in.body = 0, int(size), messages.Get(min(int(size), announced))
	}
	if in.have < in.size {
		if in.have == len(*in.body) {
			in.grow()
		}
		return nil, nil
	}
	body := in.body
	in.have, in.body = 0, nil
	return mem.NewBuffer(body, messages), nil
}

// grow doubles the body of a message, or extends it to the message's length if that is
// less.
func (in *incoming) grow() {
	small := in.body
	in.body = messages.Get(min(in.size, 2*len(*small)))
	copy(*in.body, *small)
	messages.Put(small)
}

// messages lends the buffers of messages. Borrowed buffers are not cleared.
var messages = &bufferPool{}

// bufferPool lends buffers in sizes of powers of two, from smallest to maxMessage.
type bufferPool struct{ sizes [21]sync.Pool }

const smallest = 10 // 1 KiB

// class returns the index of the smallest size that holds n bytes.
func class(n int) int {
	i := 0
	for n > 1<<(smallest+i) {
		i++
	}
	return i
}

// Get implements mem.BufferPool.
func (p *bufferPool) Get(n int) *[]byte {
	i := class(n)
	if b, ok := p.sizes[i].Get().(*[]byte); ok {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n, 1<<(smallest+i))
	return &b
}

// Put implements mem.BufferPool.
func (p *bufferPool) Put(b *[]byte) {
	p.sizes[class(cap(*b))].Put(b)
}
