package capacity

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// Processor time of runs that were not made at one speed is warned about.
func TestPlanOfDifferentSpeeds(t *testing.T) {
	for name, test := range map[string]struct {
		last, after float64 // of the last run, before and after
		want        string
	}{
		"one speed":   {1.02, 1.03, ""},
		"two speeds":  {1.2, 1.2, "1 to 1.2 reference processors, which differ by more than 5%"},
		"one changed": {1.1, 0.9, "in 1 run of 8 a processor was more than 5% faster or slower"},
	} {
		all := strict().runs(nil, 2, 200, 400, 600, 800)
		for i := range all {
			p := &record.Processor{Model: "one", Before: &record.Speed{Work: "1", Speed: 1}, After: &record.Speed{Work: "1", Speed: 1}}
			if i == len(all)-1 {
				p.Before.Speed, p.After.Speed = test.last, test.after
			}
			all[i].Environment.Processor = p
		}
		plan, err := Make(all, Options{Pods: 1600})
		if err != nil {
			t.Fatal(err)
		}
		var said string
		for _, d := range plan.Warnings {
			if d.About == rolloutCPU && strings.Contains(d.Text, "processor") && (strings.Contains(d.Text, "differ by") || strings.Contains(d.Text, "faster")) {
				said += d.Text
			}
		}
		if test.want == "" && said != "" || !strings.Contains(said, test.want) {
			t.Errorf("%s: %q, want %q", name, said, test.want)
		}
	}
}
