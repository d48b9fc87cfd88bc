package experiment

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/topology"
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
