package cli

import (
	"testing"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/internal/run"
)

// A rollout is slowed down as a trial chooses unless a factor is given, or its cores at rest would be wrong. Commands that do many rollouts
// do not slow down by default.
func TestDilationByDefault(t *testing.T) {
	for name, c := range map[string]struct {
		texts     rolloutTexts
		args      []string
		want      float64
		byDefault bool
	}{
		"rollout":         {rolloutTexts{dilation: "auto"}, nil, dilation.Auto, true},
		"a trial":         {rolloutTexts{dilation: "auto"}, []string{"--dilate", "auto"}, dilation.Auto, false},
		"a factor":        {rolloutTexts{dilation: "auto"}, []string{"--dilate", "4"}, 4, false},
		"none":            {rolloutTexts{dilation: "auto"}, []string{"--dilate", "1"}, 1, false},
		"kept":            {rolloutTexts{dilation: "auto"}, []string{"--keep"}, 0, true},
		"osm":             {rolloutTexts{dilation: "auto"}, []string{"--control-plane", "osm"}, 0, true},
		"typical profile": {rolloutTexts{dilation: "auto"}, []string{"--profile", "typical"}, 0, true},
		"outside churn":   {rolloutTexts{dilation: "auto"}, []string{"--outside-churn", "1"}, 0, true},
		"real sidecars":   {rolloutTexts{dilation: "auto"}, []string{"--real-sidecars", "2"}, 0, true},
		"another command": {rolloutTexts{}, nil, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := rolloutOptions{ladder: run.Ladder{Spec: run.DefaultSpec()}, texts: c.texts}
			cmd := &cobra.Command{Use: "rollout"}
			o.addFlags(cmd)
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			if err := o.parseTexts(cmd.Flags()); err != nil {
				t.Fatal(err)
			}
			if o.ladder.Spec.Instrument.Dilation != c.want || o.ladder.ByDefault != c.byDefault {
				t.Errorf("the factor is %g, by default %v, want %g, %v", o.ladder.Spec.Instrument.Dilation, o.ladder.ByDefault, c.want, c.byDefault)
			}
		})
	}
}
