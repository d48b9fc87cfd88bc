package report

import (
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

var (
	idPattern   = regexp.MustCompile(` id="([^"]*)"`)
	hrefPattern = regexp.MustCompile(` href="#([^"]*)"`)
	tagPattern  = regexp.MustCompile(`<[^>]*>`)
)

// onDisk returns a run with all files of its record.
func onDisk(t *testing.T, run record.Run) record.Run {
	t.Helper()
	w, err := record.Create(t.TempDir(), run.Name)
	if err != nil {
		t.Fatal(err)
	}
	origin := run.Phases[0].Start
	for i := range 60 {
		moment := record.Moment{
			Time: origin.Add(time.Duration(i) * time.Second), Programs: map[string]record.Load{"istiod": {Cores: 0.5, MemoryBytes: 1e8}, "etcd": {Cores: 0.1, MemoryBytes: 2e7}},
			Created: 2 * i, Ready: i, Connected: i, Responses: map[string]int64{"CDS": int64(3 * i)},
		}
		if err := w.Moment(moment); err != nil {
			t.Fatal(err)
		}
	}
	seen := run.Phases[1].Start.Add(time.Second)
	at := func(ms int) time.Time { return seen.Add(time.Duration(ms) * time.Millisecond) }
	for i := range 3 {
		start := record.PodStartup{Pod: fmt.Sprintf("mesh/pod-%d", i), Times: record.Startup{
			Seen: seen, IP: at(10), Token: at(20), Dialed: at(21), Connected: at(30), Requested: at(31), Answered: at(100), Complete: at(120),
			Certified: at(130), Reported: at(140), Ready: at(1000 * (i + 1)),
		}}
		if err := w.Event(start); err != nil {
			t.Fatal(err)
		}
	}
	h := stats.NewHistogram()
	for i := range 200 {
		h.Record(time.Duration(i+1) * time.Millisecond)
	}
	for _, name := range []string{"certificate", "firstConfiguration", "completeConfiguration", "podReady", "push-route", "propagation-route-last"} {
		if err := w.Histogram(name, h); err != nil {
			t.Fatal(err)
		}
	}
	run.Dir = w.Dir()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return run
}

// asHTML writes runs alone.
func asHTML(w io.Writer, runs []record.Run) error { return HTML(w, runs, nil) }

// readable returns a page without its markup.
func readable(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tagPattern.ReplaceAllString(page, " "))), " ")
}

func TestHTMLHoldsTogether(t *testing.T) {
	hostile := fullRun()
	hostile.Name, hostile.Reason = `"><script>alert(1)</script>`, "<img src=x onerror=alert(2)>"
	hostile.Warnings = append(hostile.Warnings, record.Warning{About: "xds", Text: "</style><b>[1] [99]"})
	for name, runs := range map[string][]record.Run{
		"none": nil, "bare": {{}}, "killed": {killedRun()}, "full": {onDisk(t, fullRun())}, "ladder": ladder(), "climbed": climbed(200, 400, 800), "hostile": {hostile, fullRun()},
	} {
		t.Run(name, func(t *testing.T) {
			page := text(t, asHTML, runs)
			ids := map[string]bool{}
			for _, m := range idPattern.FindAllStringSubmatch(page, -1) {
				if ids[m[1]] {
					t.Errorf("two elements are called %q", m[1])
				}
				ids[m[1]] = true
			}
			for _, m := range hrefPattern.FindAllStringSubmatch(page, -1) {
				if !ids[m[1]] {
					t.Errorf("a link leads to %q, which is nowhere", m[1])
				}
			}
			for _, foreign := range []string{"<script", "<img", "ZgotmplZ", "NaN", "+Inf", "%!"} {
				if strings.Contains(page, foreign) {
					t.Errorf("it holds %q", foreign)
				}
			}
			if n := strings.Count(page, "<svg viewBox=\"0 0 440"); n != strings.Count(page, "<desc") {
				t.Errorf("%d charts have %d descriptions", n, strings.Count(page, "<desc"))
			}
			for _, run := range runs {
				for _, w := range run.Warnings {
					text := w.Sentence()
					if !strings.Contains(readable(page), w.About+" : "+text) {
						t.Errorf("%q is not shown at %q", text, w.About)
					}
				}
			}
			var d warnings
			for i := range runs {
				d.add(&runs[i])
			}
			if n := strings.Count(page, `<li id="limit-`); n != len(d.reasons) {
				t.Errorf("%d reasons are shown, want %d", n, len(d.reasons))
			}
			if m := strings.Count(page, "</a></sup><sup>"); m > 0 {
				t.Errorf("%d figures have several marks", m)
			}
		})
	}
}

// A chart has the marks of its table.
func TestChartsLeadToWarnings(t *testing.T) {
	runs := []record.Run{onDisk(t, fullRun()), onDisk(t, ladder()[0])}
	page := text(t, asHTML, runs)
	for _, c := range []string{
		"overview-complete", "run-1-cores", "run-1-memory", "run-1-time-cores", "run-1-time-memory",
		"run-1-curve-certificate", "run-1-curve-complete", "run-1-curve-push",
	} {
		_, figure, _ := strings.Cut(page, ` id="`+c+`"`)
		figure, _, _ = strings.Cut(figure, "</figure>")
		if !strings.Contains(figure, `href="#limit-`) {
			t.Errorf("%s leads to no reason", c)
		}
	}
	if _, figure, _ := strings.Cut(page, ` id="run-2-time-cores"`); strings.Contains(strings.SplitN(figure, "</figure>", 2)[0], "#limit") {
		t.Error("a chart has a warning that nothing is wrong with")
	}
}

func TestHTMLShowsAll(t *testing.T) {
	page := readable(text(t, asHTML, []record.Run{onDisk(t, fullRun())}))
	for _, want := range []string{
		"istiod 1.31: 200 pods, strict, in bursts of 100 every 10s, with real sidecars", "1 run, 2026-03-04, 2 CPUs, 23.5GiB, kernel 6.1.0",
		"Rolling out 200 pods (strict) in bursts of 100 every 10s, created at 9.87 per second, took 31.4s (an upper bound: processors were saturated); istiod used 47.7s of CPU time, 1.52 cores on average and 1.98 at the peak, sent each sidecar 31.1 pushes and 79.8KiB, and its memory peaked at 208MiB. b,c ",
		"In the steady state istiod used 0 cores on average and held 162MiB of memory, of which 81.1MiB was live heap.",
		"b Saturated processors Threads were ready to run",
		"Cores by phase", "Memory by phase", "Cores over time", "Pods over time", "Connections over time", "Pushes over time",
		"Shaded: baseline, rollout, settle, steady.", "Certificate latency", "Configuration latency", "Push latency, by kind of change",
		"Start of the median pod", "mesh/pod-1, ready 2.00s after it was first seen; of 3 of 200 pods; 197 never became ready.",
		"Responses by type", "pilot_xds 200", "instrument's floor", "controlPlane.rollout : saturated for up to 38% of the phase",
		"How each figure is defined",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	if strings.Contains(page, "Not shown: the record") {
		t.Error("something that is there is not shown")
	}
}

func TestHTMLSaysWhatIsMissing(t *testing.T) {
	damaged := onDisk(t, fullRun())
	for file, content := range map[string]string{
		"timeline.jsonl": "x\n", "events.jsonl": `{"kind":"podReady","fields":1}` + "\n", "latencies/certificate.hgrm": "",
	} {
		if err := os.WriteFile(filepath.Join(damaged.Dir, file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(damaged.HistogramPath("completeConfiguration")); err != nil {
		t.Fatal(err)
	}
	bare := fullRun()
	bare.Dir = t.TempDir()
	half := killedRun()
	half.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(half.Dir, "timeline.jsonl"), []byte(`{"time":"2026-03-04T05:06:12Z","created":1}`+"\n"+`{"cre`), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		run   record.Run
		wants []string
	}{
		"damaged": {damaged, []string{
			"Not shown: timeline.jsonl could not be read: reading timeline.jsonl, line 1", "Not shown: events.jsonl could not be read: reading events.jsonl, line 1",
			"the distributions could not be read: certificate (reading a histogram", "Could not be read: complete configuration (no latencies/completeConfiguration.hgrm in the record).",
		}},
		"bare":   {bare, []string{"Not shown: the record has no time line (timeline.jsonl).", "Not shown: the record has no events.jsonl."}},
		"killed": {half, []string{"istiod-permissive-400 did not complete: interrupted.", "Pods over time", "Shaded: baseline."}},
	} {
		t.Run(name, func(t *testing.T) {
			page := text(t, asHTML, []record.Run{test.run})
			for _, want := range test.wants {
				if !strings.Contains(readable(page), want) {
					t.Errorf("it lacks %q", want)
				}
			}
			if strings.Contains(page, test.run.Dir) {
				t.Error("it names a folder of this machine")
			}
		})
	}
}

// The sections lead to headings that the definitions have.
func TestDefinitionsAreFound(t *testing.T) {
	page, err := definitionsHTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"def-pods", "def-what-programs-need", "def-the-record", "def-connections-and-configuration", "def-certificates-and-tokens", "def-faults-and-churn", "def-the-instrument", "def-what-one-more-pod-costs"} {
		if !strings.Contains(string(page), `id="`+part+`"`) {
			t.Errorf("no heading %q", part)
		}
	}
	for _, link := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(string(page), -1) {
		if strings.Count(string(page), `id="`+link[1]+`"`) != 1 {
			t.Errorf("a link leads to the heading %q, which is not there once", link[1])
		}
	}
	if strings.Contains(string(page), "<h1") || !strings.Contains(string(page), "<table>") {
		t.Error("headings must be a level lower, and tables be tables")
	}
}

func BenchmarkHTML(b *testing.B) {
	var runs []record.Run
	for i := range 20 {
		run := fullRun()
		run.Name = fmt.Sprintf("run-%d", i)
		runs = append(runs, run)
	}
	for b.Loop() {
		if err := HTML(new(strings.Builder), runs, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// A rollout time is an upper bound only where the control plane waited for processors.
func TestAnswerOfRunWithoutSaturation(t *testing.T) {
	calm := fullRun()
	calm.ControlPlane.Rollout.Saturation = new(record.Saturated)
	calm.Environment.ControlPlane.GOMAXPROCS = 4
	page := readable(text(t, asHTML, []record.Run{calm}))
	if strings.Contains(page, "upper bound: processors were saturated") {
		t.Error("a time is shown as a bound")
	}
}

// The largest size that was tried may be one that failed: the answer says so.
func TestAnswerNamesWhatDidNotComplete(t *testing.T) {
	page := readable(text(t, asHTML, ladder()))
	for _, want := range []string{
		"Rolling out 1600 pods (strict) in bursts of 100 every 10s, created at 9.87 per second, took 31.4s",
		"2 of 4 runs did not complete and are in none of these figures: istiod-permissive-400 (400 pods, interrupted), istiod-strict-200-2 (200 pods, unconverged).",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	if page := readable(text(t, asHTML, []record.Run{fullRun()})); strings.Contains(page, "in none of these figures") {
		t.Error("of one that completed it says that it did not")
	}
}

func TestOfPods(t *testing.T) {
	for _, test := range []struct {
		requested, n int
		err          error
		want         string
	}{
		{200, 200, nil, "200 pods"},
		{200, 150, nil, "150 of 200 pods; 50 never became ready"},
		{200, 150, io.ErrUnexpectedEOF, "150 of 200 pods; 50 are not on record"},
		{200, 203, nil, "203 pods"}, // of which faults replaced some
		{1, 1, nil, "1 pod"},
	} {
		r := &runCharts{runReport: &runReport{run: &record.Run{Pods: &record.Pods{Requested: test.requested}}}}
		if got := r.ofPods(test.n, test.err); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
	if got := (&runCharts{runReport: &runReport{run: &record.Run{}}}).ofPods(2, nil); got != "2 pods" {
		t.Errorf("%q of a run that does not say", got)
	}
}

// The speed of the machine, and with it how many of its processors are the modelled ones, differs from run to run: it makes no setting.
func TestSettingsOfSpeeds(t *testing.T) {
	one, other := fullRun(), fullRun()
	one.Environment.ControlPlane.Processors, other.Environment.ControlPlane.Processors = 11.1, 11.7
	if groups := settings([]record.Run{one, other}); len(groups) != 1 {
		t.Errorf("got %d settings of equal runs, want 1", len(groups))
	}
	if text := output.Wide(runDocument(&one).write); !strings.Contains(text, "11.1 processors of this machine in the modelled time") {
		t.Errorf("got\n%.3000s", text)
	}
}

// Cores are drawn in reference cores only if all runs have them.
func TestCoresChart(t *testing.T) {
	one, other := fullRun(), fullRun()
	for _, r := range []*record.Run{&one, &other} {
		r.ControlPlane.Rollout.ReferenceCores, r.ControlPlane.Steady.ReferenceCores = new(0.5), new(0.01)
	}
	chart := coresChart(settings([]record.Run{one, other}))
	if got := chart.figures[0].value(&one); chart.title != "Reference cores: rolling out against steady" || got == nil || *got != 0.5 {
		t.Errorf("got %q of %v", chart.title, got)
	}
	other.ControlPlane.Steady.ReferenceCores = nil
	for _, runs := range [][]record.Run{{one, other}, nil} {
		if chart := coresChart(settings(runs)); chart.title != "Cores: rolling out against steady" {
			t.Errorf("of %d runs: %q", len(runs), chart.title)
		}
	}
}

// A mode of one name may be different settings with two control planes: a page that shows both states
// what each is, at its table and at each chart by size.
func TestHTMLModesOfControlPlanes(t *testing.T) {
	ours, others := fullRun(), fullRun()
	ours.Name, ours.Scenario.Mesh.Mode, ours.Environment.Knobs = "ours", scenario.List[string]{"permissive"}, scenario.Settings{MTLS: "permissive", Scope: "all", Authz: "none"}
	others.Name, others.Scenario.Mesh.Mode, others.Environment.Knobs = "others", scenario.List[string]{"permissive"}, scenario.Settings{MTLS: "strict", Scope: "all", Authz: "none"}
	others.Environment.ControlPlane.Name = "othermesh"
	page := readable(text(t, asHTML, []record.Run{ours, others}))
	if want := "Mode permissive is mtls permissive, scope all, authz none with istiod; mtls strict, scope all, authz none with othermesh."; !strings.Contains(page, want) {
		t.Errorf("it lacks %q", want)
	}
	legend := "permissive as in ours is mtls permissive, scope all, authz none; permissive as in others is mtls strict, scope all, authz none."
	if got := strings.Count(page, legend); got < 1+len(otherSizeCharts) {
		t.Errorf("%d of %d charts by size state %q", got, 1+len(otherSizeCharts), legend)
	}
	printed := strings.Join(strings.Fields(output.Wide(summaryDocument([]record.Run{ours, others}).write)), " ")
	for _, want := range []string{"ours completed permissive all none", "others completed strict all none"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the text lacks the row %q", want)
		}
	}
	others.Environment.ControlPlane.Name = ours.Environment.ControlPlane.Name
	if page := text(t, asHTML, []record.Run{ours, others}); strings.Contains(page, "Mode permissive is") {
		t.Error("one control plane is compared with itself")
	}
}
