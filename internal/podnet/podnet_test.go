package podnet

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/process"
)

func TestParseRules(t *testing.T) {
	got, err := ParseRules(`# a comment
*nat
:IN - [0:0]
-A PREROUTING -p tcp -j IN
-A IN -p tcp --dport 15010 -j RETURN
-I IN -p tcp --match multiport --dports 80,90:99 -j RETURN
-A IN -p tcp -j REDIRECT --to-port 15003
-A OUTPUT -o lo ! -d 127.0.0.1/32 -m owner --uid-owner 1500 -j IN
-A OUTPUT -o lo -m owner ! --uid-owner 1500 -j RETURN
-A OUTPUT -d 10.0.0.0/8 -j ACCEPT
COMMIT`)
	if err != nil {
		t.Fatal(err)
	}
	loopback, ten := netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")
	want := Rules{[]chain{
		{"PREROUTING", []rule{{verdict: "IN"}}},
		{"OUTPUT", []rule{
			{out: "lo", destination: match[netip.Prefix]{true, true, loopback}, owner: match[uint32]{true, false, 1500}, verdict: "IN"},
			{out: "lo", owner: match[uint32]{true, true, 1500}, verdict: "RETURN"},
			{destination: match[netip.Prefix]{true, false, ten}, verdict: "ACCEPT"},
		}},
		{"IN", []rule{
			{ports: []portRange{{80, 80}, {90, 99}}, verdict: "RETURN"},
			{ports: []portRange{{15010, 15010}}, verdict: "RETURN"},
			{verdict: "REDIRECT", port: 15003},
		}},
	}}
	all := cmp.AllowUnexported(Rules{}, chain{}, rule{}, match[netip.Prefix]{}, match[uint32]{}, portRange{})
	if diff := cmp.Diff(want, got, all, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseRulesRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"*filter":                              "want *nat",
		"-A NOWHERE -j RETURN":                 "chain NOWHERE does not exist",
		"-A OUTPUT -j NOWHERE":                 "jumps to NOWHERE",
		"-A OUTPUT -p udp -j RETURN":           "want tcp",
		"-A OUTPUT -s 10.0.0.1 -j RETURN":      "-s is not known",
		"-A OUTPUT ! -o lo -j RETURN":          "! -o is not known",
		"-A OUTPUT -p tcp":                     "it has no -j",
		"-A OUTPUT -j":                         "-j has no value",
		"-A OUTPUT -j REDIRECT":                "want --to-port with REDIRECT",
		"-A OUTPUT -j RETURN --to-port 1":      "want --to-port with REDIRECT",
		"-A OUTPUT --dport 70000 -j RETURN":    "out of range",
		"-A OUTPUT -d ::1/128 -j RETURN":       "want IPv4",
		"-A OUTPUT -m mark -j RETURN":          "-m mark is not known",
		"-D OUTPUT -j RETURN":                  "want -A or -I",
		"COMMIT\n-A OUTPUT -j RETURN":          "want nothing after COMMIT",
		"-A OUTPUT --uid-owner root -j RETURN": "invalid syntax",
	} {
		if _, err := ParseRules(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v: want %q", line, err, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for number, want := range map[int]string{1: "10.10.0.1", 250: "10.10.0.250", 251: "10.10.1.1"} {
		if got, err := nth(number); err != nil || got.String() != want {
			t.Errorf("pod %d: %v, %v: want %s", number, got, err, want)
		}
	}
	if _, err := nth(250*250 + 1); err == nil {
		t.Error("no error for one too many")
	}
}

// answer accepts connections and writes to each which address it was for before it was redirected.
func answer(t *testing.T, p *Pod, address, name string) {
	t.Helper()
	listener, err := p.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "%s for %s", name, original(conn.(*net.TCPConn)))
			conn.Close()
		}
	}()
}

// original returns the address that a connection was for: SO_ORIGINAL_DST, ip_tables.h.
func original(conn *net.TCPConn) string {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err.Error()
	}
	text := ""
	if err := raw.Control(func(fd uintptr) {
		// A sockaddr_in is as large as what this option of IPv6 returns.
		m, err := unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, 80)
		if err != nil {
			text = err.Error()
			return
		}
		b := m.Multiaddr
		text = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:4])).String()
	}); err != nil {
		return err.Error()
	}
	return text
}

func said(t *testing.T, p *Pod, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, err := p.DialContext(ctx, "tcp", address)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestRedirect(t *testing.T) {
	const user = 1500
	if err := Check(user); err != nil {
		if os.Geteuid() == 0 && mapped(user) == nil {
			t.Fatal(err)
		}
		if !strings.Contains(err.Error(), "root") {
			t.Errorf("%v: want it to ask for root", err)
		}
		t.Skip(err)
	}
	n, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	var pods []*Pod
	for range 2 {
		p, err := n.Add()
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, p)
	}
	client, server := pods[0], pods[1]
	answer(t, server, "0.0.0.0:8080", "application")
	address := net.JoinHostPort(server.Address.String(), "8080")
	if got := said(t, client, address); got != "application for "+address {
		// Without a rule there is no connection tracking, and so no original address.
		if !strings.HasPrefix(got, "application for ") {
			t.Errorf("without rules: %q", got)
		}
	}
	rules, err := ParseRules(`*nat
:IN - [0:0]
-A PREROUTING -p tcp --dport 9000 -j RETURN
-A PREROUTING -p tcp -j IN
-A IN -p tcp -j REDIRECT --to-port 15003
-A OUTPUT -p tcp -m owner --uid-owner 1500 -j RETURN
-A OUTPUT -p tcp -d 127.0.0.1/32 -j RETURN
-A OUTPUT -p tcp -j REDIRECT --to-port 15001
COMMIT`)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if err := p.Apply(rules); err != nil {
			t.Fatal(err)
		}
		answer(t, p, "0.0.0.0:15001", "outbound")
		answer(t, p, "0.0.0.0:15003", "inbound")
		answer(t, p, "0.0.0.0:9000", "excluded")
	}
	if got := said(t, client, "10.0.0.7:80"); got != "outbound for 10.0.0.7:80" {
		t.Errorf("the address of a service: %q", got)
	}
	if got := said(t, client, "127.0.0.1:9000"); !strings.HasPrefix(got, "excluded") {
		t.Errorf("loopback: %q", got)
	}
	// As the proxy's user, past the client's own rules, to the server's.
	for to, want := range map[string]string{"8080": "inbound for " + address, "9000": "excluded for "} {
		if got := saidAs(t, client, user, server.Address.String(), to); !strings.HasPrefix(got, want) {
			t.Errorf("the proxy of the client, to port %s: %q: want %q", to, got, want)
		}
	}
}

// saidAs is said by a process of a user.
func saidAs(t *testing.T, p *Pod, user uint32, host, port string) string {
	t.Helper()
	group, err := process.OpenGroup(filepath.Join(t.TempDir(), "group"), process.GroupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	log := filepath.Join(t.TempDir(), "log")
	child, err := group.Start(process.Spec{
		Name: "bash", Path: "/bin/bash", Args: []string{"-c", `exec 3<>/dev/tcp/$0/$1; exec cat <&3`, host, port}, Log: log, Network: p.Network(), User: user,
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-child.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("no answer to user " + strconv.Itoa(int(user)))
	}
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := io.ReadAll(bufio.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
