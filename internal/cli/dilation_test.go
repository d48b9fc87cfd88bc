package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/pkg/scenario"
)

// A rollout is slowed down as it is expected to need unless a factor is given, or its cores at rest would be wrong, whatever the command.
func TestDilationByDefault(t *testing.T) {
	none, auto := scenario.Dilation{Factor: 1}, scenario.Dilation{Auto: true}
	many, upgraded := shortRollouts(), scenario.Default()
	many.Repeats = tuneRepeats
	for name, c := range map[string]struct {
		command  string
		defaults scenario.Scenario
		args     []string
		want     scenario.Dilation
	}{
		"rollout":         {scenario.Rollout, scenario.Default(), nil, auto},
		"asked for":       {scenario.Rollout, scenario.Default(), []string{"--dilate", "auto"}, auto},
		"a factor":        {scenario.Rollout, scenario.Default(), []string{"--dilate", "4"}, scenario.Dilation{Factor: 4}},
		"none":            {scenario.Rollout, scenario.Default(), []string{"--dilate", "1"}, none},
		"kept":            {scenario.Rollout, scenario.Default(), []string{"--keep"}, none},
		"osm":             {scenario.Rollout, scenario.Default(), []string{"--control-plane", "osm"}, none},
		"typical profile": {scenario.Rollout, scenario.Default(), []string{"--profile", "typical"}, none},
		"outside churn":   {scenario.Rollout, scenario.Default(), []string{"--set", "mesh.parts.outsideChurn=1"}, none},
		"real sidecars":   {scenario.Rollout, scenario.Default(), []string{"--real-sidecars", "2"}, none},
		"tune":            {scenario.Tune, many, nil, auto},
		"tune, a factor":  {scenario.Tune, many, []string{"--dilate", "2"}, scenario.Dilation{Factor: 2}},
		"upgrade":         {scenario.Upgrades, upgraded, []string{"--from", "1.29.1", "--to", "1.31.0"}, auto},
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
			if got := l.Spec.Instrument.Dilation; got != c.want {
				t.Errorf("the factor is %s, want %s", got, c.want)
			}
		})
	}
}

// A knob sweep compares meshes of which some cannot be slowed down, and has no dilation by default. All other commands leave it to the scenario.
func TestDilationOfCommands(t *testing.T) {
	for command, want := range map[string]string{
		"rollout":                         "",
		"rollout --knob-sweep":            "dilation: 1",
		"bench --versions 1.29.1,1.31.0":  "",
		"upgrade --from 1.29.1 --to 1.31": "",
		"limits":                          "",
		"tune":                            "",
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
