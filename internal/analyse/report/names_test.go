package report

import (
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

func TestApartByName(t *testing.T) {
	for name, test := range map[string]struct{ runs, want []string }{ // NAME@DIR
		"different":        {[]string{"a@/x/a", "b@/x/b"}, []string{"a", "b"}},
		"of two ladders":   {[]string{"a@/x/before/a", "a@/x/after/a", "b@/x/after/b"}, []string{"before/a", "after/a", "b"}},
		"one above":        {[]string{"a@/x/a", "a@/x/more/a"}, []string{"a", "more/a"}},
		"beginning alike":  {[]string{"a@/x/run/a", "a@/x/runs/a"}, []string{"run/a", "runs/a"}},
		"nothing together": {[]string{"a@/x/a", "a@/y/a"}, []string{"x/a", "y/a"}},
		"of no folder":     {[]string{"a@", "a@"}, []string{"a", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var runs []record.Run
			for _, text := range test.runs {
				name, dir, _ := strings.Cut(text, "@")
				runs = append(runs, record.Run{Name: name, Dir: dir})
			}
			var got []string
			for _, r := range withUniqueNames(runs) {
				got = append(got, r.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
			if runs[0].Name != strings.Split(test.runs[0], "@")[0] {
				t.Error("the runs themselves were renamed")
			}
		})
	}
}
