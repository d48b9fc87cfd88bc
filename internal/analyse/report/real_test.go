package report

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

func TestRealSidecarsByMode(t *testing.T) {
	used := func(memory, cpu float64) record.ByPhase[*record.Usage] {
		u := &record.Usage{MemoryBytes: &record.Level{Mean: &memory, End: &memory}, CPUSeconds: &cpu, Cores: &record.Level{Mean: new(0.002)}}
		return record.ByPhase[*record.Usage]{Rollout: u, Steady: u}
	}
	run := func(mode string, memory ...float64) record.Run {
		r := record.Run{Name: "istiod-" + mode + "-200", Status: record.StatusCompleted, Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{200}, Services: 20, Mode: scenario.List[string]{mode}}}}
		real := &record.RealSidecars{Count: len(memory)}
		for _, m := range memory {
			real.Each = append(real.Each, record.RealSidecar{Proxy: used(m, 1), Agent: new(used(40e6, 0.5))})
		}
		r.Sidecars = &record.Sidecars{Real: real}
		return r
	}
	// One of the permissive run's sidecars was not measured: its pod came late.
	permissive := run("permissive", 90e6, 110e6)
	permissive.Sidecars.Real.Each = append(permissive.Sidecars.Real.Each, record.RealSidecar{})
	text := output.Wide(summaryDocument([]record.Run{permissive, run("strict", 50e6)}).write)
	for _, want := range []string{"95.4MiB", "134MiB", "1.50s", "4.00m", "200 pods, 20 services", "2.00\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	none := output.Wide(summaryDocument([]record.Run{{Name: "a"}, {Name: "b"}}).write)
	if strings.Contains(none, "REAL") {
		t.Errorf("a table of nothing:\n%s", none)
	}
}
