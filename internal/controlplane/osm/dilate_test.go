package osm

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/record"
)

func TestDilate(t *testing.T) {
	got := dilate([]string{"OTHER=1", "OSM_PROXY_UPDATE_MAX_WINDOW=5s"}, 8, 4)
	want := []string{
		"OTHER=1",
		"OSM_PROXY_UPDATE_WINDOW=8s", "OSM_PROXY_UPDATE_MAX_WINDOW=20s",
		"OSM_EVENTS_PER_SECOND=2.5", "OSM_EVENT_DELAY=20ms", "OSM_EVENT_DELAY_MAX=1h6m40s",
		"OSM_API_REQUESTS_PER_SECOND=1.25",
		"OSM_KEEPALIVE=4m0s", "OSM_KEEPALIVE_TIMEOUT=1m20s",
		"OSM_CERTIFICATE_CHECK_INTERVAL=20s", "OSM_QUEUE_METRIC_INTERVAL=20s",
		"OSM_WEBHOOK_TIMEOUT=30s", // Kubernetes takes no more
	}
	if diff := cmp.Diff(want, got.Env); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Args) > 0 || len(got.Scaled) != len(component.OSMTimes) || len(got.Unscaled) == 0 {
		t.Errorf("it is %+v", got)
	}
}

// Both programs have the times of one environment, and the rest of it is the controller's.
func TestTimesOfBothPrograms(t *testing.T) {
	c := &controlPlane{options: controlplane.StartOptions{LogDir: t.TempDir(), Resources: controlplane.Resources{MaxProcs: 8, Env: []string{"OTHER=1", "OSM_EVENT_DELAY=20ms"}}}}
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*program{c.controller, c.injector} {
		env := p.Resources.Environment(p.Command().Env...)
		if !slices.Contains(env, "OSM_EVENT_DELAY=20ms") || slices.Contains(env, "OTHER=1") != (p == c.controller) {
			t.Errorf("%s has %s", p.Command().Name, strings.Join(env, " "))
		}
	}
}

func TestLimits(t *testing.T) {
	stock := record.Limits{
		ConcurrentPushes: &record.ByProcessors{PerProcessor: 1}, InjectionsPerSecond: 5, InjectionsBurst: 10,
		EventsPerSecond: 10, EventsBurst: 100, DebounceSeconds: 2, DebounceMaxSeconds: 10,
	}
	if diff := cmp.Diff(&stock, limits([]string{"OSM_EVENTS_PER_SECOND=many"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, known := range component.OSMTimes { // the same constants, as the builds have them
		for _, same := range []struct {
			variable string
			value    float64
		}{
			{"OSM_PROXY_UPDATE_WINDOW", stock.DebounceSeconds}, {"OSM_PROXY_UPDATE_MAX_WINDOW", stock.DebounceMaxSeconds},
			{"OSM_EVENTS_PER_SECOND", stock.EventsPerSecond}, {"OSM_API_REQUESTS_PER_SECOND", stock.InjectionsPerSecond},
		} {
			if known.Variable == same.variable && known.Length.Seconds()+known.PerSecond != same.value {
				t.Errorf("%s is %v, the limit is %v", known.Variable, known, same.value)
			}
		}
	}
	set := limits([]string{"OSM_EVENTS_PER_SECOND=20", "OSM_API_REQUESTS_PER_SECOND=50", "OSM_PROXY_UPDATE_WINDOW=100ms", "OSM_PROXY_UPDATE_WINDOW=1s", "OSM_PROXY_UPDATE_MAX_WINDOW=4s"})
	if set.EventsPerSecond != 20 || set.InjectionsPerSecond != 50 || set.DebounceSeconds != 1 || set.DebounceMaxSeconds != 4 {
		t.Errorf("with settings they are %+v", set)
	}
}
