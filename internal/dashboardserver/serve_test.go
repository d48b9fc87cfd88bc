package dashboardserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/grafana"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
)

// An image that cannot be fetched keeps nobody from looking at the runs, unless it
// was asked for by name.
func TestServeWithoutTheImage(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		dir := t.TempDir()
		t.Setenv("PATH", dir)
		docker := "#!/bin/sh\nif [ $1 = run ]; then echo 'Unable to find image' >&2; exit 125; fi\n"
		if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(docker), 0o755); err != nil {
			t.Fatal(err)
		}
		group, err := process.OpenGroup(filepath.Join(dir, "group"), process.GroupOptions{})
		if err != nil {
			t.Fatal(err)
		}
		launcher, err := grafana.Find(t.Context(), grafana.FindOptions{})
		if err != nil || !strings.Contains(launcher.String(), "docker") {
			t.Fatalf("found %s, %v", launcher, err)
		}
		s := &server{spec: Spec{GrafanaWanted: wanted}, log: func(string) {}, launcher: &launcher, group: group, prometheus: &measure.Served{}}
		_, err = s.startGrafana(t.Context())
		if wanted {
			if err == nil || !strings.Contains(err.Error(), "Unable to find image") || !strings.Contains(err.Error(), "--no-grafana") {
				t.Errorf("one that was named: %v", err)
			}
		} else if err != nil || s.grafana != nil || !strings.Contains(s.missing, "Unable to find image") || strings.Contains(s.missing, "\n") {
			t.Errorf("one that was not named: %v, missing %q", err, s.missing)
		}
		if s.grafana != nil {
			_ = s.grafana.Stop(t.Context())
		}
		if err := group.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The series of a run that was slowed down 12 times have a value every 12 s.
func TestScrapeInterval(t *testing.T) {
	slow := record.Run{}
	slow.Scenario.Instrument.Dilation.Factor = 12
	for _, test := range []struct {
		runs []record.Run
		want time.Duration
	}{
		{[]record.Run{{}}, time.Second},
		{[]record.Run{slow, {}}, 12 * time.Second},
	} {
		if got := scrapeInterval(test.runs); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func TestPhasesOf(t *testing.T) {
	at := func(seconds int) time.Time { return time.Date(2026, 11, 21, 10, 0, seconds, 0, time.UTC) }
	ended := func(from, to int) record.Phase { return record.Phase{Start: at(from), End: new(at(to))} }
	for _, test := range []struct {
		name     string
		runs     []record.Run
		from, to time.Time
		fails    bool
	}{
		{"nothing", nil, time.Time{}, time.Time{}, true},
		{"a run that ended before its first phase", []record.Run{{}}, time.Time{}, time.Time{}, true},
		{"one", []record.Run{{Phases: []record.Phase{ended(10, 20), ended(20, 25)}}}, at(10), at(25), false},
		{"two, the later first", []record.Run{{Phases: []record.Phase{ended(40, 50)}}, {}, {Phases: []record.Phase{ended(10, 20)}}}, at(10), at(50), false},
		{"one that was killed", []record.Run{{Phases: []record.Phase{ended(10, 20), {Start: at(20)}}}}, at(10), at(80), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			from, to, err := phasesOf(test.runs)
			if !from.Equal(test.from) || !to.Equal(test.to) || (err != nil) != test.fails {
				t.Errorf("from %s to %s, %v", from, to, err)
			}
		})
	}
}

func TestServeSpecValidate(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "prometheus", "01A"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := record.Run{Dir: dir, Phases: []record.Phase{{Start: time.Now()}}}
	for _, test := range []struct {
		name, want string
		spec       Spec
	}{
		{"one run", "", Spec{Runs: []record.Run{run}}},
		{"two of one name", "reading /a/it and /b/it: both are called it", Spec{Runs: []record.Run{{Name: "it", Dir: "/a/it", Phases: run.Phases}, {Name: "it", Dir: "/b/it"}}}},
		{"addresses", "", Spec{Runs: []record.Run{run}, PrometheusAddress: "127.0.0.1:9090", GrafanaAddress: "[::1]:3000"}},
		{"no run", "no phase of it has begun", Spec{}},
		{"no phase", "no phase of it has begun", Spec{Runs: []record.Run{{Dir: dir}}}},
		{"no series", "no time series in it", Spec{Runs: []record.Run{{Dir: t.TempDir(), Phases: run.Phases}}}},
		{"port 0", `grafanaAddress: got "h:0", want HOST:PORT`, Spec{Runs: []record.Run{run}, GrafanaAddress: "h:0"}},
		{"no program", `grafana: got "/nowhere", want the program grafana or grafana-server`, Spec{Runs: []record.Run{run}, Grafana: grafana.FindOptions{Program: "/nowhere"}}},
		{"no home", `grafanaHome: got "/", want the folder that holds Grafana's conf/defaults.ini`, Spec{Runs: []record.Run{run}, Grafana: grafana.FindOptions{Home: "/"}}},
		{"no port", `prometheusAddress: got "h", want HOST:PORT`, Spec{Runs: []record.Run{run}, PrometheusAddress: "h"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.spec.Validate()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
