package onecall

import (
	"io"
	"net"
	"sync"
	"syscall"
)

// inputSize is the size of the read-ahead buffer. It is small because every connection
// whose message waits for the budget has one; most of a message is read directly to its
// destination.
const inputSize = 4 << 10

// inputs lends the buffers for connections on which bytes have arrived.
var inputs = sync.Pool{New: func() any { return new([inputSize]byte) }}

// input reads ahead on a connection, without holding a buffer while there is nothing to
// read: it waits for the socket to become readable before it borrows one. A TLS
// connection is read directly, because it reads ahead itself.
type input struct {
	conn net.Conn
	raw  syscall.RawConn // nil for what cannot be waited for

	buffer *[inputSize]byte // lent; nil when all of it was read
	rest   []byte           // of buffer

	// of the read that goes on
	receive func(fd uintptr) bool
	n       int
	err     error
}

func (i *input) open(conn net.Conn) {
	i.conn = conn
	if tcp, ok := conn.(*net.TCPConn); ok {
		i.raw, _ = tcp.SyscallConn() // an error leaves it nil
		i.receive = i.once
	}
}

// Read implements io.Reader.
func (i *input) Read(p []byte) (int, error) {
	if len(i.rest) == 0 {
		if i.raw == nil || len(p) >= inputSize {
			return i.conn.Read(p)
		}
		if err := i.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, i.rest)
	if i.rest = i.rest[n:]; len(i.rest) == 0 {
		i.release()
	}
	return n, nil
}

// fill waits until bytes arrive, and reads them.
func (i *input) fill() error {
	if err := i.raw.Read(i.receive); err != nil {
		i.release()
		return err
	}
	if i.err != nil || i.n == 0 {
		i.release()
		if i.err == nil {
			i.err = io.EOF
		}
		return i.err
	}
	i.rest = i.buffer[:i.n]
	return nil
}

// once reads the available bytes. It returns false if it must be called again when the
// socket is readable.
func (i *input) once(fd uintptr) bool {
	if i.buffer == nil {
		i.buffer, _ = inputs.Get().(*[inputSize]byte)
	}
	for {
		i.n, i.err = syscall.Read(int(fd), i.buffer[:])
		if i.err != syscall.EINTR {
			break
		}
	}
	if i.err == syscall.EAGAIN {
		i.release()
		return false
	}
	return true
}

// release gives the buffer back.
func (i *input) release() {
	if i.buffer != nil {
		inputs.Put(i.buffer)
		i.buffer, i.rest = nil, nil
	}
}
