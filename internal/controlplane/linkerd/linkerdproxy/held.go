package linkerdproxy

import (
	"net/netip"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/linkerd/linkerd2-proxy-api/go/destination"
	"github.com/linkerd/linkerd2-proxy-api/go/net"
	"google.golang.org/protobuf/proto"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// Held is part of proxy.Proxy.
func (p *Proxy) Held() []*proxy.Resource {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*proxy.Resource, 0, len(p.held))
	for _, r := range p.held {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *proxy.Resource) int {
		return a.Key.Compare(b.Key)
	})
	return all
}

// Draining is part of proxy.Proxy: this mesh's proxies have no listeners from the control plane.
func (p *Proxy) Draining() []convergence.Key { return nil }

// hold takes what a proxy holds from now on, and reports whether it held just that.
func (p *Proxy) hold(r *proxy.Resource) (same bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.held[r.Key]
	p.held[r.Key] = r
	return before != nil && before.Content.Digest == r.Content.Digest
}

// profileOf returns a profile as it is held. The names of its routes are its markers.
func profileOf(key convergence.Key, m *destination.DestinationProfile) (*proxy.Resource, error) {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	content := &convergence.Content{Digest: convergence.Digest(xxhash.Sum64(text))}
	for _, route := range m.GetRoutes() {
		if name := route.GetMetricsLabels()["route"]; name != "" {
			content.Markers = append(content.Markers, name)
		}
	}
	slices.Sort(content.Markers)
	return &proxy.Resource{Key: key, Size: len(text), Content: content}, nil
}

// addresses are the endpoints of a service port as one stream has stated them, with the sizes of their
// messages.
type addresses map[netip.AddrPort]int

// take takes one message of the stream.
func (a addresses) take(m *destination.Update) {
	switch is := m.GetUpdate().(type) {
	case *destination.Update_Add:
		for _, added := range is.Add.GetAddrs() {
			if at := addressOf(added.GetAddr()); at.IsValid() {
				a[at] = proto.Size(added)
			}
		}
	case *destination.Update_Remove:
		for _, removed := range is.Remove.GetAddrs() {
			delete(a, addressOf(removed))
		}
	case *destination.Update_NoEndpoints:
		clear(a)
	}
}

// resource returns the addresses as the resource that a proxy holds.
func (a addresses) resource(key convergence.Key) *proxy.Resource {
	endpoints, size := make(convergence.Endpoints, len(a)), 0
	for at, bytes := range a {
		endpoints[at] = convergence.Healthy // others are not sent
		size += bytes
	}
	return &proxy.Resource{Key: key, Size: size, Content: convergence.ContentOf(endpoints)}
}

// addressOf returns an address of the API; not valid if it is none.
func addressOf(a *net.TcpAddress) netip.AddrPort {
	if a.GetIp() == nil || a.GetPort() > 65535 {
		return netip.AddrPort{}
	}
	var ip netip.Addr
	if v6 := a.GetIp().GetIpv6(); v6 != nil {
		var bytes [16]byte
		for i := range 8 {
			bytes[i], bytes[8+i] = byte(v6.GetFirst()>>(56-8*i)), byte(v6.GetLast()>>(56-8*i))
		}
		ip = netip.AddrFrom16(bytes)
	} else {
		v4 := a.GetIp().GetIpv4()
		ip = netip.AddrFrom4([4]byte{byte(v4 >> 24), byte(v4 >> 16), byte(v4 >> 8), byte(v4)})
	}
	return netip.AddrPortFrom(ip, uint16(a.GetPort()))
}
