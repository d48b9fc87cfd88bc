package fleet

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
)

func TestRealQuota(t *testing.T) {
	mesh := func(pods ...int) []topology.Service {
		var services []topology.Service
		for i, n := range pods {
			services = append(services, topology.Service{Name: string(rune('a' + i)), Pods: n})
		}
		return services
	}
	for _, c := range []struct {
		name     string
		services []topology.Service
		n        int
		want     map[string]int
	}{
		{"none", mesh(2, 2), 0, map[string]int{}},
		{"fewer than services", mesh(2, 2, 2, 2), 2, map[string]int{"a": 1, "c": 1}},
		{"one each", mesh(2, 2), 2, map[string]int{"a": 1, "b": 1}},
		{"several each", mesh(3, 3), 5, map[string]int{"a": 3, "b": 2}},
		{"small services", mesh(1, 4), 4, map[string]int{"a": 1, "b": 3}},
		{"with gateways and pods outside", []topology.Service{
			{Name: "gateway", Pods: 3, Gateway: true}, {Name: "job", Pods: 3, Outside: true}, {Name: "app", Pods: 2},
		}, 2, map[string]int{"app": 2}},
		{"all", mesh(1, 2, 3), 6, map[string]int{"a": 1, "b": 2, "c": 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, realQuota(c.services, c.n)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{"one": "one", "a; its log ends:\nb\nc\n": "c"} {
		if got := lastLine(errors.New(text)); got != want {
			t.Errorf("lastLine(%q) is %q, want %q", text, got, want)
		}
	}
}

// What a sidecar held is gone with it, and what was read before does not come
// back.
func TestCrashed(t *testing.T) {
	f := connected(1)
	f.Real = &RealOptions{}
	f.real = newRealSidecars(f, f.Revisions.list()[0])
	p := newProcessPod(f.Pods.byID["ns/pod-00"])
	key := convergence.Key{Type: convergence.CDS, Name: "a"}
	f.real.tracker.Add(p.id, f.real.tracker.Scope([]convergence.Want{{Key: key}}))
	now := time.Now()
	f.real.tracker.FirstRequest(p.id, now)
	whole := sidecar.Configuration{Held: []convergence.Resource{{Key: key, Content: &convergence.Content{}}}, First: now, Certificate: now}
	take := func(crashes int) {
		p.take(reading{whole, now, now, crashes})
	}
	converged := func(want bool, why string) {
		t.Helper()
		if _, got := f.real.tracker.Converged(); got != want {
			t.Errorf("%s: converged is %t", why, got)
		}
	}
	take(0)
	converged(true, "at first")
	p.drop(now)
	converged(false, "crashed")
	take(0)
	converged(false, "read before the crash")
	take(p.crashedSoFar())
	converged(true, "read anew")
}

// A real sidecar that is about to be replaced does not keep what takes its place
// from being real.
func TestTakes(t *testing.T) {
	f := connected(2)
	f.real.quota = map[string]int{"": 1}
	old, other := f.Pods.byID["ns/pod-00"], f.Pods.byID["ns/pod-01"]
	if !f.real.takes(other) {
		t.Error("none is real, and another one is not to be")
	}
	newProcessPod(old)
	if f.real.takes(other) {
		t.Error("a second one is to be real")
	}
	f.Pods.Begin()
	f.Pods.Renew()
	if next := (&pod{background: f.Pods.background.number}); !f.real.takes(next) {
		t.Error("what replaces the real one is not to be real")
	}
}

// An Envoy's refusal is quoted, with the objects of the mesh that may be the reason.
func TestRefuses(t *testing.T) {
	f := connected(1)
	f.Real = &RealOptions{}
	f.real = newRealSidecars(f, f.Revisions.list()[0])
	p := newProcessPod(f.Pods.byID["ns/pod-00"])
	refusal := sidecar.Refusal{Resource: "LDS virtualInbound", Words: "Didn't find a registered implementation for 'istio.stats'"}
	plain := p.refuses(refusal, 21*time.Second).Error()
	if !strings.HasPrefix(plain, "the Envoy of pod ns/pod-00 has refused its configuration for 21 s: ") || !strings.HasSuffix(plain, "'istio.stats'") {
		t.Error(plain)
	}
	p.real.Patches = []string{"EnvoyFilter a/b", "Telemetry a/c"}
	if text := p.refuses(refusal, 21*time.Second).Error(); text != plain+"; objects of the mesh that change it: EnvoyFilter a/b, Telemetry a/c" {
		t.Error(text)
	}
}
