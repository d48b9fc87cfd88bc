package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"golang.org/x/sys/unix"
)

// What is reserved, or listened on at any address, is not reserved again.
var _ = Describe("an address", func() {
	for _, address := range []string{"127.0.0.1", "[::1]", ""} {
		It("is reserved once: "+address, func() { testReservedOnce(GinkgoTB(), address) })
	}
})

func testReservedOnce(t testing.TB, address string) {
	// Not of those that the kernel gives to the connections of other tests.
	l, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Skip("there is no such address: " + err.Error())
	}
	l.Close()
	var r reserved
	release := func() {
		for _, one := range r.sockets {
			_ = unix.Close(one.socket)
		}
		r.sockets = nil
	}
	defer release()
	port := 0
	for range portTries {
		port = lowestPort + rand.IntN(lowestPort)
		if err = r.add(port); err != nil {
			continue // listened on, or reserved by another test, which would not keep this one from listening
		}
		release()
		if l, err = net.Listen("tcp", fmt.Sprintf("%s:%d", address, port)); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
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
	if l, err = net.Listen("tcp", fmt.Sprintf("%s:%d", address, port)); err != nil {
		t.Fatalf("what is reserved cannot be listened on: %v", err)
	}
	defer l.Close()
	r.sockets[0].since = time.Now().Add(-2 * reservedFor)
	other, err := FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	for err = r.add(other[0] + 1); errors.Is(err, unix.EADDRINUSE); err = r.add(other[0] + 1) {
		if other, err = FreePorts(1); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil || len(r.sockets) != 1 {
		t.Errorf("%d sockets are held after a reservation grew old (%v): want 1", len(r.sockets), err)
	}
}
