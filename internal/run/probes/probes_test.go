package probes

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/reference"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// meshOf is a mesh with rules for the health of endpoints and nothing else.
type meshOf struct {
	controlplane.Mesh
	rules func(ready, serving, terminating bool) (convergence.Health, bool)
}

func (m meshOf) EndpointHealth(ready, serving, terminating bool) (convergence.Health, bool) {
	return m.rules(ready, serving, terminating)
}

// What a change of a pod's readiness is in the configuration depends on the control
// plane: some send only endpoints that are ready.
func TestReadinessOfEndpoints(t *testing.T) {
	for name, c := range map[string]struct {
		rules          func(ready, serving, terminating bool) (convergence.Health, bool)
		ready, unready fleet.EndpointChange
	}{
		"all are sent": {
			(&reference.ControlPlane{}).EndpointHealth,
			fleet.EndpointChange{Kind: record.EndpointHealth, Health: convergence.Healthy}, fleet.EndpointChange{Kind: record.EndpointHealth, Health: convergence.Unhealthy},
		},
		"only ready ones are": {
			func(ready, _, _ bool) (convergence.Health, bool) { return convergence.Healthy, ready },
			fleet.EndpointChange{Kind: record.EndpointAdd, Health: convergence.Healthy}, fleet.EndpointChange{Kind: record.EndpointRemove},
		},
	} {
		p := &prober{Options: Options{Adapter: &controlplane.ControlPlane{Mesh: meshOf{rules: c.rules}}}}
		if got := p.readiness(true); got != c.ready {
			t.Errorf("%s: ready is %+v, want %+v", name, got, c.ready)
		}
		if got := p.readiness(false); got != c.unready {
			t.Errorf("%s: unready is %+v, want %+v", name, got, c.unready)
		}
	}
}

// What sidecars saw of a change stays together, to three digits.
func TestPushesOf(t *testing.T) {
	ms := time.Millisecond
	change := pushesOf([]time.Duration{-2 * ms, 123400 * time.Microsecond, 123 * ms, 1999 * ms}, 2)
	if want := (stats.Cluster{Values: []float64{0, 0.123, 2}, Counts: []int64{1, 2, 1}, Lost: 2}); !reflect.DeepEqual(change, want) {
		t.Errorf("%+v, want %+v", change, want)
	}
	if got, want := pairs(change), [][2]float64{{0, 1}, {0.123, 2}, {2, 1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Of six changes the median has an interval, and nothing beyond it has.
func TestIntervals(t *testing.T) {
	var changes []stats.Cluster
	for i := range 6 {
		changes = append(changes, stats.NewCluster([]float64{float64(i), float64(i) + 0.5}, 0))
	}
	if got := intervals(changes); got.Changes != 6 || got.P50 == nil || *got.P50.Low >= *got.P50.High || got.P90 != nil || got.P99 != nil {
		t.Errorf("%+v", got)
	}
}

// A sidecar that had a change before scaler saw it is the first that had it, and is
// counted as such.
func TestSortedSince(t *testing.T) {
	at := time.Unix(1000, 0)
	got := sortedSince(at, map[string]time.Time{"a": at.Add(2), "b": at.Add(-5), "c": at.Add(1)})
	if want := []time.Duration{-5, 1, 2}; !slices.Equal(got, want) || negative(got) != 1 {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := sortedSince(at, nil); len(got) != 0 {
		t.Errorf("nobody: got %v", got)
	}
}
