package dashboards

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the generated dashboards instead of comparing them")

// TestGenerated holds what is committed against what the generator writes.
func TestGenerated(t *testing.T) {
	if *update {
		generate(t, jsonDir)
		return
	}
	dir := t.TempDir()
	generate(t, dir)
	want, got := contents(t, dir), contents(t, jsonDir)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run hack/update-dashboards.sh (-generated +committed):\n%s", diff)
	}
}

func generate(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.Command("go", "run", "./generate", dir).CombinedOutput(); err != nil {
		t.Fatalf("generating: %v\n%s", err, out)
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = string(data)
	}
	return all
}

// document has the fields of a dashboard's JSON that tests check.
type document struct {
	UID, Title, Description string
	Tags                    []string
	Panels                  []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ X, Y, W, H int }
		Datasource               struct{ UID string }
		FieldConfig              struct {
			Defaults struct {
				Unit     string
				Mappings []struct {
					Options map[string]struct{ Text, Color string }
				}
			}
		}
		Options struct {
			Legend struct{ ShowLegend bool }
		}
		Targets []struct {
			RefID, Expr string
			Datasource  struct{ UID string }
		}
	}
	Templating struct {
		List []struct{ Name, Type, AllValue string }
	}
	Annotations struct {
		List []struct {
			Name, Expr, Step, TitleFormat, TagKeys string
			UseValueForTime, Enable                bool
		}
	}
}

func TestDashboards(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if committed := contents(t, jsonDir); len(committed) != len(all) {
		t.Errorf("%d files, %d dashboards are listed", len(committed), len(all))
	}
	for i, dashboard := range all {
		t.Run(names[i], func(t *testing.T) {
			var d document
			if err := json.Unmarshal(dashboard.JSON, &d); err != nil {
				t.Fatal(err)
			}
			if d.UID != names[i] || d.UID != dashboard.UID || d.Title == "" || d.Description == "" || !slices.Equal(d.Tags, []string{"scaler"}) {
				t.Errorf("uid %q, title %q, description %q, tags %q", d.UID, d.Title, d.Description, d.Tags)
			}
			var variables []string
			for _, v := range d.Templating.List {
				variables = append(variables, v.Name+" "+v.Type)
				if all := v.Type == "query" && v.Name != "control_plane"; all != (v.AllValue == ".*") {
					t.Errorf("variable %s: all of it is %q; what was under test is not everything that was looked at", v.Name, v.AllValue)
				}
			}
			if want := []string{"datasource datasource", "run query", "mode query", "phase query", "control_plane query"}; !slices.Equal(variables, want) {
				t.Errorf("variables %q, want %q", variables, want)
			}
			var annotations []string
			for _, a := range d.Annotations.List {
				annotations = append(annotations, a.Name)
				if few := strings.Contains(a.Expr, `phase=~"rollout|`); a.Enable != few {
					t.Errorf("annotation %s: shown by default %t, want it of a few phases alone: %s", a.Name, a.Enable, a.Expr)
				}
				if !strings.Contains(a.Expr, "_start_timestamp_seconds{") || !a.UseValueForTime || a.Step != "1s" || a.TitleFormat == "" || !strings.HasPrefix(a.TagKeys, "run,mode") {
					t.Errorf("annotation %+v", a)
				}
			}
			if want := []string{"Rollouts, faults and upgrades", "All phases", "Runs"}; !slices.Equal(annotations, want) {
				t.Errorf("annotations %q, want %q", annotations, want)
			}
			checkPanels(t, d)
		})
	}
}

// checkPanels wants of every panel what a reader needs to understand it.
func checkPanels(t *testing.T, d document) {
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s: id %d is not its own", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies on %s, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("%s: description %q, unit %q, data source %q, %d queries", p.Title, p.Description, p.FieldConfig.Defaults.Unit, p.Datasource.UID, len(p.Targets))
		}
		if p.Type == "state-timeline" {
			colors := map[string]string{}
			for _, m := range p.FieldConfig.Defaults.Mappings {
				for number, state := range m.Options {
					if other := colors[state.Color]; other != "" || state.Text == "" || state.Color == "" || !strings.Contains(p.Targets[0].Expr, number+" * ") {
						t.Errorf("%s: %s is %q in %q, which %q has, too", p.Title, number, state.Text, state.Color, other)
					}
					colors[state.Color] = state.Text
				}
			}
			if len(colors) < 5 || !p.Options.Legend.ShowLegend {
				t.Errorf("%s: %d colors, legend %t", p.Title, len(colors), p.Options.Legend.ShowLegend)
			}
		}
		for _, q := range p.Targets {
			if q.Datasource.UID != "${datasource}" || !strings.Contains(q.Expr, `run=~"$run",mode=~"$mode"`) {
				t.Errorf("%s %s: data source %q, query %s", p.Title, q.RefID, q.Datasource.UID, q.Expr)
			}
			if strings.Contains(q.Expr, "rate(") && !strings.Contains(q.Expr, "[$__rate_interval]") {
				t.Errorf("%s %s: a rate over a fixed window: %s", p.Title, q.RefID, q.Expr)
			}
			// Where scaler cannot be scraped there is no phase, and that must be seen.
			outside := p.Title == "Time of a scrape" || p.Title == "Failed scrapes"
			if p.Type == "timeseries" && strings.Contains(q.Expr, `phase=~"$phase"`) == outside {
				t.Errorf("%s %s: by phase, or not: %s", p.Title, q.RefID, q.Expr)
			}
		}
	}
}

func TestExport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder: with $dollars")
	const url = "http://127.0.0.1:9090/?a=$b"
	inGrafana := func(value string) string { return strings.ReplaceAll(value, "$$", "$") }
	for range 2 { // also over what is there
		to, err := Export(dir, Source{URL: url, ScrapeInterval: 2500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(contents(t, jsonDir), contents(t, to.Dashboards)); diff != "" {
			t.Errorf("dashboards (-want +got):\n%s", diff)
		}
		var sources struct {
			Datasources []struct {
				UID, Type, URL string
				JSONData       struct{ TimeInterval string }
			}
		}
		read(t, filepath.Join(to.Provisioning, "datasources", "scaler.yaml"), &sources)
		if len(sources.Datasources) != 1 || sources.Datasources[0].UID != "scaler" || inGrafana(sources.Datasources[0].URL) != url || sources.Datasources[0].JSONData.TimeInterval != "3s" {
			t.Errorf("data sources %+v", sources)
		}
		var providers struct {
			Providers []struct {
				FolderUID string
				Options   struct{ Path string }
			}
		}
		read(t, filepath.Join(to.Provisioning, "dashboards", "scaler.yaml"), &providers)
		if len(providers.Providers) != 1 || providers.Providers[0].FolderUID != FolderUID || inGrafana(providers.Providers[0].Options.Path) != to.Dashboards {
			t.Errorf("providers %+v", providers)
		}
	}
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func TestExportRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Export(file, Source{URL: "http://h"}); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("into a file: %v", err)
	}
}
