package forward

import (
	"io"
	"net"
	"strconv"
	"testing"
)

// backend answers each connection with its name, and echoes what comes then.
func backend(t *testing.T, name string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, name)
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, f *Forwarder) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(f.Port()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// greeting returns the name of the backend that a connection got to; "" if it was closed.
func greeting(c net.Conn) string {
	name := make([]byte, 1)
	if _, err := io.ReadFull(c, name); err != nil {
		return ""
	}
	return string(name)
}

func TestForwarder(t *testing.T) {
	f, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	if got := greeting(dial(t, f)); got != "" {
		t.Errorf("without endpoints a connection got to %q", got)
	}
	a, b := backend(t, "a"), backend(t, "b")
	f.To([]string{a, b})
	seen := map[string]int{}
	var toA net.Conn
	for range 60 { // that one of two is never chosen has a probability of 2^-59
		c := dial(t, f)
		name := greeting(c)
		if seen[name]++; name == "a" {
			toA = c
		}
	}
	if seen["a"]+seen["b"] != 60 || seen["a"] == 0 || seen["b"] == 0 {
		t.Fatalf("connections got to %v, want a and b", seen)
	}
	f.To([]string{b})
	for range 5 {
		if got := greeting(dial(t, f)); got != "b" {
			t.Errorf("a connection got to %q, want b", got)
		}
	}
	if _, err := io.WriteString(toA, "x"); err != nil {
		t.Fatal(err)
	}
	if got := greeting(toA); got != "x" {
		t.Errorf("an established connection answered %q, want x: it stays where it is", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := greeting(toA); got != "" {
		t.Errorf("after Close a connection answered %q", got)
	}
	if err := f.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}
