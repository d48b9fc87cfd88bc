package fleet

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

func TestChangesOfEndpoints(t *testing.T) {
	a, b, c := netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("10.0.0.2:80"), netip.MustParseAddrPort("10.0.0.3:80")
	seen := time.Unix(1000, 0)
	e := newEndpoints(1, map[string]bool{"ns/injected:http": true})
	e.set("ns/s:http", convergence.Endpoints{a: convergence.Healthy}, seen) // nobody reads
	changes := e.Subscribe()
	e.set("ns/s:http", convergence.Endpoints{a: convergence.Unhealthy, b: convergence.Healthy}, seen)
	e.set("ns/s:http", convergence.Endpoints{a: convergence.Unhealthy, c: convergence.Healthy}, seen)
	e.set("ns/other:http", convergence.Endpoints{b: convergence.Healthy}, seen)
	e.listed["ns/injected:http"] = convergence.Endpoints{a: convergence.Healthy}
	if n := e.healthy(); n != 2 {
		t.Errorf("%d endpoints are healthy, want 2", n)
	}
	e.Unsubscribe()
	e.set("ns/s:http", nil, seen)

	var got []EndpointChange
	for range len(changes) {
		got = append(got, <-changes)
	}
	want := []EndpointChange{
		{"ns/s:http", a, record.EndpointHealth, convergence.Unhealthy, seen},
		{"ns/s:http", b, record.EndpointAdd, convergence.Healthy, seen},
		{"ns/s:http", b, record.EndpointRemove, 0, seen},
		{"ns/s:http", c, record.EndpointAdd, convergence.Healthy, seen},
		{"ns/other:http", b, record.EndpointAdd, convergence.Healthy, seen},
	}
	order := cmpopts.SortSlices(func(a, b EndpointChange) bool {
		return a.Service+a.Addr.String()+string(a.Kind) < b.Service+b.Addr.String()+string(b.Kind)
	})
	if diff := cmp.Diff(want, got, order, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}
