package cli

import (
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
)

func TestStatusLines(t *testing.T) {
	rollout := run.Status{
		Phase: "rollout", Elapsed: 12 * time.Second, Slowdown: 1, Left: 97 * time.Second,
		Pods: 400, Created: 120, Ready: 116, Connected: 118, Complete: 117, Converged: 2, Cores: 0.34, MemoryBytes: 225e6,
	}
	slow := rollout
	slow.Slowdown = 3
	late := rollout
	late.Left = 0
	ambient := rollout
	ambient.NodeProxy, ambient.Nodes = "ztunnel", 20
	steady := slow
	steady.Phase, steady.Length, steady.MemoryBytes = "settle", 30*time.Second, 0
	third := series.Position{Number: 3, Runs: 8, After: 11*time.Minute + time.Second}
	search := third
	search.AtMost = true
	const pods, controlPlane = "pods 120/400 created, 116 ready | ", " | control plane 0.34 cores, 215MiB"
	for _, c := range []struct {
		name                    string
		status                  run.Status
		at                      series.Position
		full, columns79, narrow string
	}{
		{
			"one run", rollout, series.Position{Number: 1, Runs: 1},
			"rollout 12s | 1m40s left | " + pods + "sidecars 118 connected, 117 complete, 2 converged" + controlPlane,
			"rollout 12s | 1m40s left | 116/400 pods ready | 2 converged",
			"rollout 12s | 1m40s left | 116/400 pods",
		},
		{
			"slowed down", slow, series.Position{},
			"rollout 4s modelled, 12s real | 1m40s of real time left | " + pods + "sidecars 118 connected, 117 complete, 2 converged" + controlPlane,
			"rollout 4s modelled, 12s real | 1m40s of real time left | 116/400 pods ready",
			"rollout | 1m40s left | 116/400 pods",
		},
		{
			"of fixed length", steady, series.Position{},
			"settle 4s/10s modelled, 12s/30s real | 1m40s of real time left | " + pods + "sidecars 118 connected, 117 complete, 2 converged",
			"settle 4s/10s modelled, 12s/30s real | 1m40s left | 116/400 pods",
			"settle | 1m40s left | 116/400 pods",
		},
		{
			"not known", late, series.Position{},
			"rollout 12s | " + pods + "sidecars 118 connected, 117 complete, 2 converged" + controlPlane,
			"rollout 12s | 116/400 pods ready | 2 converged",
			"rollout 12s | 116/400 pods ready",
		},
		{
			"of several", rollout, third,
			"run 3 of 8 | rollout 12s | 1m40s left, 13m in all | " + pods + "sidecars 118 connected, 117 complete, 2 converged" + controlPlane,
			"run 3 of 8 | rollout 12s | 1m40s left, 13m in all | 116/400 pods ready",
			"rollout | 1m40s left | 116/400 pods",
		},
		{
			"of a search", rollout, search,
			"run 3 of at most 8 | rollout 12s | 1m40s left, at most 13m in all | " + pods + "sidecars 118 connected, 117 complete, 2 converged" + controlPlane,
			"run 3 of at most 8 | rollout 12s | 1m40s left | 116/400 pods",
			"rollout | 1m40s left | 116/400 pods",
		},
		{
			"with proxies of nodes", ambient, series.Position{},
			"rollout 12s | 1m40s left | " + pods + "ztunnels 20 connected | proxies of 118 pods connected, of 117 complete, of 2 converged" + controlPlane,
			"rollout 12s | 1m40s left | 116/400 pods ready | 2 converged",
			"rollout 12s | 1m40s left | 116/400 pods",
		},
		{
			"no phase", run.Status{Phase: "starting", Elapsed: 3 * time.Second, Slowdown: 1, Left: 4 * time.Minute}, third,
			"run 3 of 8 | starting 3s | 4m left, 16m in all", "run 3 of 8 | starting 3s | 4m left, 16m in all", "run 3 | starting | 4m left",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := statusLines(c.status, c.at)
			for i := 1; i < len(lines); i++ {
				if len(lines[i]) > len(lines[i-1]) {
					t.Errorf("%q is longer than %q", lines[i], lines[i-1])
				}
			}
			for _, at := range []struct {
				width int
				want  string
			}{{1000, c.full}, {79, c.columns79}, {39, c.narrow}} {
				if got := fitting(lines, at.width); got != at.want {
					t.Errorf("in %d columns\n%s\nwant\n%s", at.width, got, at.want)
				}
			}
			if got := fitting(lines, 5); !strings.HasPrefix(lines[0], "run 3") && got != c.full[:5] || len(got) != 5 {
				t.Errorf("in 5 columns %q", got)
			}
		})
	}
}

func TestRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Millisecond: "5s", 41 * time.Second: "45s", 59 * time.Second: "1m", 61 * time.Second: "1m10s", 10 * time.Minute: "10m",
		10*time.Minute + time.Second: "11m", 59*time.Minute + time.Second: "1h", 80 * time.Minute: "1h20m",
	} {
		if got := roundedUp(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// A table that grows has its head once above rows that follow each other, and again after other lines.
func TestProgressRows(t *testing.T) {
	var shown strings.Builder
	v := newProgress(&shown)
	row := func(name string, seconds float64, status record.Status, endedBy record.EndedBy) {
		v.row(name, &record.Run{
			Name: name, Status: status, Phases: []record.Phase{{Name: record.PhaseRollout, Seconds: &seconds, EndedBy: endedBy}},
			ControlPlane: &record.ByPhase[*record.Usage]{Rollout: &record.Usage{Cores: &record.Level{Mean: new(0.25)}, MemoryBytes: &record.Level{Peak: new(float64(200 << 20))}}},
			Latencies:    record.Latencies{CompleteConfiguration: &record.Latency{Unit: "s", Count: 20, P99: new(8.09)}},
		})
	}
	row("istiod-strict-10", 12, record.StatusCompleted, record.EndedByConverged)
	row("istiod-strict-20", 300, record.StatusUnconverged, record.EndedByTimeout)
	v.say("run 3 of 3: istiod-strict-40")
	row("istiod-strict-40\x1b[2J", 13, record.StatusCompleted, record.EndedByConverged)
	const want = `run                           status       rollout    cores  memory peak  complete p99     lost  limits
istiod-strict-10              completed      12.0s    0.250       200MiB         8.09s        0  none
istiod-strict-20              unconverged    >300s    0.250       200MiB         8.09s        0  none
run 3 of 3: istiod-strict-40
run                           status       rollout    cores  memory peak  complete p99     lost  limits
istiod-strict-40 [2J          completed      13.0s    0.250       200MiB         8.09s        0  none
`
	if got := shown.String(); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}
