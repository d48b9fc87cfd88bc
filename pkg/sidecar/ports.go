package sidecar

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// The ports that FreePorts chooses from: above the services of a usual machine
// and below those that Linux takes for outgoing connections
// (net.ipv4.ip_local_port_range begins at 32768), of which a run makes
// thousands. One chosen there could be taken before it is listened on.
const firstPort, lastPort = 21000, 32000

// next is where the search goes on, so that ports of sidecars that end are not
// given to others at once: an agent holds its ports for some seconds.
var next struct {
	sync.Mutex
	port int
}

// FreePorts returns n TCP ports that nobody listens on at any address of this
// host, all different and none returned lately.
func FreePorts(n int) ([]int, error) {
	next.Lock()
	defer next.Unlock()
	if next.port == 0 {
		// Programs that run side by side begin at different places.
		next.port = firstPort + unix.Getpid()*97%(lastPort-firstPort)
	}
	var ports []int
	for range lastPort - firstPort {
		if next.port++; next.port > lastPort {
			next.port = firstPort
		}
		l, err := net.Listen("tcp", ":"+strconv.Itoa(next.port))
		if errors.Is(err, unix.EADDRINUSE) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("choosing free ports: %w", err)
		}
		l.Close()
		if ports = append(ports, next.port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("choosing free ports: all from %d to %d are taken", firstPort, lastPort)
}
