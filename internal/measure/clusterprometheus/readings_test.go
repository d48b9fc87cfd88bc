package clusterprometheus

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pilotText returns the metrics of a pod, as istiod's exporter writes them.
func pilotText(started, cpu, memory float64, proxies, cds, fast, slow, all int) string {
	return fmt.Sprintf(`# TYPE process_start_time_seconds gauge
process_start_time_seconds %g
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total %g
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes %g
# TYPE pilot_xds gauge
pilot_xds{version="1.29.1"} %d
pilot_xds{version="1.30.0"} 1
# TYPE pilot_xds_pushes counter
pilot_xds_pushes{type="cds"} %d
pilot_xds_pushes{type="strange-type"} 3
# TYPE pilot_proxy_convergence_time histogram
pilot_proxy_convergence_time_bucket{le="0.1"} %d
pilot_proxy_convergence_time_bucket{le="0.5"} %d
pilot_proxy_convergence_time_bucket{le="+Inf"} %d
pilot_proxy_convergence_time_sum 1
pilot_proxy_convergence_time_count %d
`, started, cpu, memory, proxies, cds, fast, slow, all, all)
}

func readAt(t *testing.T, after time.Duration, text string) Reading {
	t.Helper()
	r, err := Read(time.Unix(1_800_000_000, 0).Add(after), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBetween(t *testing.T) {
	sizes := func(sum, count, other int) string {
		return fmt.Sprintf("# TYPE pilot_xds_config_size_bytes histogram\npilot_xds_config_size_bytes_bucket{type=\"%[1]s\",le=\"+Inf\"} %[3]d\npilot_xds_config_size_bytes_sum{type=\"%[1]s\"} %[2]d\npilot_xds_config_size_bytes_count{type=\"%[1]s\"} %[3]d\n"+
			"pilot_xds_config_size_bytes_sum{type=\"istio.io/debug\"} %[4]d\npilot_xds_config_size_bytes_count{type=\"istio.io/debug\"} %[4]d\n", "type.googleapis.com/envoy.config.listener.v3.Listener", sum, count, other)
	}
	before := map[string]Reading{
		"a": readAt(t, 0, pilotText(100, 10, 500, 20, 1000, 90, 100, 100)+sizes(9000, 9, 1)),
		"b": readAt(t, time.Second, pilotText(200, 0, 900, 30, 0, 0, 0, 0)),
	}
	events := "# TYPE pilot_k8s_cfg_events counter\npilot_k8s_cfg_events{type=\"VirtualService\",event=\"update\"} 50\n"
	after := map[string]Reading{
		"a": readAt(t, 100*time.Second, pilotText(100, 60, 700, 25, 1500, 100, 150, 150)+events+sizes(12000, 11, 5)),
		"b": readAt(t, 101*time.Second, pilotText(200, 10, 800, 31, 100, 40, 50, 50)+sizes(1000, 2, 1)),
	}
	from, to, all, err := Between(before, after)
	if err != nil || to.Sub(from) != 101*time.Second {
		t.Fatalf("%s, %v", to.Sub(from), err)
	}
	got := map[string]float64{}
	for _, r := range all {
		for _, k := range r.Kinds {
			got[strings.TrimSpace(r.Name+" "+k.Kind)+" "+r.Unit] = k.Values[0].Value
		}
		if r.Err != nil {
			got[r.Name+": "+r.Err.Error()] = 0
		}
	}
	want := map[string]float64{
		"processorTime cores": 0.6, "memory B": 700 + 900, "proxies ": 25 + 1 + 31 + 1,
		"pushes cds 1/s": 6, "pushes other 1/s": 0, // a kind that is no word of Istio's
		"bytesPerPush Listener B":                       1000, // 4000 bytes of 4 pushes
		"configurationEvents VirtualService update 1/s": 0.5,  // the first ones since the process started
		"clusterEvents: it has no pilot_k8s_reg_events": 0,
		"convergenceP50 s":                              0.1, "convergenceP99 s": 0.1 + 0.4*49/50, // 100 in all: 50 to 0.1 s, 50 to 0.5 s
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What an istiod reports at rest, 12 s apart.
func TestBetweenOfIstiod(t *testing.T) {
	var both []map[string]Reading
	for i, after := range []time.Duration{0, 12032 * time.Millisecond} {
		text, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("istiod-1.31.0-%d.txt", i+1)))
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, map[string]Reading{"istiod": readAt(t, after, string(text))})
	}
	if got := both[0]["istiod"]; got.values["pilot_xds_pushes"]["eds"] != 90 || got.values["pilot_k8s_reg_events"]["Pods update"] != 48 || got.buckets[math.Inf(1)] != 78 {
		t.Errorf("%+v", got)
	}
	_, _, all, err := Between(both[0], both[1])
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range all {
		switch {
		case r.Err != nil:
			got[r.Name] = r.Err.Error()
		default:
			got[r.Name] = fmt.Sprintf("%d: %.4g", len(r.Kinds), r.Kinds[0].Values[0].Value)
		}
	}
	const idle = "nothing was pushed between the readings, or it has no pilot_proxy_convergence_time"
	if diff := cmp.Diff(map[string]string{
		"processorTime": "1: 0.003324", "memory": "1: 1.332e+08", "proxies": "1: 12", "pushes": "4: 0", "clusterEvents": "9: 0",
		"configurationEvents": "it has no pilot_k8s_cfg_events", "convergenceP50": idle, "convergenceP99": idle,
		"bytesPerPush": "nothing was pushed between the readings, or it has no pilot_xds_config_size_bytes",
	}, got); diff != "" {
		t.Error(diff)
	}
}

// Where pods are not the same, what they counted says nothing of the time between.
func TestBetweenOthers(t *testing.T) {
	one := map[string]Reading{"a": readAt(t, 0, pilotText(100, 10, 500, 20, 1000, 90, 100, 100))}
	later := readAt(t, time.Minute, pilotText(100, 20, 500, 20, 1000, 90, 100, 100))
	for want, after := range map[string]map[string]Reading{
		"pod a ended or was restarted": {"a": readAt(t, time.Minute, pilotText(130, 1, 500, 20, 10, 9, 10, 10))},
		"pod b was added":              {"a": later, "b": later},
		"pod a ended":                  {},
		"no time passed":               {"a": one["a"]},
	} {
		if _, _, _, err := Between(one, after); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, _, _, err := Between(nil, nil); err == nil {
		t.Error("no pods have figures")
	}
	_, _, all, err := Between(one, map[string]Reading{"a": later})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if strings.HasPrefix(r.Name, "convergence") && (r.Err == nil || r.Kinds != nil) {
			t.Errorf("%s of no pushes: %v", r.Name, r.Kinds)
		}
	}
	for _, text := range []string{"", "<html>", "process_cpu_seconds_total 1\n"} {
		if _, err := Read(time.Now(), []byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// The quantiles are those of PromQL.
func TestQuantile(t *testing.T) {
	inf := math.Inf(1)
	for _, test := range []struct {
		buckets map[float64]float64
		share   float64
		want    float64
		known   bool
	}{
		{map[float64]float64{0.1: 10, 0.5: 10, inf: 10}, 0.5, 0.05, true},
		{map[float64]float64{0.1: 0, 0.5: 10, inf: 10}, 0.5, 0.3, true},
		{map[float64]float64{0.1: 1, 0.5: 2, inf: 10}, 0.99, 0.5, true}, // beyond the last bound
		{map[float64]float64{0.1: 0, inf: 0}, 0.5, 0, false},
		{map[float64]float64{0.1: 5}, 0.5, 0, false},
		{nil, 0.5, 0, false},
	} {
		if got, known := quantile(test.share, test.buckets); math.Abs(got-test.want) > 1e-9 || known != test.known {
			t.Errorf("%v of %v: %g, %v", test.share, test.buckets, got, known)
		}
	}
}
