package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lowestPort is above the ports that well-known services listen on.
	lowestPort = 10000
	// portTries bounds how many ports are tried for each that is wanted.
	portTries = 100
	// portRange states which ports the kernel assigns itself.
	portRange = "/proc/sys/net/ipv4/ip_local_port_range"
)

// FreeAddress returns HOST:PORT with one of FreePorts.
func FreeAddress() (string, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0])), nil
}

// FreePorts returns n TCP ports that are free at every address of this machine,
// all different, drawn at random from those that the kernel does not hand out to
// outgoing connections: of those a run makes thousands, and any of them might
// take a port before the program that it is meant for.
//
// They are reserved for the program that will listen on them: for reservedFor no
// other FreePorts of any process gives them away, unless this process ends before or
// draws mostReserved others.
func FreePorts(n int) ([]int, error) {
	below := 32768 // the kernel's default
	if text, err := os.ReadFile(portRange); err == nil {
		var first, last int
		if _, err := fmt.Sscan(string(text), &first, &last); err == nil && first > lowestPort+n*portTries {
			below = first
		}
	}
	ports := make([]int, 0, n)
	for range n * portTries {
		port := lowestPort + rand.IntN(below-lowestPort)
		err := reservations.add(port)
		if errors.Is(err, unix.EADDRINUSE) || errors.Is(err, unix.EACCES) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("choosing free ports: %w", err)
		}
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("choosing free ports: %d of %d found between %d and %d", len(ports), n, lowestPort, below)
}

// A port is chosen seconds before it is listened on, which reservedFor is well above;
// mostReserved is many more than are chosen meanwhile.
const (
	reservedFor  = 2 * time.Minute
	mostReserved = 1000
)

// reserved holds sockets that are bound to ports and do not listen.
type reserved struct {
	mu      sync.Mutex
	sockets []reservation // the oldest first
}

type reservation struct {
	socket int
	since  time.Time
}

var reservations reserved

// add binds a socket to a port at all addresses. While it is bound as sockets are
// by default, that fails wherever anybody has the port. Then it allows others to
// reuse it, as servers do that listen (socket(7), SO_REUSEADDR): those get it, but
// not another add.
func (r *reserved) add(port int) error {
	socket, err := bound(port)
	if err == nil {
		err = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err != nil {
		return err
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sockets = append(r.sockets, reservation{socket, now})
	for len(r.sockets) > mostReserved || now.Sub(r.sockets[0].since) > reservedFor {
		err = errors.Join(err, unix.Close(r.sockets[0].socket))
		r.sockets = r.sockets[1:]
	}
	return err
}

// bound returns a socket that has a port at all addresses, of IPv6 too where there
// is that.
func bound(port int) (socket int, err error) {
	for _, family := range []struct {
		number  int
		address unix.Sockaddr
	}{{unix.AF_INET6, &unix.SockaddrInet6{Port: port}}, {unix.AF_INET, &unix.SockaddrInet4{Port: port}}} {
		socket, err = unix.Socket(family.number, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if family.number == unix.AF_INET6 {
			err = unix.SetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
		}
		if err == nil {
			err = unix.Bind(socket, family.address)
		}
		if err == nil {
			return socket, nil
		}
		err = errors.Join(err, unix.Close(socket))
		if errors.Is(err, unix.EADDRINUSE) || errors.Is(err, unix.EACCES) {
			return 0, err
		}
	}
	return 0, err
}
