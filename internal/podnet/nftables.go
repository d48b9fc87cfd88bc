//go:build linux

package podnet

import (
	"fmt"
	"net"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// apply sets the rules of the namespace with this descriptor. It uses nftables, which
// needs no program of the host. One rule of iptables becomes one for each of its port
// ranges.
func (r Rules) apply(namespace int) error {
	c, err := nftables.New(nftables.WithNetNSFd(namespace))
	if err != nil {
		return fmt.Errorf("setting rules: %w", err)
	}
	table := c.AddTable(&nftables.Table{Name: "nat", Family: nftables.TableFamilyIPv4})
	chains := make([]*nftables.Chain, len(r.chains))
	for i, each := range r.chains { // all chains must exist before a rule names one
		chains[i] = &nftables.Chain{Name: each.name, Table: table}
		switch each.name {
		case prerouting:
			hook(chains[i], nftables.ChainHookPrerouting)
		case output:
			hook(chains[i], nftables.ChainHookOutput)
		}
		c.AddChain(chains[i])
	}
	for i, each := range r.chains {
		for _, one := range each.rules {
			for _, expressions := range one.expressions() {
				c.AddRule(&nftables.Rule{Table: table, Chain: chains[i], Exprs: expressions})
			}
		}
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("setting rules of nftables: %w: want a kernel with its nat, redir and meta", err)
	}
	return nil
}

func hook(c *nftables.Chain, at *nftables.ChainHook) {
	c.Type, c.Hooknum, c.Priority = nftables.ChainTypeNAT, at, nftables.ChainPriorityNATDest
}

// expressions returns the expressions of the rule, once for each of its port ranges.
func (r rule) expressions() [][]expr.Any {
	const register = 1
	compare := func(not bool, value []byte) expr.Any {
		op := expr.CmpOpEq
		if not {
			op = expr.CmpOpNeq
		}
		return &expr.Cmp{Op: op, Register: register, Data: value}
	}
	meta := func(key expr.MetaKey, not bool, value []byte) []expr.Any {
		return []expr.Any{&expr.Meta{Key: key, Register: register}, compare(not, value)}
	}
	all := meta(expr.MetaKeyL4PROTO, false, []byte{unix.IPPROTO_TCP})
	if r.in != "" {
		all = append(all, meta(expr.MetaKeyIIFNAME, false, interfaceName(r.in))...)
	}
	if r.out != "" {
		all = append(all, meta(expr.MetaKeyOIFNAME, false, interfaceName(r.out))...)
	}
	if r.owner.set {
		all = append(all, meta(expr.MetaKeySKUID, r.owner.not, binaryutil.NativeEndian.PutUint32(r.owner.value))...)
	}
	if d := r.destination; d.set {
		network := d.value.Masked().Addr().As4()
		all = append(all,
			&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4}, // destination address
			&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 4, Mask: net.CIDRMask(d.value.Bits(), 32), Xor: make([]byte, 4)},
			compare(d.not, network[:]))
	}
	var verdict []expr.Any
	switch r.verdict {
	case returns:
		verdict = []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}
	case accepts:
		verdict = []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	case redirects:
		verdict = []expr.Any{&expr.Immediate{Register: register, Data: binaryutil.BigEndian.PutUint16(r.port)}, &expr.Redir{RegisterProtoMin: register}}
	default:
		verdict = []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: r.verdict}}
	}
	if r.ports == nil {
		return [][]expr.Any{append(all, verdict...)}
	}
	var each [][]expr.Any
	for _, p := range r.ports {
		one := append([]expr.Any(nil), all...)
		one = append(one,
			&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}, // destination port
			&expr.Cmp{Op: expr.CmpOpGte, Register: register, Data: binaryutil.BigEndian.PutUint16(p.first)},
			&expr.Cmp{Op: expr.CmpOpLte, Register: register, Data: binaryutil.BigEndian.PutUint16(p.last)})
		each = append(each, append(one, verdict...))
	}
	return each
}

// interfaceName returns the name of an interface in the form in which nftables compares
// it.
func interfaceName(name string) []byte {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, name)
	return b
}
