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

	"scaler.mesh/scaler/internal/linux"
)

const (
	// lowestPort is above the ports of well-known services.
	lowestPort = 10000
	// portTries limits the ports that are tried for each one that is wanted.
	portTries = 100
	// portRange is the file with the range of ports that the kernel assigns itself.
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

// FreePorts returns n different TCP ports that are free at every address of this machine.
// They are drawn at random from those that the kernel does not assign to outgoing
// connections: a run makes thousands of these, and any of them might take a port before
// the program that it is meant for.
//
// They are reserved for the program that will listen on them: for the time reservedFor no
// other call of FreePorts in any process returns them, unless this process ends before or
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

// A port is chosen seconds before it is listened on; reservedFor is well above that, and
// mostReserved is well above the number of ports chosen meanwhile.
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

// add binds a socket to a port at all addresses. While the socket is bound without
// SO_REUSEADDR, that fails if anybody has the port. Then it sets SO_REUSEADDR
// (socket(7)): servers that listen with that option get the port, but another add does
// not.
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

// bound returns a socket that is bound to a port at all addresses, including IPv6 if
// available.
func bound(port int) (socket int, err error) {
	for _, family := range []struct {
		number  int
		address unix.Sockaddr
	}{{unix.AF_INET6, &unix.SockaddrInet6{Port: port}}, {unix.AF_INET, &unix.SockaddrInet4{Port: port}}} {
		socket, err = unix.Socket(family.number, unix.SOCK_STREAM|linux.CloseOnExec, 0)
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
