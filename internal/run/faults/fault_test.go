package faults

import (
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]Fault{
		"kill-control-plane@steady":     {Kind: KillControlPlane, Phase: record.PhaseSteady},
		"restart-control-plane@rollout": {Kind: RestartControlPlane, Phase: record.PhaseRollout},
		"reset-streams:20%@steady":      {Kind: ResetStreams, Share: 0.2, Phase: record.PhaseSteady},
		"reset-streams:0.5%@rollout":    {Kind: ResetStreams, Share: 0.005, Phase: record.PhaseRollout},
		"reset-streams:100%@steady":     {Kind: ResetStreams, Share: 1, Phase: record.PhaseSteady},
		"api-server-gone:10s@rollout":   {Kind: APIServerGone, Time: 10 * time.Second, Phase: record.PhaseRollout},
		"pause-scaler:1m30s@steady":     {Kind: PauseScaler, Time: 90 * time.Second, Phase: record.PhaseSteady},
		"kill-control-plane@probe":      {Kind: KillControlPlane, Phase: record.PhaseProbe},
		"reset-streams:5%@probe":        {Kind: ResetStreams, Share: 0.05, Phase: record.PhaseProbe},
		"rolling-restart@steady":        {Kind: RollingRestart, Phase: record.PhaseSteady},
		"kill-replica@probe":            {Kind: KillReplica, Phase: record.PhaseProbe},
		"add-replica@rollout":           {Kind: AddReplica, Phase: record.PhaseRollout},
		"kill-control-plane:web@steady": {Kind: KillControlPlane, Program: "web", Phase: record.PhaseSteady},
		"restart-replicas@steady":       {Kind: RestartReplicas, Phase: record.PhaseSteady},
	} {
		got, err := Parse(in)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", in, got, err, want)
		}
		if got.String() != in {
			t.Errorf("Parse(%q) prints as %q", in, got)
		}
	}
	for _, in := range []string{
		"", "@", "@steady", "kill-control-plane", "kill-control-plane@", "pause-scaler:5s@probe", "api-server-gone:5s@probe", "rolling-restart@probe", "kill-control-plane@baseline",
		"kill-control-plane@Steady", "kill-control-plane:@steady", "rolling-restart@steady@steady",
		"reset-streams@steady", "reset-streams:@steady", "reset-streams:20@steady", "reset-streams:0%@steady", "reset-streams:-1%@steady",
		"reset-streams:101%@steady", "reset-streams:NaN%@steady", "reset-streams:x%@steady",
		"api-server-gone@steady", "api-server-gone:0s@steady", "api-server-gone:11m@steady", "pause-scaler:5@steady", "pause-scaler:-5s@steady",
		"burn-it-down@steady", "kill-replica:1@steady", "add-replica@baseline",
	} {
		if got, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", in, got)
		}
	}
}

func TestCheckPrograms(t *testing.T) {
	for _, test := range []struct {
		program string
		has     []string
		ok      bool
	}{
		{"", nil, true}, {"", []string{"web"}, true}, {"web", []string{"ca", "web"}, true}, {"web", nil, false}, {"web", []string{"ca"}, false},
	} {
		fault := Fault{Kind: KillControlPlane, Program: test.program, Phase: record.PhaseSteady}
		if err := CheckPrograms([]Fault{fault}, "mesh", test.has); (err == nil) != test.ok {
			t.Errorf("%v with %v: %v", fault, test.has, err)
		}
	}
}

func TestCheckReplicas(t *testing.T) {
	parse := func(texts ...string) (all []Fault) {
		for _, text := range texts {
			f, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, f)
		}
		return all
	}
	for _, test := range []struct {
		faults   []Fault
		replicas int
		ok       bool
	}{
		{nil, 1, true},
		{parse("kill-control-plane@steady"), 1, true},
		{parse("kill-replica@steady"), 1, false},
		{parse("kill-replica@steady"), 2, true},
		{parse("kill-replica@steady", "kill-replica@steady"), 2, false},
		{parse("kill-replica@steady", "add-replica@rollout"), 1, true}, // the rollout comes first
		{parse("add-replica@steady", "kill-replica@probe"), 1, false},  // the probe comes before steady's
		{parse("restart-replicas@steady"), 1, false},
		{parse("kill-replica@rollout", "restart-replicas@steady"), 2, false},
		{parse("kill-replica@rollout", "restart-replicas@steady"), 3, true},
	} {
		if err := CheckReplicas(test.faults, test.replicas); (err == nil) != test.ok {
			t.Errorf("%v with %d replicas: %v", test.faults, test.replicas, err)
		}
	}
}

// Only replicas that serve are compared, and chance would leave none of many without any.
func TestBalance(t *testing.T) {
	if got := Balance(map[string]*record.FaultReplica{"a": {After: 5, Serves: true}, "b": {After: 0}}); got != nil {
		t.Errorf("one that serves is balanced: %+v", got)
	}
	got := Balance(map[string]*record.FaultReplica{"a": {After: 60, Serves: true}, "b": {After: 40, Serves: true}, "gone": {}})
	if got == nil || got.Replicas != 2 || got.Streams != 100 || got.Most != 60 || got.Probability > 0.05 {
		t.Errorf("60 and 40 are %+v", got)
	}
}

// FuzzParse checks that what is accepted prints as what means the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"kill-control-plane@steady", "reset-streams:20%@rollout", "api-server-gone:10s@steady", "x:1@y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fault, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(fault.String())
		if err != nil || again.String() != fault.String() || again.Kind != fault.Kind {
			t.Errorf("%q: printed as %q, which parses as %+v, %v", s, fault, again, err)
		}
	})
}

func TestDue(t *testing.T) {
	for _, test := range []struct{ i, n, pods, want int }{
		{0, 1, 200, 100}, {0, 1, 1, 1}, {0, 3, 100, 25}, {1, 3, 100, 50}, {2, 3, 100, 75}, {0, 9, 2, 1},
	} {
		if got := due(test.i, test.n, test.pods); got != test.want {
			t.Errorf("fault %d of %d with %d pods is due at %d, want %d", test.i, test.n, test.pods, got, test.want)
		}
	}
}
