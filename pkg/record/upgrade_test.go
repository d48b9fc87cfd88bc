package record

import (
	"testing"

	"scaler.mesh/scaler/pkg/scenario"
)

// upgradedRun was upgraded in two waves.
func upgradedRun() *Run {
	stage := func(cores, memory float64, pods int) *UpgradeStage {
		return &UpgradeStage{PeakCores: &cores, PeakMemoryBytes: &memory, PeakPods: &pods}
	}
	r := &Run{
		Scenario:     scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{100}}},
		ControlPlane: &ByPhase[*Usage]{Steady: &Usage{Cores: &Level{Mean: new(0.02), Peak: new(0.1)}, MemoryBytes: &Level{Mean: new(190e6), Peak: new(200e6)}}},
		Upgrade: &Upgrade{
			From: UpgradeVersion{Version: "1.29.1"}, To: UpgradeVersion{Version: "1.31.0"},
			Stages: map[string]*UpgradeStage{"start": stage(0.5, 350e6, 100), "wave-1": stage(0.6, 410e6, 105), "wave-2": stage(1.52, 420e6, 112), "after": stage(0.02, 230e6, 100)},
		},
	}
	for _, name := range []string{"start", "wave-1", "wave-2", "after"} {
		r.Phases = append(r.Phases, Phase{Name: UpgradePhase(name)})
	}
	return r
}

func TestUpgradeSentence(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Run)
		want   string
	}{
		{"one peak", func(*Run) {}, "During the upgrade from 1.29.1 to 1.31.0 the cluster needs 1.5 cores and 210MiB more than before for control planes, at its peak in wave 2, and room for 12 more pods."},
		{"two peaks", func(r *Run) {
			r.Upgrade.Stages["start"].PeakMemoryBytes = new(2e9)
			r.Upgrade.Stages["wave-1"].PeakPods, r.Upgrade.Stages["wave-2"].PeakPods = new(100), new(100)
		}, "During the upgrade from 1.29.1 to 1.31.0 the cluster needs 1.5 cores and 1.68GiB more than before for control planes, cores in wave 2, memory in the stage start."},
		{"less than before", func(r *Run) {
			r.ControlPlane.Steady.MemoryBytes.Peak = new(500e6)
		}, "During the upgrade from 1.29.1 to 1.31.0 the cluster needs 1.5 cores and 0B more than before for control planes, cores in wave 2, memory in the stage start, and room for 12 more pods."},
		{"nothing known before", func(r *Run) { r.ControlPlane = nil }, ""},
		{"interrupted before a stage", func(r *Run) { r.Upgrade.Stages = nil }, ""},
		{"no upgrade", func(r *Run) { r.Upgrade = nil }, ""},
	} {
		r := upgradedRun()
		test.change(r)
		r.FindRoom()
		if got := r.UpgradeSentence(); got != test.want {
			t.Errorf("%s: %q\nwant %q", test.name, got, test.want)
		}
	}
}

// The waves of a captured mesh are stated with what they moved; those of others are alike.
func TestUpgradeWaves(t *testing.T) {
	r := upgradedRun()
	if got := r.UpgradeWaves(); got != "" {
		t.Errorf("of a synthetic mesh: %q", got)
	}
	for name, moved := range map[string][]UpgradeUnit{
		"wave-1": {{Kind: UpgradeRevision, Name: "1-31-0", Namespaces: []string{"orders"}, Pods: 7}},
		"wave-2": {{Kind: UpgradeNamespace, Name: "web", Namespaces: []string{"web"}, Pods: 2}, {Kind: UpgradeTag, Name: "prod", Namespaces: []string{"a", "b", "c", "d", "e"}, Pods: 50}},
	} {
		pods := 0
		for _, u := range moved {
			pods += u.Pods
		}
		r.Upgrade.Stages[name].Moved, r.Upgrade.Stages[name].Pods = moved, &pods
	}
	const want = "Wave 1 moved 7 pods: revision 1-31-0, newer already, of namespace orders; wave 2 moved 52 pods: tag prod of 5 namespaces (a, b, c and 2 more), by label namespace web."
	if got := r.UpgradeWaves(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The figures of a stage are found by its name, and a warning about one control plane reaches
// what both needed.
func TestUpgradeFigures(t *testing.T) {
	r := upgradedRun()
	r.Upgrade.Stages["wave-1"].To = &UpgradeSide{Responses: new(int64(7)), Push: map[ChangeKind]*Latency{EndpointRemove: {Count: 3, Max: new(0.2)}}}
	for path, want := range map[string]float64{
		"upgrade.stages.wave-1.peakCores":                  0.6,
		"upgrade.stages.wave-1.to.responses":               7,
		"upgrade.stages.wave-1.to.push.endpointRemove.max": 0.2,
	} {
		if got := r.Value(path); got == nil || *got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
		if _, ok := FigureAt(path); !ok {
			t.Errorf("%s is no figure", path)
		}
	}
	w := Warning{Reason: ReasonSaturated, About: "upgrade.stages.wave-1.to.controlPlane"}
	reached := map[string]bool{}
	for _, path := range r.Reach(w) {
		reached[path] = true
	}
	for _, path := range []string{w.About, "upgrade.stages.wave-1.peakCores", "upgrade.stages.wave-1.to.push", "upgrade.room.cores"} {
		if !reached[path] {
			t.Errorf("the warning does not reach %s", path)
		}
	}
}
