//go:build linux

package podnet

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Rules are the rules of the table nat, IPv4, as iptables-restore(8) reads them. The zero
// value has none.
type Rules struct{ chains []chain }

// chain is a chain with its rules in their order.
type chain struct {
	name  string
	rules []rule
}

// rule matches TCP connections by all fields that are set.
type rule struct {
	in, out     string // interface; "" = any
	destination match[netip.Prefix]
	ports       []portRange // of the destination, any of them; nil = all
	owner       match[uint32]

	verdict string // RETURN, ACCEPT, REDIRECT or the name of a chain
	port    uint16 // of REDIRECT
}

// match is a value that must match, or must not match.
type match[T any] struct {
	set, not bool
	value    T
}

type portRange struct{ first, last uint16 }

// Verdicts, and the chains of the table through which connections come: those from others, and
// those of the pod's own processes.
const (
	returns   = "RETURN"
	accepts   = "ACCEPT"
	redirects = "REDIRECT"

	prerouting = "PREROUTING"
	output     = "OUTPUT"
)

// ParseRules reads the input of iptables-restore. An unknown option is an error: leaving
// out a rule would redirect other connections.
func ParseRules(text string) (Rules, error) {
	r := Rules{chains: []chain{{name: prerouting}, {name: output}}}
	number, ended := 0, false
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		var err error
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case ended:
			err = fmt.Errorf("want nothing after COMMIT")
		case line == "COMMIT":
			ended = true
		case strings.HasPrefix(line, "*"):
			if line != "*nat" {
				err = fmt.Errorf("want *nat")
			}
		case strings.HasPrefix(line, ":"):
			name, _, _ := strings.Cut(line[1:], " ")
			if r.chain(name) == nil {
				r.chains = append(r.chains, chain{name: name})
			}
		default:
			err = r.add(strings.Fields(line))
		}
		if err != nil {
			return Rules{}, fmt.Errorf("parsing rules of iptables, line %d %q: %w", number, line, err)
		}
	}
	for _, c := range r.chains {
		for _, one := range c.rules {
			switch one.verdict {
			case returns, accepts, redirects:
			default:
				if r.chain(one.verdict) == nil {
					return Rules{}, fmt.Errorf("parsing rules of iptables: chain %s jumps to %s, which does not exist", c.name, one.verdict)
				}
			}
		}
	}
	return r, nil
}

// chain returns the chain of this name; nil if there is none.
func (r *Rules) chain(name string) *chain {
	for i := range r.chains {
		if r.chains[i].name == name {
			return &r.chains[i]
		}
	}
	return nil
}

// add takes a line -A CHAIN or -I CHAIN.
func (r *Rules) add(fields []string) error {
	if len(fields) < 2 || fields[0] != "-A" && fields[0] != "-I" {
		return fmt.Errorf("want -A or -I and a chain")
	}
	to := r.chain(fields[1])
	if to == nil {
		return fmt.Errorf("chain %s does not exist", fields[1])
	}
	one, err := parseRule(fields[2:])
	if err != nil {
		return err
	}
	if fields[0] == "-I" {
		to.rules = append([]rule{one}, to.rules...)
	} else {
		to.rules = append(to.rules, one)
	}
	return nil
}

func parseRule(fields []string) (r rule, err error) {
	not := false
	for len(fields) > 0 {
		if fields[0] == "!" {
			not, fields = true, fields[1:]
			continue
		}
		if len(fields) < 2 {
			return r, fmt.Errorf("%s has no value", fields[0])
		}
		option, value := fields[0], fields[1]
		fields = fields[2:]
		if not && option != "-d" && option != "--uid-owner" {
			return r, fmt.Errorf("! %s is not known", option)
		}
		switch option {
		case "-p":
			if value != "tcp" {
				err = fmt.Errorf("-p %s: want tcp", value)
			}
		case "-m", "--match":
			if value != "owner" && value != "multiport" && value != "tcp" {
				err = fmt.Errorf("%s %s is not known", option, value)
			}
		case "-i":
			r.in = value
		case "-o":
			r.out = value
		case "-d":
			r.destination = match[netip.Prefix]{set: true, not: not}
			if !strings.Contains(value, "/") {
				value += "/32"
			}
			r.destination.value, err = netip.ParsePrefix(value)
			if err == nil && !r.destination.value.Addr().Is4() {
				err = fmt.Errorf("-d %s: want IPv4", value)
			}
		case "--dport", "--dports":
			r.ports, err = parsePorts(value)
		case "--uid-owner":
			var user uint64
			user, err = strconv.ParseUint(value, 10, 32)
			r.owner = match[uint32]{set: true, not: not, value: uint32(user)}
		case "-j":
			r.verdict = value
		case "--to-port", "--to-ports":
			var port uint64
			port, err = strconv.ParseUint(value, 10, 16)
			r.port = uint16(port)
		default:
			err = fmt.Errorf("%s is not known", option)
		}
		if err != nil {
			return r, err
		}
		not = false
	}
	if r.verdict == "" {
		return r, fmt.Errorf("it has no -j")
	}
	if (r.verdict == redirects) != (r.port > 0) {
		return r, fmt.Errorf("want --to-port with %s, and only there", redirects)
	}
	return r, nil
}

// parsePorts reads ports and ranges of ports, as in 80,8080:8090.
func parsePorts(list string) (all []portRange, err error) {
	for text := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(text, ":")
		if !isRange {
			high = low
		}
		first, err := strconv.ParseUint(low, 10, 16)
		if err != nil {
			return nil, err
		}
		last, err := strconv.ParseUint(high, 10, 16)
		if err != nil {
			return nil, err
		}
		all = append(all, portRange{uint16(first), uint16(last)})
	}
	return all, nil
}
