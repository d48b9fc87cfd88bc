package latency

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

var _ = It("interleaves variants", func() {
	t := GinkgoTB()
	var order []int
	last := turn{}
	for i, turn := range turns(2, 3, 2, 3) {
		if turn.level < last.level || turn.level == last.level && turn.repeat < last.repeat {
			t.Fatalf("turn %d is %+v after %+v", i, turn, last)
		}
		order, last = append(order, turn.variant), turn
	}
	want := slices.Repeat([]int{0, 1, 2, 2, 1, 0}, 6) // A B C, C B A, across repeats and rates
	if !slices.Equal(order, want) {
		t.Errorf("variants take turns as %v: want %v", order, want)
	}
})

var _ = It("reports quantiles that the lateness reaches", func() {
	t := GinkgoTB()
	latency := record.Latency{P50: new(1e-3), P90: new(1e-3), P99: new(0.1), Max: new(1.0)}
	for _, c := range []struct {
		name     string
		lateness record.Latency
		want     []string
	}{
		{"within both", record.Latency{P50: new(50e-6), P90: new(90e-6), P99: new(0.009), Max: new(0.09)}, nil},
		{"over a tenth, below 0.2 ms", record.Latency{P50: new(150e-6), P90: new(199e-6)}, nil},
		{"over 0.2 ms, below a tenth", record.Latency{P99: new(0.005), Max: new(0.05)}, nil},
		{"over both", record.Latency{P50: new(50e-6), P90: new(250e-6), P99: new(0.011), P999: new(5.0), Max: new(0.2)}, []string{"p90", "p99", "max"}},
	} {
		if got := late(&latency, &c.lateness); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
})

var _ = It("reports no lateness of lost requests", func() {
	t := GinkgoTB()
	latency := record.Latency{P50: new(1e-3), Max: new(0.1), Lost: 1}
	if got := late(&latency, &record.Latency{P50: new(0.5e-3), Max: new(0.05)}); !slices.Equal(got, []string{"p50"}) {
		t.Errorf("late at %v: want p50, as nobody knows the maximum", got)
	}
})

// The third repeat was interrupted after one of its two rounds, in which only
// one of the variants had its second.
var _ = It("counts no part of a repeat", func() {
	t := GinkgoTB()
	r := &run{spec: DefaultSpec()}
	r.spec.Latency.Variants, r.spec.Latency.RPS, r.spec.Repeats, r.spec.Latency.Rounds = []string{VariantNone, VariantStrict}, []float64{100}, 4, 2
	r.plan()
	for repeat, rounds := range [][]int{{2, 2}, {2, 2}, {1, 2}} {
		for variant, n := range rounds {
			to := r.cells[variant].repeats[repeat]
			to.rounds, to.requests = n, int64(n)
			for range n {
				to.latency.Record(time.Duration(1+repeat+variant) * time.Millisecond)
			}
		}
	}
	r.cells[1].repeats[2].latency.Record(time.Hour)
	r.rows()
	for _, row := range r.record.Rows {
		if len(row.Repeats) != 3 || row.Latency.Intervals.Max == nil || row.Latency.Intervals.Max.High > 60 {
			t.Errorf("%s: %d repeats, intervals %+v: want 3, and intervals of two", row.Variant, len(row.Repeats), row.Latency.Intervals.Max)
		}
	}
	if got := r.record.Rows[1].Added; got == nil || got.Max.Seconds > 0.0011 {
		t.Errorf("added: %+v, want 1 ms, of two repeats", got)
	}
	if w := r.record.Warnings; len(w) != 2 || w[1].About != "rows[1].latency" || !strings.HasPrefix(w[1].Text, "of 3 repeats all variants did all rounds of 2") {
		t.Errorf("warnings %+v: want what the intervals are of", w)
	}
	if got := added(nil, nil); got != nil {
		t.Errorf("added over no whole repeat: %+v", got)
	}
})

// Of one row a p of 0.02 is significant; of five it is not.
var _ = It("corrects for the number of rows", func() {
	t := GinkgoTB()
	rows := func(p ...float64) (all []record.LatencyRow) {
		for _, p := range p {
			all = append(all, record.LatencyRow{Added: &record.Quantiles[record.Added]{P50: &record.Added{P: new(p)}, P99: &record.Added{}}})
		}
		return append(all, record.LatencyRow{}) // of none
	}
	for _, tt := range []struct {
		p           []float64
		holm        float64 // of the first
		significant bool
	}{{[]float64{0.02}, 0.02, true}, {[]float64{0.02, 0.3, 0.4, 0.5, 0.6}, 0.1, false}, {[]float64{0.001, 0.3, 0.4, 0.5, 0.6}, 0.005, true}} {
		all := rows(tt.p...)
		correct(all)
		first := all[0].Added.P50
		if math.Abs(*first.Holm-tt.holm) > 1e-12 || *first.Significant != tt.significant || all[0].Added.P99.Significant != nil {
			t.Errorf("%v: %+v", tt.p, first)
		}
	}
})

var _ = It("pairs added latency by repeat", func() {
	t := GinkgoTB()
	repeat := func(ms int) *repeatRun {
		h := stats.NewHistogram()
		h.Record(time.Duration(ms) * time.Millisecond)
		return &repeatRun{latency: h}
	}
	row := func(ms ...int) (rows []record.LatencyRepeat) {
		for _, v := range ms {
			rows = append(rows, record.LatencyRepeat{Latency: record.Latency(repeat(v).latency.Summary())})
		}
		return rows
	}
	// The machine became three times as slow, the difference did not.
	none := []*repeatRun{repeat(10), repeat(20), repeat(30)}
	got := added(row(12, 22, 33), none).P50
	if got == nil || got.Seconds < 0.0023 || got.Seconds > 0.0024 || *got.P > 0.05 || got.Interval.Low < 0 {
		t.Errorf("added: %+v, want 2.3 ms with significance", got)
	}
	if got := added(row(12, 18, 33), none).P50; *got.P < 0.05 {
		t.Errorf("added: %+v, want no significant difference", got)
	}
	if got := added(row(12), none[:1]).P50; got.P != nil || got.Interval != nil || got.Significant != nil {
		t.Errorf("one repeat has a test: %+v", got)
	}
	unanswered := row(12, 22, 33)
	unanswered[1].Latency.Lost = 1
	if got := added(unanswered, none); got.Max != nil || got.P50 == nil {
		t.Errorf("the maximum of good answers is compared although some were lost: %+v", got.Max)
	}
	if got := intervals(unanswered); got.Max != nil || got.P50 == nil {
		t.Errorf("the maximum of good answers has an interval although some were lost: %+v", got.Max)
	}
	lost := row(12, 22, 33)
	lost[1].Latency.P99 = nil
	if got := added(lost, none); got.P99 != nil || got.P50 == nil {
		t.Errorf("a quantile that a repeat has lost is compared: %+v", got.P99)
	}
})

// What a sidecar tries again is no error there, and one without a mesh.
var _ = It("reports that sidecars retry", func() {
	t := GinkgoTB()
	for name, c := range map[string]struct {
		kill    scenario.Duration
		retries int
		want    []string // what warnings are about
	}{
		"istiod":           {1e9, 2, []string{"rows[1]", "rows[2]"}},
		"reference":        {1e9, 0, nil},
		"nobody is killed": {0, 2, nil},
	} {
		r := &run{spec: DefaultSpec(), retries: c.retries}
		r.spec.Latency.RPS, r.spec.Latency.Rounds, r.spec.Latency.KillServerEvery = []float64{100}, 1, c.kill
		r.plan()
		for _, cell := range r.cells {
			cell.repeats[0].rounds = 1
		}
		r.rows()
		var got []string
		for _, w := range r.record.Warnings {
			got = append(got, w.About)
			if !strings.Contains(w.Text, "up to 2 times more") || !strings.Contains(w.Text, "as istiod has it do") {
				t.Errorf("%s: %q", name, w.Text)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: warnings about %q, want %q", name, got, c.want)
		}
	}
})

var _ = It("reports sidecars that waited for processors", func() {
	t := GinkgoTB()
	for name, c := range map[string]struct {
		client, server usageSum // of one sidecar each, in 10 s
		want           string   // in the warning; "" = there is none
		saturation     *float64 // of the server's
	}{
		"none waited": {usageSum{waited: 0.5}, usageSum{waited: 1}, "", new(0.1)},
		"one waited":  {usageSum{waited: 0.5}, usageSum{waited: 3}, "those of server for up to 30%", new(0.3)},
		"never known": {usageSum{waited: 0.5}, usageSum{waited: 3, unknown: true}, "", nil},
		"always":      {usageSum{}, usageSum{waited: 10}, "for up to 100%", new(1.0)},
	} {
		By(name, func() {
			r := &run{spec: DefaultSpec()}
			bed := &testbed{sidecars: []tierSidecars{{tier: "client", count: 1}, {tier: "server", count: 1}}}
			row := record.LatencyRow{Sidecars: sidecarsOf(bed, []*repeatRun{{seconds: 10, sidecars: []usageSum{c.client, c.server}}}, 100)}
			if got := row.Sidecars.Tiers[1].Saturation; (got == nil) != (c.saturation == nil) || got != nil && *got != *c.saturation {
				t.Errorf("saturation of the server's: %v, want %v", got, c.saturation)
			}
			r.warnRow(4, &row, 0)
			var texts []string
			for _, w := range r.record.Warnings {
				texts = append(texts, w.About+": "+w.Text)
			}
			if text := strings.Join(texts, "\n"); (text == "") != (c.want == "") || !strings.Contains(text, c.want) || text != "" && !strings.HasPrefix(text, "rows[4]: ") {
				t.Errorf("warnings %q, want %q", text, c.want)
			}
		})
	}
})

var _ = Describe("latency without a mesh", func() {
	var spec Spec
	BeforeEach(func() {
		before := goleak.IgnoreCurrent()
		spec = DefaultSpec()
		spec.Latency.Variants, spec.Latency.RPS = []string{VariantNone}, []float64{100}
		spec.Latency.Duration, spec.Latency.Warmup, spec.Latency.Rounds = 1e9, 200e6, 2
		spec.State, spec.Out = GinkgoT().TempDir(), GinkgoT().TempDir()
		DeferCleanup(func() {
			Expect(os.ReadDir(spec.State + "/latency")).To(BeEmpty())
			Eventually(func() error { return goleak.Find(before) }).Should(Succeed())
		})
	})

	DescribeTable("counts every request", func(ctx SpecContext, change func(), requests int) {
		change()
		run, err := Run(ctx, spec, Progress{})
		Expect(err).NotTo(HaveOccurred())
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(run.Rows).To(HaveLen(1))
		row := run.Rows[0]
		Expect(row.Requests).To(BeEquivalentTo(requests))
		Expect(row.ErrorKinds).To(BeEmpty())
		Expect(row.Latency.Count + row.NotSent).To(BeEquivalentTo(requests))
		Expect(row.Added).To(BeNil())
		Expect(row.Sidecars).To(BeNil())
		Expect(row.Repeats).To(HaveLen(spec.Repeats))
		Expect(row.Latency.Intervals != nil).To(Equal(spec.Repeats > 1))
		Expect(run.Instrument.Cores).NotTo(BeNil())
	},
		Entry("of a pair", func() {}, 100),
		Entry("of two repeats", func() { spec.Repeats = 2 }, 200),
		Entry("of a star", func() { spec.Latency.Topology = StarTopology }, 100),
		Entry("of a chain over HTTP/2", func() {
			spec.Latency.Topology, spec.Latency.Chain, spec.Latency.HTTP = ChainTopology, scenario.List[scenario.Duration]{10e6, 1e6}, 2
		}, 100),
		Entry("of a closed loop", func() { spec.Latency.RPS, spec.Latency.Connections, spec.Latency.Requests = nil, []int{3}, 101 }, 101),
	)

	It("shows errors over time where a server is killed", func(ctx SpecContext) {
		spec.Latency.Duration, spec.Latency.KillServerEvery, spec.Latency.Rounds = 3e9, 1e9, 1
		run, err := Run(ctx, spec, Progress{})
		Expect(err).NotTo(HaveOccurred())
		row := run.Rows[0]
		Expect(row.Errors).To(BeNumerically(">", 0))
		Expect(row.Latency.Lost).To(Equal(row.Errors))
		Expect(row.Timeline).To(HaveLen(3))
		Expect(row.Timeline[0].Requests).To(BeEquivalentTo(100))
		var errors int64
		for _, second := range row.Timeline {
			errors += second.Errors
		}
		Expect(errors).To(Equal(row.Errors))
	})

	It("leaves a truthful record and nothing else when interrupted", func(ctx SpecContext) {
		spec.Latency.Duration, spec.Latency.Rounds = 60e9, 60
		running, interrupt := context.WithCancel(ctx)
		defer interrupt()
		run, err := Run(running, spec, Progress{Status: func(done, _ int) {
			if done == 1 {
				interrupt()
			}
		}})
		Expect(err).To(MatchError(context.Canceled))
		Expect(run.Status).To(Equal(record.StatusInterrupted))
		Expect(run.Rows).To(HaveLen(1))
		Expect(run.Rows[0].Requests).To(BeEquivalentTo(100))
	})
})
