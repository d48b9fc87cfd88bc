//go:build linux

package podnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"scaler.mesh/scaler/internal/process"
)

const (
	bridge   = "pods"
	eth0     = "eth0"
	prefix   = 16 // of the pods' addresses
	podRange = "10.10.0.0"
)

// Net connects pods. Its methods must not be called by several goroutines.
type Net struct {
	bridge *process.Network
	pods   []*Pod
}

// Pod is the network of one pod.
type Pod struct {
	// Address is the address of its interface.
	Address netip.Addr
	network *process.Network
	dialer  *process.Dialer
}

// Open makes a network without pods. It needs root.
func Open() (*Net, error) {
	network, err := process.OpenNetwork()
	if err != nil {
		return nil, err
	}
	err = network.Do(func() error {
		link := &netlink.Bridge{LinkAttrs: attributes(bridge)}
		if err := netlink.LinkAdd(link); err != nil {
			return err
		}
		return netlink.LinkSetUp(link)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the bridge of pods: %w: want a kernel with bridge", err), network.Close())
	}
	return &Net{bridge: network}, nil
}

func attributes(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

// settings are the kernel settings of a pod's namespace that differ from the default. A
// client that opens a connection for each request would otherwise run out of ports. Over
// loopback the kernel reuses the port of a connection that has ended by default; here it
// does so too.
var settings = map[string]string{"net/ipv4/tcp_tw_reuse": "1", "net/ipv4/ip_local_port_range": "20000 65000"}

// Add makes the network of another pod. The pod reaches all others, and any address it
// connects to is assumed to be on the same network.
func (n *Net) Add() (*Pod, error) {
	number := len(n.pods) + 1
	address, err := nth(number)
	if err != nil {
		return nil, err
	}
	network, err := process.OpenNetwork()
	if err != nil {
		return nil, err
	}
	p := &Pod{Address: address, network: network, dialer: network.NewDialer()}
	n.pods = append(n.pods, p) // Close closes it
	port := "pod" + strconv.Itoa(number)
	if err := network.Do(func() error { return connect(address, port, n.bridge.FD()) }); err != nil {
		return nil, fmt.Errorf("making the interface of pod %s: %w", address, err)
	}
	err = n.bridge.Do(func() error {
		peer, err := netlink.LinkByName(port)
		if err != nil {
			return err
		}
		master, err := netlink.LinkByName(bridge)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetMaster(peer, master); err != nil {
			return err
		}
		return netlink.LinkSetUp(peer)
	})
	if err != nil {
		return nil, fmt.Errorf("connecting pod %s to the bridge: %w", address, err)
	}
	return p, nil
}

// nth returns the address of the pod with this number, from 1.
func nth(number int) (netip.Addr, error) {
	if number > 250*250 {
		return netip.Addr{}, fmt.Errorf("making the network of a pod: want %d pods or fewer", 250*250)
	}
	base := netip.MustParseAddr(podRange).As4()
	base[2], base[3] = byte((number-1)/250), byte((number-1)%250+1)
	return netip.AddrFrom4(base), nil
}

// connect makes the interface of a pod, on a thread in its namespace. The interface's
// other end, port, is in the namespace of the bridge.
func connect(address netip.Addr, port string, to int) error {
	pair := netlink.NewVeth(attributes(eth0))
	pair.PeerName, pair.PeerNamespace = port, netlink.NsFd(to)
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("%w: want a kernel with veth", err)
	}
	link, err := netlink.LinkByName(eth0)
	if err != nil {
		return err
	}
	own := &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(prefix, 32)}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: own}); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	// Connections to the addresses of Services are redirected before anything is sent
	// there, but a route is needed.
	everywhere := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: everywhere, Scope: netlink.SCOPE_LINK}); err != nil {
		return err
	}
	for name, value := range settings {
		if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Close closes all namespaces. Processes in them must have ended.
func (n *Net) Close() error {
	var errs []error
	for _, p := range n.pods {
		p.dialer.Close()
		errs = append(errs, p.network.Close())
	}
	return errors.Join(append(errs, n.bridge.Close())...)
}

// Network returns the network namespace, for starting processes in it.
func (p *Pod) Network() *process.Network { return p.network }

// Apply sets the rules of the pod's table nat, which must be empty.
func (p *Pod) Apply(r Rules) error { return r.apply(p.network.FD()) }

// DialContext is like net.Dialer's, from within the pod. The address is an IP address
// with a port.
func (p *Pod) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return p.dialer.DialContext(ctx, network, address)
}

// Listen listens on a TCP address of the pod; this program accepts the connections.
func (p *Pod) Listen(ctx context.Context, address string) (net.Listener, error) {
	return p.network.Listen(ctx, address)
}

// Check returns nil if pods can be connected, their connections can be redirected, and
// their proxies can run as this user; otherwise the reason. It leaves nothing behind.
func Check(user uint32) (err error) {
	if err := mapped(user); err != nil {
		return err
	}
	n, err := Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	p, err := n.Add()
	if err != nil {
		return err
	}
	rules, err := ParseRules(fmt.Sprintf("*nat\n-A OUTPUT -p tcp -m owner --uid-owner %d -j RETURN\n-A OUTPUT -p tcp -j REDIRECT --to-port 1\nCOMMIT\n", user))
	if err != nil {
		return err
	}
	return p.Apply(rules)
}

// mapped returns nil if processes can run as this user, which may not exist in the user
// namespace.
func mapped(user uint32) error {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		var inside, outside, count uint64
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err == nil && uint64(user) >= inside && uint64(user) < inside+count {
			return nil
		}
	}
	return fmt.Errorf("running processes as user %d: the user namespace does not have it: want root of the machine", user)
}
