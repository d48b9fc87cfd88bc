package convergence_test

import (
	"net/netip"
	"testing"

	"scaler.mesh/scaler/pkg/convergence"
)

func TestEqualEndpointsHaveOneDigest(t *testing.T) {
	a, b := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1")
	digest := func(e convergence.Endpoints) convergence.Digest { return convergence.ContentOf(e).Digest }
	one := convergence.Endpoints{a: convergence.Healthy, b: convergence.Unhealthy}
	if digest(one) != digest(convergence.Endpoints{b: convergence.Unhealthy, a: convergence.Healthy}) {
		t.Error("equal endpoints have two digests")
	}
	for _, other := range []convergence.Endpoints{{}, {a: convergence.Healthy}, {a: convergence.Unhealthy, b: convergence.Unhealthy}} {
		if digest(one) == digest(other) {
			t.Errorf("%v has the digest of %v", other, one)
		}
	}
}
