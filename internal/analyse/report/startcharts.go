package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/analyse/report/chart"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// stage is a part of a pod's start.
type stage struct {
	name     string
	from, to func(*record.Startup) time.Time
}

// stages in order; some run in parallel.
var stages = []stage{
	{"admission", func(s *record.Startup) time.Time { return s.Owner }, func(s *record.Startup) time.Time { return s.Seen }},
	{"address", func(s *record.Startup) time.Time { return s.Seen }, func(s *record.Startup) time.Time { return s.IP }},
	{"token", func(s *record.Startup) time.Time { return s.IP }, func(s *record.Startup) time.Time { return s.Token }},
	{"key and certificate", func(s *record.Startup) time.Time { return s.Token }, func(s *record.Startup) time.Time { return s.Certified }},
	{"connecting, all attempts", func(s *record.Startup) time.Time { return s.Dialed }, func(s *record.Startup) time.Time { return s.Connected }},
	{"first configuration", func(s *record.Startup) time.Time { return s.Requested }, func(s *record.Startup) time.Time { return s.Answered }},
	{"rest of configuration", func(s *record.Startup) time.Time { return s.Answered }, func(s *record.Startup) time.Time { return s.Complete }},
	{"readiness reported", done, func(s *record.Startup) time.Time { return s.Reported }},
	{"seen ready", func(s *record.Startup) time.Time { return s.Reported }, func(s *record.Startup) time.Time { return s.Ready }},
}

// done returns the time at which a sidecar had its certificate and was initialized: its pod is
// ready to serve.
func done(s *record.Startup) time.Time {
	if s.Initialized.IsZero() || s.Certified.IsZero() {
		return time.Time{}
	}
	if s.Certified.After(s.Initialized) {
		return s.Certified
	}
	return s.Initialized
}

// starts draws the starts of the rollout's median pod and of its slowest.
func (r *runCharts) starts() []template.HTML {
	all, err := r.run.Startups()
	none := r.absence(err, "events.jsonl", "the record has no events.jsonl.")
	all = r.ofRollout(all)
	slices.SortStableFunc(all, func(a, b record.PodStartup) int { return cmp.Compare(readyAfter(a), readyAfter(b)) })
	if none == "" && len(all) == 0 {
		none = "no pod became ready in the rollout."
	}
	var drawn []template.HTML
	for _, which := range []struct {
		id, title string
		at        int
	}{{"median", "Start of the median pod", (len(all) - 1) / 2}, {"slowest", "Start of the slowest pod", len(all) - 1}} {
		c := chart.Spans{
			Chart: chart.Chart{ID: r.id + "-start-" + which.id, Title: which.title, Absent: none},
			X:     chart.Axis{Name: "time since its creation was requested", Ticks: chart.Seconds}, Format: func(v float64) string { return seconds(&v) },
		}
		if len(all) > 0 {
			c.Absent = ""
			pod := all[which.at]
			c.About = fmt.Sprintf("%s, ready %s after it was first seen; of %s.", pod.Pod, seconds(new(readyAfter(pod).Seconds())), r.ofPods(len(all), err))
			c.Spans, c.Table = spansOf(&pod.Times)
		}
		drawn = append(drawn, r.draw.draw(c))
	}
	return drawn
}

// ofPods states the number of pods with a start, and the number of requested pods without
// one, which are slower than all of these. With an error, of reading the starts, it does
// not claim that the latter did not become ready.
func (r *runCharts) ofPods(n int, err error) string {
	if r.run.Pods == nil || r.run.Pods.Requested <= n {
		return output.Many(n, "pod")
	}
	others := "never became ready"
	if err != nil {
		others = "are not on record"
	}
	return fmt.Sprintf("%d of %s; %d %s", n, output.Many(r.run.Pods.Requested, "pod"), r.run.Pods.Requested-n, others)
}

func readyAfter(p record.PodStartup) time.Duration { return p.Times.Ready.Sub(p.Times.Seen) }

// ofRollout returns the starts of pods that were created in the rollout, without those of
// probes, churn and faults.
func (r *runCharts) ofRollout(all []record.PodStartup) []record.PodStartup {
	p := r.run.Phase(record.PhaseRollout)
	if p == nil {
		return nil
	}
	return slices.DeleteFunc(all, func(s record.PodStartup) bool {
		return s.Times.Seen.Before(p.Start) || p.End != nil && s.Times.Seen.After(*p.End)
	})
}

func spansOf(s *record.Startup) ([]chart.Span, chart.Table) {
	origin := s.Owner
	if origin.IsZero() {
		origin = s.Seen
	}
	table := chart.Table{Head: []string{"stage", "from", "to", "took"}}
	var spans []chart.Span
	for i, stage := range stages {
		from, to := stage.from(s), stage.to(s)
		if from.IsZero() || to.IsZero() {
			continue
		}
		span := chart.Span{Name: stage.name, From: max(0, from.Sub(origin).Seconds()), To: max(0, to.Sub(origin).Seconds()), Hue: i}
		spans = append(spans, span)
		table.Rows = append(table.Rows, []string{stage.name, seconds(&span.From), seconds(&span.To), seconds(new(span.To - span.From))})
	}
	return spans, table
}
