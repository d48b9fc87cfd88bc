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
		"kill-control-plane@Steady", "kill-control-plane:1s@steady", "kill-control-plane:@steady", "rolling-restart@steady@steady",
		"reset-streams@steady", "reset-streams:@steady", "reset-streams:20@steady", "reset-streams:0%@steady", "reset-streams:-1%@steady",
		"reset-streams:101%@steady", "reset-streams:NaN%@steady", "reset-streams:x%@steady",
		"api-server-gone@steady", "api-server-gone:0s@steady", "api-server-gone:11m@steady", "pause-scaler:5@steady", "pause-scaler:-5s@steady",
		"burn-it-down@steady",
	} {
		if got, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", in, got)
		}
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
