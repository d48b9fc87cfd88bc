package report

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// Each threshold of each run has a row, also one that this program has no figure for.
func TestThresholds(t *testing.T) {
	run := func(name string, cores *float64, thresholds ...string) *record.Run {
		r := &record.Run{Name: name, ControlPlane: &record.ByPhase[*record.Usage]{Rollout: &record.Usage{Cores: &record.Level{Mean: cores}}}}
		r.Scenario.Thresholds = thresholds
		return r
	}
	runs := []*record.Run{
		run("a", new(1.2), "rollout.cores<1.5", "rollout.cores>1.5"),
		run("b", nil, "rollout.cores<1.5", "no.such.figure<1"),
		run("c", new(1.2)),
	}
	var d warnings
	for _, r := range runs {
		d.add(r)
	}
	var got [][]string
	for _, row := range d.thresholds(runs...).Rows {
		var texts []string
		for _, c := range row {
			texts = append(texts, c.String())
		}
		got = append(got, texts)
	}
	want := [][]string{
		{"rollout.cores<1.5", "a", "1.20", "met"},
		{"rollout.cores>1.5", "a", "1.20", "missed"},
		{"rollout.cores<1.5", "b", "-", "unknown: the run did not measure it"},
		{"no.such.figure<1", "b", "-", `unknown: objective: got "no.such.figure<1", want FIGURE<VALUE or FIGURE>VALUE, as in 'push.p99<2s' or 'rollout.cores<1.5': there is no figure "no.such.figure": docs/reference/figures.md lists them`},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the rows are %q, want %q", got, want)
	}
}

// The head of a page has a row for each threshold of each run, with a class for its result, once.
func TestThresholdsOfPage(t *testing.T) {
	small, big := fullRun(), fullRun()
	small.Warnings, big.Warnings = nil, nil // which leave some undecided
	small.Scenario.Thresholds = []string{"rollout.cores<100", "rollout.cores>100", "no.such.figure<1"}
	big.Name, big.Scenario.Mesh.Pods, big.Scenario.Thresholds = "istiod-strict-400", []int{400}, []string{"rollout.cores<100"}
	for _, c := range []struct {
		runs []record.Run
		want []string
	}{
		{[]record.Run{small}, []string{"met", "missed", "open"}},
		{[]record.Run{small, big}, []string{"met", "missed", "open", "met"}},
		{[]record.Run{killedRun()}, nil},
	} {
		var page strings.Builder
		if err := HTML(&page, c.runs, nil); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, found := range regexp.MustCompile(`<span class="(met|missed|open)">`).FindAllStringSubmatch(page.String(), -1) {
			got = append(got, found[1])
		}
		if !slices.Equal(got, c.want) || strings.Contains(page.String(), `id="thresholds"`) != (c.want != nil) {
			t.Errorf("%d runs: the results are %q, want %q", len(c.runs), got, c.want)
		}
	}
}
