package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/scenario"
)

// makeRun writes a run's folder without the Writer's help.
func makeRun(t *testing.T, dir, name string) {
	t.Helper()
	put(t, filepath.Join(dir, name, runFile), fmt.Sprintf(`{"apiVersion":"scaler.mesh/v1","kind":"Run","schema":%d,"name":"%s","status":"completed"}`, Schema, name))
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	makeRun(t, dir, "b")
	makeRun(t, dir, "a")
	makeRun(t, filepath.Join(dir, "deep", "er"), "c")
	put(t, filepath.Join(dir, "a", prometheusDir, "chunk", runFile), "not a run, and below one")
	put(t, filepath.Join(dir, "notes.txt"), "whatever")
	if err := os.Symlink(filepath.Join(dir, "deep"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}

	tests := []struct {
		name  string
		paths []string
		want  []string
	}{
		{"a run's folder", []string{"a"}, []string{"a"}},
		{"a folder of runs, at any depth, in order", []string{"."}, []string{"a", "b", "c"}},
		{"several folders, in the order given", []string{"deep", "b"}, []string{"c", "b"}},
		{"the same run twice is read once", []string{"b", ".", "b/../b"}, []string{"b", "a", "c"}},
		{"a symbolic link", []string{"link"}, []string{"c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var paths []string
			for _, p := range tt.paths {
				paths = append(paths, filepath.Join(dir, p))
			}
			runs, err := Read(paths...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, run := range runs {
				got = append(got, run.Name)
				if filepath.Base(run.Dir) != run.Name {
					t.Errorf("run %s says it is from %s", run.Name, run.Dir)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	const unversioned = `{"apiVersion":"scaler.mesh/v1","kind":"Run","name":"x",`
	head := unversioned + fmt.Sprintf(`"schema":%d,`, Schema)
	want := fmt.Sprintf("want scaler.mesh/v1, schema %d", Schema)
	tests := []struct {
		name string
		text string // of run.json; "" for none
		is   error
		want []string
	}{
		{"newer version", `{"apiVersion":"scaler.mesh/v2","kind":"Run","phases":{}}`, ErrSchema, []string{"written as scaler.mesh/v2, schema 0", want, "use the scaler that wrote it"}},
		{"newer schema", unversioned + `"schema":12}`, ErrSchema, []string{"written as scaler.mesh/v1, schema 12", want, "use the scaler that wrote it"}},
		{"older schema", unversioned + fmt.Sprintf(`"schema":%d,"phases":7}`, Schema-1), ErrSchema, []string{fmt.Sprintf("written as scaler.mesh/v1, schema %d", Schema-1), want}},
		{"no schema", unversioned + `"phases":7}`, ErrSchema, []string{"written as scaler.mesh/v1, schema 0", want}},
		{"half-written", head + `"status":"comp`, nil, []string{"cut off or damaged", "byte"}},
		{"empty file", " ", nil, []string{"cut off or damaged"}},
		{"two documents", head + `"status":"completed"}{}`, nil, []string{"cut off or damaged"}},
		{"a figure of the wrong type", head + `"pods":7}`, nil, []string{"pods", "cut off or damaged"}},
		{"something else", `{"apiVersion":"v1","kind":"Pod"}`, nil, []string{`"v1"`, "scaler.mesh/v1"}},
		{"a kind of its own", fmt.Sprintf(`{"apiVersion":"scaler.mesh/v1","kind":"XDSRun","schema":%d}`, Schema), nil, []string{`"XDSRun"`, `want "Run"`}},
		{"no run", "", ErrNoRuns, []string{runFile}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.text != "" {
				put(t, filepath.Join(dir, "x", runFile), tt.text)
				tt.want = append(tt.want, filepath.Join("x", runFile))
			}
			_, err := Read(dir)
			checkError(t, err, tt.is, append(tt.want, dir)...)
		})
	}
	t.Run("missing path", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "nowhere")
		_, err := Read(path)
		checkError(t, err, fs.ErrNotExist, path)
	})
	t.Run("a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "run.json")
		put(t, path, "{}")
		_, err := Read(path)
		checkError(t, err, ErrNoRuns, path, "it is a file")
	})
}

func checkError(t *testing.T, err, is error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if is != nil && !errors.Is(err, is) {
		t.Errorf("error %q: want %q in it", err, is)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q: want %q in it", err, word)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q: want one line", err)
	}
}

// What was saved is what is read, field for field.
func TestRoundTrip(t *testing.T) {
	out := t.TempDir()
	w, err := Create(out, "full")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	want := Run{
		Status: StatusFailed, Reason: "istiod ended: out of memory",
		Started:  time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC),
		Finished: new(time.Date(2026, 1, 2, 3, 6, 5, 0, time.UTC)),
		Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{200}, Services: 20, Namespaces: 1, Topology: "star", FanOut: 3, Seed: 7, Mode: scenario.List[string]{"strict"}, Sidecars: scenario.Sidecars{XDS: "sotw"}}, Load: scenario.Load{Arrival: scenario.Arrival{Size: 100, Interval: 10 * time.Second}, Probes: 20}, Phases: scenario.Phases{Steady: scenario.Duration(60 * time.Second)}},
		Environment: Environment{CPUs: 2, MemoryBytes: 1 << 34, Kernel: "6.1", Kubernetes: "v1.36.3", Kwok: "v0.8.0", Scaler: "dev",
			ControlPlane: ControlPlaneSource{Name: "istiod", Version: "1.31", Replicas: 1, GOMAXPROCS: 2, Settings: map[string]string{"PILOT_X": "1"}},
			Knobs:        scenario.Settings{MTLS: "strict", Scope: "declared", Authz: "declared"}},
		Phases:       []Phase{{Name: PhaseRollout, Start: time.Date(2026, 1, 2, 3, 4, 15, 0, time.UTC), End: new(time.Date(2026, 1, 2, 3, 5, 15, 0, time.UTC)), Seconds: new(60.0), EndedBy: EndedByConverged}},
		Arrival:      &Arrival{OfferedPerSecond: new(10.0), AchievedPerSecond: new(9.5)},
		Pods:         &Pods{Requested: 200, Created: new(200), Ready: new(0), Connected: new(3), Complete: new(2), Converged: new(1)},
		ControlPlane: &ByPhase[*Usage]{Rollout: &Usage{Cores: &Level{Mean: new(1.5), Peak: new(2.0)}, CPUSeconds: new(90.0), Saturation: new(0.4), Restarts: new(1)}},
		Cluster:      map[string]ByPhase[*Usage]{"etcd": {Steady: &Usage{MemoryBytes: &Level{Mean: new(1e8), Peak: new(2e8), End: new(1e8)}, HeapBytes: &Level{End: new(5e7)}}}},
		Sidecars:     &Sidecars{Real: &RealSidecars{Count: 5, ByPhase: ByPhase[*Usage]{Steady: &Usage{CPUSeconds: new(0.0)}}}},
		Latencies: Latencies{
			Certificate: &Latency{Unit: "s", Count: 1, Lost: 2, Max: new(0.25)},
			Push:        map[ChangeKind]*Latency{RouteChange: {Unit: "s", Count: 3}},
			Propagation: map[ChangeKind]Propagation{EndpointAdd: {First: &Latency{Unit: "s"}, Last: &Latency{Unit: "s"}}},
		},
		XDS: &XDS{Responses: map[string]int64{"CDS": 1}, Bytes: map[string]int64{"CDS": 1000}, Acks: new(int64(1)), Nacks: new(int64(0)),
			ConfigurationBytes: &ConfigurationBytes{Mean: new(1e6), Max: new(2e6)}},
		Certificates: &Certificates{Issued: new(int64(199)), Failed: new(int64(1)), Attempts: new(int64(210)), PerSecond: new(80.5)},
		Own:          &Own{Note: "istiod's", ByPhase: ByPhase[map[string]float64]{Rollout: map[string]float64{"pilot_xds": 200}}},
		Instrument:   &Instrument{Cores: new(0.3), MemoryBytes: new(1e8), BytesPerSidecar: new(6e4), OpenFiles: new(450), Lag: &Latency{Unit: "s", Count: 100}, Floor: map[string]float64{"latencies.certificate.p50": 0.001}},
		Warnings:     []Warning{{About: "latencies.certificate", Text: "2 lost"}},
	}
	if err := w.Save(&want); err != nil {
		t.Fatal(err)
	}
	want.APIVersion, want.Kind, want.Schema, want.Name, want.Dir = APIVersion, Kind, Schema, "full", w.Dir()
	got, err := Read(out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Run{want}, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

// A record comes from anywhere: reading it must end in a run or an error, and
// what was read must be writable and read as the same again.
func FuzzDecode(f *testing.F) {
	design, err := os.ReadFile("testdata/design.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(design)
	f.Add(design[:len(design)/2])
	f.Add([]byte(fmt.Sprintf(`{"apiVersion":"scaler.mesh/v1","kind":"Run","schema":%d,"phases":[null],"cluster":{"etcd":null},"latencies":null}`, Schema)))
	f.Fuzz(func(t *testing.T, data []byte) {
		run, latency, err := decode(data)
		if err != nil || latency != nil {
			return
		}
		text, err := json.Marshal(run)
		if err != nil {
			t.Fatalf("writing what was read: %v", err)
		}
		again, _, err := decode(text)
		if err != nil {
			t.Fatalf("reading what was written: %v\n%s", err, text)
		}
		second, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != string(second) {
			t.Errorf("first\n%s\nsecond\n%s", text, second)
		}
	})
}
