package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/pkg/scenario"
)

// A rollout is slowed down as a trial chooses unless a factor is given, or its cores at rest would be wrong. Commands that do many rollouts
// do not slow down by default.
func TestDilationByDefault(t *testing.T) {
	none, auto := scenario.Dilation{Factor: 1}, scenario.Dilation{Auto: true}
	many, upgraded := shortRollouts(), scenario.Default()
	many.Repeats = tuneRepeats
	upgraded.Instrument.Dilation = none
	for name, c := range map[string]struct {
		command   string
		defaults  scenario.Scenario
		args      []string
		want      scenario.Dilation
		byDefault bool
	}{
		"rollout":         {scenario.Rollout, scenario.Default(), nil, auto, true},
		"a trial":         {scenario.Rollout, scenario.Default(), []string{"--dilate", "auto"}, auto, false},
		"a factor":        {scenario.Rollout, scenario.Default(), []string{"--dilate", "4"}, scenario.Dilation{Factor: 4}, false},
		"none":            {scenario.Rollout, scenario.Default(), []string{"--dilate", "1"}, none, false},
		"kept":            {scenario.Rollout, scenario.Default(), []string{"--keep"}, none, true},
		"osm":             {scenario.Rollout, scenario.Default(), []string{"--control-plane", "osm"}, none, true},
		"typical profile": {scenario.Rollout, scenario.Default(), []string{"--profile", "typical"}, none, true},
		"outside churn":   {scenario.Rollout, scenario.Default(), []string{"--set", "mesh.parts.outsideChurn=1"}, none, true},
		"real sidecars":   {scenario.Rollout, scenario.Default(), []string{"--real-sidecars", "2"}, none, true},
		"tune":            {scenario.Tune, many, nil, none, false},
		"tune, a factor":  {scenario.Tune, many, []string{"--dilate", "2"}, scenario.Dilation{Factor: 2}, false},
		"upgrade":         {scenario.Upgrades, upgraded, []string{"--from", "1.29.1", "--to", "1.31.0"}, none, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SCALER_STATE_DIR", t.TempDir())
			var o rolloutOptions
			cmd := &cobra.Command{Use: c.command, RunE: func(*cobra.Command, []string) error { return nil }}
			s := streams{out: io.Discard, err: io.Discard}
			o.addFlags(cmd, s, c.command, c.defaults)
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			l, _, err := o.ladder(cmd, s)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Spec.Instrument.Dilation; got != c.want || l.ByDefault != c.byDefault {
				t.Errorf("the factor is %s, by default %v, want %s, %v", got, l.ByDefault, c.want, c.byDefault)
			}
		})
	}
}

// The commands that do many rollouts have no dilation by default, and rollout leaves it to a trial.
func TestDilationOfCommands(t *testing.T) {
	for command, want := range map[string]string{
		"rollout":                         "",
		"rollout --knob-sweep":            "dilation: 1",
		"bench --versions 1.29.1,1.31.0":  "dilation: 1",
		"upgrade --from 1.29.1 --to 1.31": "dilation: 1",
		"limits":                          "dilation: 1",
		"tune":                            "dilation: 1",
	} {
		var stdout strings.Builder
		args := append(strings.Fields(command), "--print-scenario=all")
		if err := execute(t.Context(), args, strings.NewReader(""), &stdout, io.Discard); err != nil {
			t.Fatal(err)
		}
		if _, got, _ := strings.Cut(stdout.String(), "instrument:"); !strings.Contains(got, want) || want == "" && strings.Contains(got, "dilation:") {
			t.Errorf("scaler %s has the instrument%swant %q in it", command, got, want)
		}
	}
}
