package record

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/scenario"
)

// fullRun returns a run in which every number is there, each another one.
func fullRun(t *testing.T) *Run {
	t.Helper()
	var run Run
	next := 0
	fillAll(t, reflect.ValueOf(&run).Elem(), &next)
	other := run.Phases[0]
	other.Name, other.Start = PhaseSettle, time.Unix(1, 0)
	run.Phases = []Phase{{Name: PhaseRollout, EndedBy: EndedByConverged, Seconds: new(12.5)}, other}
	run.Faults[0].Name, run.Faults[0].Phase = "kill", PhaseSteady
	return &run
}

func fillAll(t *testing.T, v reflect.Value, next *int) {
	*next++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(t, v.Elem(), next)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[scenario.Scenario]() {
			v.Set(reflect.ValueOf(scenario.Default()))
			return
		}
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fillAll(t, v.Field(i), next)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillAll(t, v.Index(0), next)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		keys := []string{"one", "two"}
		if v.Type().Key() == reflect.TypeFor[ChangeKind]() {
			keys = nil
			for _, kind := range ChangeKinds {
				keys = append(keys, string(kind))
			}
		}
		for _, key := range keys {
			value := reflect.New(v.Type().Elem()).Elem()
			fillAll(t, value, next)
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), value)
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*next))
	case reflect.Uint64:
		v.SetUint(uint64(*next))
	case reflect.Float64:
		v.SetFloat(float64(*next))
	case reflect.String:
		v.SetString(fmt.Sprintf("text%d", *next))
	case reflect.Bool:
	default:
		t.Fatalf("cannot fill a %s", v.Type())
	}
}

// leavesOf are the values in JSON by their paths; list elements of faults and phases
// are named as figures name them.
func leavesOf(path string, v any, into map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			leavesOf(join(path, name), below, into)
		}
	case []any:
		for i, below := range v {
			name := fmt.Sprint(i)
			if fields, ok := below.(map[string]any); ok && path == "faults" {
				name = fmt.Sprintf("%s@%s", fields["name"], fields["phase"])
			} else if ok && path == "phases" && fields["name"] == string(PhaseRollout) {
				name = fields["name"].(string)
			}
			leavesOf(join(path, name), below, into)
		}
	default:
		into[path] = v
	}
}

// neverFilled are parts of types that no run fills where they stand: what a Level of something else has, and
// latencies other than those of real sidecars' starts, and pushes of other changes than of endpoints where only these are followed.
var neverFilled = regexp.MustCompile(`\.cores\.(end|collected)$|Bytes\.peak100ms$|\.(memory|workingSet)Bytes\.collected$|\.heapBytes\.peak$|.(starts|latencies)\.(explained|pushIntervals)\.|^sidecars\.real\.starts\.|\b(rolloutPush|pushFromWrite|(from|to)\.push)\.(route|policy|service)\.`)

// Every field of a record, found by reflection, is a figure of the catalogue, read from where its path says, or one of its Fields.
func TestEveryFieldIsInTheCatalogue(t *testing.T) {
	run := fullRun(t)
	text, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	var raw any
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	leaves := map[string]any{}
	leavesOf("", raw, leaves)
	seen := map[string]bool{}
	for _, v := range run.Values() {
		if seen[v.Path] {
			t.Errorf("%s is there twice", v.Path)
		}
		seen[v.Path] = true
		if got := run.Value(v.Path); got == nil || *got != *v.Value {
			t.Errorf("%s is %v alone", v.Path, got)
		}
		want, there := leaves[v.Path]
		if !there || v.Value == nil || *v.Value != want {
			t.Errorf("%s is %v, in the record %v", v.Path, v.Value, want)
		}
	}
	parts := map[string]bool{} // that figures are in; not all that is in them is known
	for _, f := range Figures() {
		parts[firstWord(f.Path)] = true
	}
	var fields []fieldPattern
	for _, f := range Fields {
		if !strings.HasSuffix(f.Definition, ".") {
			t.Errorf("%s has no definition", f.Path)
		}
		if !parts[f.Path] {
			fields = append(fields, fieldPattern{Field: f, latency: strings.TrimPrefix(f.Path, "LATENCY."), paths: regexp.MustCompile(
				strings.ReplaceAll(strings.TrimSuffix(pattern(f.Path).String(), "$"), `\[\]`, `\.[^.]+`) + `(\.|$)`)})
		}
	}
	for path := range leaves {
		if seen[path] || neverFilled.MatchString(path) {
			continue
		}
		at := slices.IndexFunc(fields, func(f fieldPattern) bool { return f.has(path) })
		if at < 0 {
			t.Errorf("%s is not in the catalogue: add a figure to its list in catalogue_lists.go, or what is none to Fields in catalogue_fields.go", path)
			continue
		}
		fields[at].used = true
	}
	for _, f := range fields {
		if !f.used {
			t.Errorf("%s is a field of no record", f.Path)
		}
	}
}

// fieldPattern is a Field and the paths that are of it.
type fieldPattern struct {
	Field
	latency string // its name in a latency, if it is of one
	paths   *regexp.Regexp
	used    bool
}

// has reports whether the field at a path is of it.
func (p fieldPattern) has(path string) bool {
	if p.latency == p.Path {
		return p.paths.MatchString(path)
	}
	above, ok := strings.CutSuffix(path, "."+p.latency)
	if !ok {
		return false
	}
	_, isLatency := FigureAt(above + ".p50")
	return isLatency
}

// pattern returns a figure's path with its placeholders replaced by patterns.
func pattern(path string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(path)
	for word, stands := range map[string]string{"PHASE": "(baseline|rollout|steady|probe|change|cycle|storm|churn)", "KIND": "[^.]+", "PROGRAM": "[^.]+", "TYPE": "[^.]+", "FAULT": ".+", "STAGE": "[^.]+"} {
		quoted = strings.ReplaceAll(quoted, word, stands)
	}
	return regexp.MustCompile("^" + quoted + "$")
}

// The figures are those of the values, in their order.
func TestValuesAreOfFigures(t *testing.T) {
	figures := Figures()
	run := fullRun(t)
	for _, v := range run.Values() {
		at := slices.IndexFunc(figures, func(f Figure) bool { return f.Path == v.Figure.Path })
		if at < 0 || !pattern(v.Figure.Path).MatchString(v.Path) {
			t.Errorf("%s is of the figure %s", v.Path, v.Figure.Path)
			continue
		}
		f := figures[at]
		if found, ok := FigureAt(v.Path); !ok || found.Path != f.Path {
			t.Errorf("at %s is the figure %q", v.Path, found.Path)
		}
		if f.Unit != v.Figure.Unit || f.Counts != v.Figure.Counts || f.Better != v.Figure.Better || f.NotCompared != v.Figure.NotCompared {
			t.Errorf("%s: %+v, its figure %+v", v.Path, v.Figure, f)
		}
		if regexp.MustCompile(`PHASE|PROGRAM|TYPE|FAULT|STAGE`).MatchString(v.Figure.Label) {
			t.Errorf("%s has the label %q", v.Path, v.Figure.Label)
		}
	}
}

func TestFiguresAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Figures() {
		if f.Label == "" || f.Unit == "" || f.Better == "" || f.Counts == "" || seen[f.Path] {
			t.Errorf("%+v", f)
		}
		if !strings.HasSuffix(f.Definition, ".") || f.list == latencyList && (f.From == "" || f.To == "") || f.list == usageList && f.Scope == "" {
			t.Errorf("%s has no definition: state it in its list in catalogue_lists.go, of a latency from when to when, of a usage of what", f.Path)
		}
		seen[f.Path] = true
		ends := map[string]Unit{"seconds": UnitSeconds, "bytes": UnitBytes, "persecond": UnitPerSecond}
		last := strings.ToLower(f.Path[strings.LastIndexByte(f.Path, '.')+1:])
		for suffix, unit := range ends {
			if strings.HasSuffix(last, suffix) && f.Unit != unit && f.Unit != UnitBytesPerSecond && !(suffix == "seconds" && strings.HasSuffix(last, "persecond")) {
				t.Errorf("%s is in %s", f.Path, f.Unit)
			}
		}
	}
}

func TestLostQuantiles(t *testing.T) {
	var run Run
	run.Latencies.PodReady = &Latency{Count: 9, Lost: 1, P50: new(1.0), Max: new(2.0)}
	got := map[string]string{}
	for _, v := range run.Values() {
		if v.Figure.Phase != PhaseRollout {
			t.Errorf("%s is of the phase %q", v.Path, v.Figure.Phase)
		}
		got[strings.TrimPrefix(v.Path, "latencies.podReady.")] = fmt.Sprint(v.Lost, v.Value != nil)
	}
	want := map[string]string{"count": "false true", "lost": "false true", "p50": "false true", "p90": "true false", "p99": "true false", "p999": "true false", "max": "false true"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if v := run.Value("latencies.podReady.p50"); v == nil || *v != 1 {
		t.Errorf("p50 is %v", v)
	}
	if v := run.Value("latencies.podReady.p99"); v != nil {
		t.Errorf("p99 is %v", *v)
	}
}
