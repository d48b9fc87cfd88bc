package capture

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/timeseries"
)

const step = 5 * time.Minute

// Percentiles are computed for each hour of the day in which steps began, over all days. A step without a value does not count as 0.
func TestHistory(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := NewHistory(from, from.Add(48*time.Hour), step)
	var samples []timeseries.Sample
	for i := 1; i <= 100; i++ { // all in the first hour after ten, of both days
		at := from.Add(10*time.Hour + time.Duration(i%12+1)*step + time.Duration(i%2)*24*time.Hour)
		samples = append(samples, timeseries.Sample{At: at, Value: float64(i)})
	}
	samples = append(samples, timeseries.Sample{At: from.Add(24 * time.Hour), Value: 0.123456})
	h.Observe("pushes", "cds", "1/s", step, samples)
	h.Observe("proxies", "", "", step, nil)
	want := &History{
		From: from, To: from.Add(48 * time.Hour), Step: "5m0s",
		Figures: []Observed{{
			Figure: "pushes", Kind: "cds", Unit: "1/s", Known: 0.1753, Percentiles: Percentiles{50, 90, 99, 100},
			Hours: []Hour{{10, Percentiles{50, 90, 99, 100}}, {23, Percentiles{0.1235, 0.1235, 0.1235, 0.1235}}},
		}},
		Missing: []Missing{{"proxies", "there are no values"}},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error(diff)
	}
}

// A file keeps the history, without names of others where it is anonymized.
func TestHistoryInFile(t *testing.T) {
	m, err := FromFiles(t.Context(), filepath.Join("testdata", "controlplane", "istio.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 8, 0, 0, 0, 0, time.UTC)
	for i := range m.ControlPlane.Revisions {
		h := NewHistory(now.Add(-24*time.Hour), now, step)
		h.Observe("memory", "", "B", step, []timeseries.Sample{{At: now, Value: 3 << 30}})
		h.Lacks("proxies", "asking prometheus.corp.example.com: 401")
		m.ControlPlane.Revisions[i].History = h
	}
	m.ControlPlane.APIServer = NewHistory(now.Add(-24*time.Hour), now, step)
	m.ControlPlane.APIServer.Lacks("all", "asking prometheus.corp.example.com: 401")
	checkReadable(t, "captured", m)
	var summary strings.Builder
	if err := m.Summary(&summary); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		": memory: p50 3.00GiB, p99 3.00GiB, max 3.00GiB; busiest from 23:00 UTC, p90 3.00GiB; known for 0 % of the time",
		": proxies: not known: asking prometheus.corp.example.com: 401", "API server: all: not known: ",
	} {
		if !strings.Contains(summary.String(), want) {
			t.Errorf("summary\n%s\nwant %q", &summary, want)
		}
	}
	if err := m.Anonymize(); err != nil {
		t.Fatal(err)
	}
	checkReadable(t, "without names", m)
	var file strings.Builder
	if err := m.Write(&file); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(file.String(), "corp.example") || !strings.Contains(file.String(), "max: 3221000000") {
		t.Errorf("the file has names, or no history:\n%.3000s", file.String())
	}
}
