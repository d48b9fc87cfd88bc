package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"
)

const (
	// lowestPort is above the ports that well-known services listen on.
	lowestPort = 10000
	// portTries bounds how many ports are tried for each that is wanted.
	portTries = 100
	// portRange says which ports the kernel hands out by itself.
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

// FreePorts returns n TCP ports of 127.0.0.1 that were free a moment ago, all
// different, drawn at random from those that the kernel does not hand out to
// outgoing connections: of those a run makes thousands, and any of them might
// take a port before the program that it is meant for. Nothing holds the ports.
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
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("choosing free ports: %w", err)
		}
		// All stay open until the last is chosen, or one might come twice.
		defer l.Close()
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("choosing free ports: %d of %d found between %d and %d", len(ports), n, lowestPort, below)
}
