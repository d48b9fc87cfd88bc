package report

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/golden"
)

// fullRun has every figure.
func fullRun() record.Run {
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	phase := func(name record.PhaseName, from, to float64, by record.EndedBy) record.Phase {
		return record.Phase{Name: name, Start: at(from), End: new(at(to)), Seconds: new(to - from), EndedBy: by}
	}
	usage := func(cores, peak, memory float64) *record.Usage {
		return &record.Usage{
			Cores: &record.Level{Mean: new(cores), Peak: new(peak)}, CPUSeconds: new(cores * 31.4),
			MemoryBytes: &record.Level{Mean: new(memory), Peak: new(memory * 1.2), End: new(memory * 1.1)},
			HeapBytes:   &record.Level{Mean: new(memory / 2), End: new(memory / 3)},
			Saturation:  new(cores / 4), Restarts: new(0),
		}
	}
	latency := func(p50 float64) *record.Latency {
		return &record.Latency{Unit: "s", Count: 200, Min: new(p50 / 2), Mean: new(p50 * 1.1), P50: new(p50), P90: new(p50 * 2), P99: new(p50 * 4), P999: new(p50 * 5), Max: new(p50 * 5)}
	}
	lossy := &record.Latency{Unit: "s", Count: 150, Lost: 50, Min: new(0.1), Mean: new(0.2), P50: new(0.25), Max: new(0.9)}
	full := asked(200, "strict")
	full.Mesh.Sidecars.Real, full.Load.Arrival = 5, scenario.Arrival{Size: 100, Interval: 10 * time.Second}
	return record.Run{
		APIVersion: record.APIVersion, Kind: record.Kind, Schema: record.Schema, Name: "istiod-strict-200", Status: record.StatusCompleted,
		Started: start, Finished: new(at(118)),
		Scenario: full,
		Environment: record.Environment{CPUs: 2, MemoryBytes: 25_200_000_000, Kernel: "6.1.0", Kubernetes: "v1.36.3", Kwok: "v0.8.0", Scaler: "v0.1.0",
			ControlPlane: record.ControlPlaneSource{Name: "istiod", Version: "1.31", Replicas: 1, GOMAXPROCS: 2, Settings: map[string]string{"PILOT_DEBOUNCE_AFTER": "1s", "A": "b"}},
			Knobs:        scenario.Settings{MTLS: "strict", Scope: "declared", Authz: "declared"}},
		Phases: []record.Phase{
			phase(record.PhaseBaseline, 4, 14, record.EndedByDuration), phase(record.PhaseRollout, 14, 45.4, record.EndedByConverged),
			phase(record.PhaseSettle, 45.4, 55.4, record.EndedByDuration), phase(record.PhaseSteady, 55.4, 115.4, record.EndedByDuration),
		},
		Arrival:      &record.Arrival{OfferedPerSecond: new(10.0), AchievedPerSecond: new(9.87)},
		Pods:         &record.Pods{Requested: 200, Created: new(200), Ready: new(200), Connected: new(200), Complete: new(200), Converged: new(200)},
		ControlPlane: &record.ByPhase[*record.Usage]{Baseline: usage(0.02, 0.05, 8e7), Rollout: usage(1.52, 1.98, 1.82e8), Steady: usage(0, 0.011, 1.7e8)},
		Cluster: map[string]record.ByPhase[*record.Usage]{
			"kube-apiserver": {Rollout: usage(0.9, 1.4, 4.1e8), Steady: usage(0.1, 0.3, 4.2e8)},
			"etcd":           {Rollout: usage(0.2, 0.4, 9e7), Steady: usage(0.02, 0.05, 9.1e7)},
		},
		Sidecars: &record.Sidecars{Real: &record.RealSidecars{Count: 5, ByPhase: record.ByPhase[*record.Usage]{Steady: usage(0.1, 0.2, 3.5e8)}}},
		Latencies: record.Latencies{
			PodAdmission: latency(0.0123), PodReady: latency(1.5), PodReadyWithoutKwok: latency(1.1), Certificate: latency(0.25), Key: latency(0.0000021), Token: latency(0.004), ClientWait: latency(0.1),
			Connect: latency(0.003), ConnectTotal: latency(0.6), FirstConfiguration: latency(0.3), CompleteConfiguration: latency(0.9),
			Push:        map[record.ChangeKind]*record.Latency{record.RouteChange: latency(0.15), record.EndpointAdd: lossy},
			Propagation: map[record.ChangeKind]record.Propagation{record.RouteChange: {First: latency(0.11), Last: latency(0.4)}},
			ClusterPart: latency(0.02),
		},
		XDS: &record.XDS{
			Responses: map[string]int64{"CDS": 400, "EDS": 5000, "LDS": 410, "RDS": 399}, Bytes: map[string]int64{"CDS": 4_000_000, "EDS": 12_345_678, "LDS": 999, "RDS": 0},
			Acks: new(int64(6209)), Nacks: new(int64(0)), Attempts: new(int64(231)), Refusals: new(int64(31)), Reconnects: new(int64(0)), WastedResponses: new(int64(12)),
			ConfigurationBytes: &record.ConfigurationBytes{Mean: new(81_234.5), Max: new(99_000.0)},
			PerSidecar:         &record.PerSidecar{Responses: new(31.05), Bytes: new(81_730.0)},
		},
		Certificates: &record.Certificates{Issued: new(int64(200)), Failed: new(int64(0)), Attempts: new(int64(203)), PerSecond: new(79.6)},
		Own:          &record.Own{ByPhase: record.ByPhase[map[string]float64]{Rollout: map[string]float64{"pilot_xds": 200}}},
		Instrument: &record.Instrument{Cores: new(0.31), MemoryBytes: new(1.01e8), BytesPerSidecar: new(61_000.0), OpenFiles: new(431), Lag: latency(0.0004),
			Floor: map[string]float64{"instrument.cores": 0.011, "instrument.bytesPerSidecar": 58e3, "latencies.certificate.p50": 0.0012, "latencies.certificate.p99": 0.0151, "latencies.push.route.p50": 0.0031}},
		Warnings: []record.Warning{
			{About: "controlPlane.rollout", Reason: record.ReasonSaturated, Phase: record.PhaseRollout, Values: map[string]float64{"share": 0.38}},
			{About: "latencies.push.endpointAdd.lost", Reason: record.ReasonLost, Values: map[string]float64{"lost": 50, "all": 200}},
			{About: "controlPlane.rollout.cores.peak", Reason: record.ReasonScrapeGap, Component: "istiod", Values: map[string]float64{"missed": 1, "scrapes": 31}},
			{About: "prometheus", Text: "2 targets were scraped late"},
		},
	}
}

// asked returns the scenario of a run of this size and mode.
func asked(pods int, mode string) scenario.Scenario {
	s := scenario.Default()
	s.Mesh.Pods, s.Mesh.Services, s.Mesh.Namespaces, s.Mesh.Mode = scenario.List[int]{pods}, pods/10, 1, scenario.List[string]{mode}
	s.Mesh.Sidecars.XDS, s.Instrument.Dilation.Factor = "delta", 1
	return s.Applicable()
}

// killedRun returns the record of a scaler that was killed before the rollout.
func killedRun() record.Run {
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	return record.Run{
		APIVersion: record.APIVersion, Kind: record.Kind, Schema: record.Schema, Name: "istiod-permissive-400", Status: record.StatusInterrupted, Started: start,
		Scenario:    asked(400, "permissive"),
		Environment: record.Environment{CPUs: 2, ControlPlane: record.ControlPlaneSource{Name: "istiod"}, Knobs: scenario.Settings{MTLS: "permissive", Scope: "all", Authz: "none"}},
		Phases:      []record.Phase{{Name: record.PhaseBaseline, Start: start.Add(4 * time.Second)}},
	}
}

// ladder returns several runs, found in no particular order.
func ladder() []record.Run {
	small, big, unconverged := fullRun(), fullRun(), fullRun()
	big.Name, big.Scenario.Mesh.Pods, big.Scenario.Mesh.Services, big.Pods.Requested, big.Pods.Converged = "istiod-strict-1600", scenario.List[int]{1600}, 160, 1600, new(1600)
	big.Warnings = []record.Warning{{About: "latencies.certificate", Text: "bound by TokenReview at 80/s"}}
	unconverged.Name, unconverged.Status, unconverged.Warnings = "istiod-strict-200-2", record.StatusUnconverged, nil
	unconverged.Repeat = 2
	unconverged.Phases[1].EndedBy = record.EndedByTimeout
	unconverged.Pods.Converged = new(187)
	unconverged.Latencies.CompleteConfiguration = &record.Latency{Unit: "s", Count: 187, Lost: 13, P50: new(0.9), P90: new(2.0), Max: new(6.1)}
	return []record.Run{big, killedRun(), unconverged, small}
}

var formats = map[string]func(io.Writer, []record.Run) error{"brief.txt": as("table"), "txt": as("wide"), "md": as("markdown"), "json": as("json"), "yaml": as("yaml")}

// as prints in one format.
func as(format string) func(io.Writer, []record.Run) error {
	return func(w io.Writer, runs []record.Run) error { return Print(w, format, runs) }
}

func TestGolden(t *testing.T) {
	for name, runs := range map[string][]record.Run{
		"none":   nil,
		"full":   {fullRun()},
		"killed": {killedRun()},
		"ladder": ladder(),
		"bare":   {{}},
		"hostile": {{Name: "a|b\x1b[31m\nc", Status: "<b>", Reason: "`x` *y*",
			Warnings: []record.Warning{{Text: "first\nsecond"}}}},
	} {
		for ext, print := range formats {
			t.Run(name+"."+ext, func(t *testing.T) {
				golden.Compare(t, filepath.Join("testdata", name+"."+ext), text(t, print, runs))
			})
		}
	}
}

func TestPrint(t *testing.T) {
	seen := map[string]bool{}
	for _, format := range output.PageFormats {
		seen[text(t, as(format), ladder())] = true
	}
	if len(seen) != len(output.PageFormats) {
		t.Errorf("%d formats print %d different texts", len(output.PageFormats), len(seen))
	}
	if err := Print(io.Discard, "xml", ladder()); err == nil {
		t.Error("xml: want an error")
	}
}

func text(t *testing.T, print func(io.Writer, []record.Run) error, runs []record.Run) string {
	t.Helper()
	var b strings.Builder
	if err := print(&b, runs); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestJSONAndYAMLHoldTheSame(t *testing.T) {
	runs := ladder()
	fromYAML, err := yaml.YAMLToJSON([]byte(text(t, as("yaml"), runs)))
	if err != nil {
		t.Fatal(err)
	}
	var a, b record.RunList
	if err := json.Unmarshal(fromYAML, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text(t, as("json"), runs)), &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("YAML and JSON differ:\n%s", diff)
	}
	if a.APIVersion != record.APIVersion || a.Kind != record.ListKind || len(a.Items) != len(runs) {
		t.Errorf("list is %s %s with %d items", a.APIVersion, a.Kind, len(a.Items))
	}
}

// However runs are found, a report of them is the same.
func TestOrderIsStable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	runs := ladder()
	want := text(t, as("wide"), runs)
	for range 20 {
		rng.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
		if diff := cmp.Diff(want, text(t, as("wide"), runs)); diff != "" {
			t.Fatalf("order of runs shows in the report:\n%s", diff)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{seconds(nil), "-"}, {seconds(new(0.0)), "0s"}, {seconds(new(1.2e-6)), "1.20µs"}, {seconds(new(0.0123)), "12.3ms"},
		{seconds(new(0.9)), "900ms"}, {seconds(new(0.9997)), "1.00s"}, {seconds(new(1.0)), "1.00s"}, {seconds(new(31.44)), "31.4s"}, {seconds(new(612.3)), "612s"}, {seconds(new(-0.5)), "-500ms"},
		{bytes(nil), "-"}, {bytes(new(0.0)), "0B"}, {bytes(new(999.0)), "999B"}, {bytes(new(182e6)), "174MiB"},
		{number(nil), "-"}, {number(new(0.0)), "0"}, {number(new(0.0123)), "0.012"}, {number(new(1.525)), "1.52"}, {number(new(9.996)), "10.0"}, {number(new(79.64)), "79.6"},
		{percent(nil), "-"}, {percent(new(0.0)), "0%"}, {percent(new(0.385)), "38.5%"}, {percent(new(1.0)), "100%"},
		{count[int](nil), "-"}, {count(new(int64(0))), "0"}, {count(new(200)), "200"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

// Whatever a record holds, it prints.
func FuzzReport(f *testing.F) {
	full, err := json.Marshal(ladder())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	f.Add([]byte(`[{"phases":[null],"cluster":{"etcd":null},"latencies":{"push":{"route":null}}},{"controlPlane":{"rollout":{"cores":null}}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var runs []record.Run
		if json.Unmarshal(data, &runs) != nil {
			return
		}
		for _, format := range output.PageFormats {
			if err := Print(io.Discard, format, runs); err != nil {
				t.Errorf("printing as %s: %v", format, err)
			}
		}
	})
}

// A Markdown report is read as the tables that it is, whatever is in the cells.
func TestMarkdownIsTables(t *testing.T) {
	hostile := fullRun()
	hostile.Name, hostile.Reason = "a|b <b>`*x*`", "[x](y)\n| a |"
	for name, runs := range map[string][]record.Run{"full": {fullRun()}, "ladder": ladder(), "hostile": {hostile, fullRun()}} {
		written := text(t, as("markdown"), runs)
		var page strings.Builder
		if err := goldmark.New(goldmark.WithExtensions(extension.Table)).Convert([]byte(written), &page); err != nil {
			t.Fatal(err)
		}
		if tables := len(build(sorted(runs)).tables); strings.Count(page.String(), "<table>") != tables {
			t.Errorf("%s: %d tables are read as %d", name, tables, strings.Count(page.String(), "<table>"))
		}
		rows := 0
		for _, table := range build(sorted(runs)).tables {
			rows += len(table.Rows) * len(table.Head)
		}
		if cells := strings.Count(page.String(), "<td"); cells != rows {
			t.Errorf("%s: %d cells are read as %d", name, rows, cells)
		}
		for _, markup := range []string{"<a ", "<em>", "<code>", "<b>"} {
			if strings.Contains(page.String(), markup) {
				t.Errorf("%s: a text is read as %s", name, markup)
			}
		}
	}
}
