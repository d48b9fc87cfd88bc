package process

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// What is reserved, or listened on at any address, is not reserved again.
func TestReservedOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	var r reserved
	defer func() {
		for _, socket := range r.sockets {
			_ = unix.Close(socket)
		}
	}()
	if err := r.add(port); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a port that is listened on is reserved: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.add(port); err != nil {
		t.Fatal(err)
	}
	if err := r.add(port); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a port is reserved twice: %v", err)
	}
	if len(r.sockets) != 1 {
		t.Errorf("%d sockets are held: want 1", len(r.sockets))
	}
}
