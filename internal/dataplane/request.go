package dataplane

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Target is the server to call. Several addresses are called in turn.
type Target struct {
	Addresses []string // HOST:PORT to dial, at least one
	Host      string   // of the request; "" = the address that is dialled
	Path      string   // and query; "" = "/"
}

// Validate returns an error for a target that cannot be called. It refuses characters
// that would end the request's head early.
func (t Target) Validate() error {
	if len(t.Addresses) == 0 {
		return fmt.Errorf("a target without addresses: want at least one")
	}
	for _, text := range []string{t.Host, t.Path} {
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return fmt.Errorf("calling %q: want printable ASCII without spaces", text)
		}
	}
	if t.Path != "" && t.Path[0] != '/' {
		return fmt.Errorf("calling path %q: want one that begins with /", t.Path)
	}
	for _, a := range t.Addresses {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("calling %q: want HOST:PORT", a)
		}
		if _, err := t.url(a); err != nil {
			return fmt.Errorf("calling %q: %w", a, err)
		}
	}
	return nil
}

func (t Target) path() string {
	if t.Path == "" {
		return "/"
	}
	return t.Path
}

func (t Target) url(address string) (*url.URL, error) {
	return url.Parse("http://" + address + t.path())
}

func (t Target) host(address string) string {
	if t.Host == "" {
		return address
	}
	return t.Host
}

// head returns the whole GET request in wire format.
func (t Target) head(address string, keepalive bool) []byte {
	text := "GET " + t.path() + " HTTP/1.1\r\nHost: " + t.host(address) + "\r\n"
	if !keepalive {
		text += "Connection: close\r\n"
	}
	return []byte(text + "\r\n")
}
