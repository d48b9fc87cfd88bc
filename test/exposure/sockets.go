// Package exposure finds what the programs of a run show to others: the sockets that
// they listen on, and secrets in what they are started with, print and write. It is for
// tests.
package exposure

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Socket is one that a program listens on, or receives datagrams of anybody at.
type Socket struct {
	Program string // the file name of its program
	Network string // tcp, udp or unix
	Address string // host:port; of a unix socket its path, which begins with @ in the abstract namespace
}

// String is "etcd tcp 127.0.0.1:2379".
func (s Socket) String() string { return s.Program + " " + s.Network + " " + s.Address }

// Listening returns the sockets of processes, in the network namespace that each is in,
// sorted. Processes that have ended meanwhile have none.
func Listening(pids []int) ([]Socket, error) {
	byNamespace := map[string]map[string]Socket{}
	var all []Socket
	for _, pid := range pids {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		namespace, err := os.Readlink(filepath.Join(dir, "ns", "net"))
		if gone(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		if byNamespace[namespace] == nil {
			if byNamespace[namespace], err = listened(filepath.Join(dir, "net")); gone(err) {
				continue
			} else if err != nil {
				return nil, fmt.Errorf("reading the sockets of process %d: %w", pid, err)
			}
		}
		program, err := os.Readlink(filepath.Join(dir, "exe"))
		if gone(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		links, err := filepath.Glob(filepath.Join(dir, "fd", "*"))
		if err != nil {
			return nil, err
		}
		for _, link := range links {
			target, err := os.Readlink(link)
			if err != nil {
				continue // it was closed
			}
			inode, ok := strings.CutPrefix(target, "socket:[")
			if s, listens := byNamespace[namespace][strings.TrimSuffix(inode, "]")]; ok && listens {
				s.Program = filepath.Base(program)
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b Socket) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all), nil
}

// gone reports that a process has ended.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoProcess)
}

// listened returns the sockets that are listened on in the network namespace of /proc/PID/net,
// by inode.
func listened(dir string) (map[string]Socket, error) {
	// States of include/net/tcp_states.h: a UDP socket without a peer is in that of a
	// TCP one that is closed.
	const listen, unconnected = "0A", "07"
	all := map[string]Socket{}
	for _, table := range []struct{ name, network, state string }{
		{"tcp", "tcp", listen}, {"tcp6", "tcp", listen}, {"udp", "udp", unconnected}, {"udp6", "udp", unconnected},
	} {
		err := eachLine(filepath.Join(dir, table.name), func(f []string) error {
			if len(f) < 10 || f[3] != table.state {
				return nil
			}
			address, err := parseAddress(f[1])
			all[f[9]] = Socket{Network: table.network, Address: address}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	// A stream that is listened on has __SO_ACCEPTCON among its flags; a bound datagram
	// socket receives from anybody.
	return all, eachLine(filepath.Join(dir, "unix"), func(f []string) error {
		if len(f) < 8 {
			return nil // it has no name: nobody can connect to it
		}
		flags, err := strconv.ParseUint(f[3], 16, 32)
		if err != nil {
			return nil //nolint:nilerr // the headline
		}
		const acceptConn, datagram = 1 << 16, "0002"
		if flags&acceptConn != 0 || f[4] == datagram {
			all[f[6]] = Socket{Network: "unix", Address: strings.Join(f[7:], " ")}
		}
		return nil
	})
}

// eachLine hands on the fields of each line of a table of the kernel's, which may be
// missing as that of IPv6 is.
func eachLine(path string, take func([]string) error) (err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if err := take(strings.Fields(lines.Text())); err != nil {
			return fmt.Errorf("parsing %s, line %q: %w", path, lines.Text(), err)
		}
	}
	return lines.Err()
}

// parseAddress reads an address as proc_net(5) has it: words in the machine's byte order,
// which is little-endian wherever this runs.
func parseAddress(text string) (string, error) {
	host, port, _ := strings.Cut(text, ":")
	bytes, err := hex.DecodeString(host)
	if err != nil {
		return "", err
	}
	for word := range slices.Chunk(bytes, 4) {
		slices.Reverse(word)
	}
	ip, ok := netip.AddrFromSlice(bytes)
	if !ok {
		return "", fmt.Errorf("%d bytes are no address", len(bytes))
	}
	number, err := strconv.ParseUint(port, 16, 16)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)).String(), err
}

// Row is a line of the table of listeners in docs/security.md.
type Row struct{ Program, Network, Address string }

// rowPattern is "| etcd | tcp `127.0.0.1:random` | reason |".
var rowPattern = regexp.MustCompile("(?m)^\\| `([^`|]+)` \\| (tcp|udp|unix) `([^`|]+)` \\| *[^ |]")

// Documented returns the listeners that a document lists: program, network and address, and
// a reason.
func Documented(document []byte) []Row {
	var rows []Row
	for _, m := range rowPattern.FindAllSubmatch(document, -1) {
		rows = append(rows, Row{string(m[1]), string(m[2]), string(m[3])})
	}
	return rows
}

// Covers reports whether a row is about a socket. The port "random" is any above 10000;
// * in the path of a unix socket is anything.
func (r Row) Covers(s Socket) bool {
	if r.Program != s.Program || r.Network != s.Network {
		return false
	}
	if r.Network == "unix" {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(r.Address), `\*`, ".*")
		return regexp.MustCompile("^" + pattern + "$").MatchString(s.Address)
	}
	address, err := netip.ParseAddrPort(s.Address)
	if host, ok := strings.CutSuffix(r.Address, ":random"); ok && err == nil {
		return strings.Trim(host, "[]") == address.Addr().String() && address.Port() > 10000
	}
	return r.Address == s.Address
}

// Undocumented returns the sockets that no row covers.
func Undocumented(sockets []Socket, rows []Row) []Socket {
	return slices.DeleteFunc(slices.Clone(sockets), func(s Socket) bool {
		return slices.ContainsFunc(rows, func(r Row) bool { return r.Covers(s) })
	})
}

// Descendants returns the process ids of a process and of all below it.
func Descendants(pid int) ([]int, error) {
	parents := map[int]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if gone(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		// The name may have spaces and parentheses; state and parent follow it.
		fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		if parents[child], err = strconv.Atoi(fields[1]); err != nil {
			return nil, err
		}
	}
	all := []int{}
	for child := range parents {
		for ancestor := child; ancestor > 0; ancestor = parents[ancestor] {
			if ancestor == pid {
				all = append(all, child)
				break
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
