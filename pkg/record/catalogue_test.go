package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/golden"
)

// fullRun is a run in which every number is there, each another one.
func fullRun(t *testing.T) *Run {
	t.Helper()
	var run Run
	next := 0
	fillAll(t, reflect.ValueOf(&run).Elem(), &next)
	run.Phases = []Phase{{Name: PhaseRollout, EndedBy: EndedByConverged, Seconds: new(12.5)}}
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

// numbersOf are the numbers in JSON by their paths; list elements of faults and phases
// are named as figures name them.
func numbersOf(path string, v any, into map[string]float64) {
	switch v := v.(type) {
	case float64:
		into[path] = v
	case map[string]any:
		for name, below := range v {
			numbersOf(join(path, name), below, into)
		}
	case []any:
		for i, below := range v {
			name := fmt.Sprint(i)
			if fields, ok := below.(map[string]any); ok && path == "faults" {
				name = fmt.Sprintf("%s@%s", fields["name"], fields["phase"])
			} else if ok && path == "phases" {
				name = fields["name"].(string)
			}
			numbersOf(join(path, name), below, into)
		}
	}
}

// noFigures are the numbers of a record that are none of its figures: what was asked,
// what is of one sidecar, what stands elsewhere, and parts of types that no run fills.
var noFigures = regexp.MustCompile(`\.cores\.(end|collected)$|Bytes\.peak100ms$|\.(memory|workingSet)Bytes\.collected$|\.heapBytes\.peak$|.(starts|latencies)\.(explained|pushIntervals)\.|^(schema|repeat|scenario|parts|mesh|environment|warnings|own)(\.|$)|^instrument\.(cpus|floor|workers)\.|^sidecars\.real\.(count|each)|\.(clamped|unmet)$|^cycle\.(sidecars|ageSeconds|renewalSeconds|renewals)$|^certificates\.storm\.(sidecars|issued|attempts)$|^certificates\.storm\.boundBy\.`)

// Every number of a record is a figure of the catalogue, read from where its path says.
func TestEveryNumberIsInTheCatalogue(t *testing.T) {
	run := fullRun(t)
	text, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	var raw any
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	numbers := map[string]float64{}
	numbersOf("", raw, numbers)
	seen := map[string]bool{}
	for _, v := range run.Values() {
		if seen[v.Path] {
			t.Errorf("%s is there twice", v.Path)
		}
		seen[v.Path] = true
		if got := run.Value(v.Path); got == nil || *got != *v.Value {
			t.Errorf("%s is %v alone", v.Path, got)
		}
		want, there := numbers[v.Path]
		if !there || v.Value == nil || *v.Value != want {
			t.Errorf("%s is %v, in the record %v", v.Path, v.Value, want)
		}
	}
	for path := range numbers {
		if !seen[path] && !noFigures.MatchString(path) {
			t.Errorf("%s is not in the catalogue: add it to its list in catalogue_lists.go", path)
		}
	}
}

// pattern is a figure's path with what its words stand for.
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

// docs/reference/figures.md is written from the catalogue by -update.
func TestFiguresDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Figures

<!-- Written by "go test ./pkg/record -run FiguresDocument -update" from pkg/record. -->

The numbers of a run's ` + "`run.json`" + `, by path. [definitions.md](definitions.md) defines them.
Units are base units. "One observation" is what is counted, or what a mean, a peak or a
quantile is over. "Better" is the direction of an improvement. Figures marked * are not
compared between runs: they are given, one observation, or contained in others.

"Dilated" is what ` + "`--dilate K`" + ` does to a figure ([definitions](definitions.md#time-dilation)): it is a time,
divided by K, or a rate, multiplied by K; without either it stays as measured. The record has the result.

PHASE is ` + "`baseline`, `rollout`, `steady`, `probe`, `change`, `storm` or `churn`" + `; PROGRAM is one of the cluster's;
TYPE is a type of resources, as in CDS; KIND is ` + "`endpointAdd`, `endpointRemove`,\n`endpointHealth`, `route` or `policy`" + `; FAULT is a fault's name and phase, as in
` + "`kill-control-plane@steady`" + ` (in run.json faults are a list).

| path | unit | phase | label | one observation | better | dilated |
| --- | --- | --- | --- | --- | --- | --- |
`)
	listed := map[string]bool{}
	for _, f := range Figures() {
		row := documentedFigure(f)
		if listed[row.Path] {
			continue
		}
		listed[row.Path] = true
		mark := ""
		if f.NotCompared && f.list == "" {
			mark = "*"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s | %s | %s | %s |\n", row.Path, mark, row.Unit, row.Phase, row.Label, row.Counts, row.Better, row.Scaling())
	}
	b.WriteString("\n## Latencies\n\nThe figures of a latency. Quantiles are over what came and what was lost; one that lies among what was lost is absent.\n\n| path below | unit | better | dilated |\n| --- | --- | --- | --- |\n")
	for _, f := range LatencyFigures {
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s |\n", f.Path, map[bool]string{true: "*"}[f.NotCompared], f.Unit, f.Better, f.Scaling())
	}
	b.WriteString("\n## Usage\n\nThe figures of a program's usage in a phase.\n\n| path below | unit | label | one observation | better | dilated |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, f := range UsageFigures {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", f.Path, f.Unit, f.Label, f.Counts, f.Better, f.Scaling())
	}
	b.WriteString("\n## Across control planes\n\nWhether figures mean the same with every control plane, by the beginnings of their paths; the longest counts. An adapter may state another meaning where one is listed.\n\n| path | meaning |\n| --- | --- |\n")
	for _, a := range AcrossControlPlanes {
		fmt.Fprintf(&b, "| `%s` | %s |\n", a.Path, cmp.Or(a.Means, "the same"))
	}
	b.WriteString("\n## Definitions\n\nOf the figures that [definitions.md](definitions.md) leaves to this list:\n\n")
	for _, f := range append(Figures(), definedLists()...) {
		if path := documentedFigure(f).Path; f.Definition != "" && f.list == "" {
			fmt.Fprintf(&b, "- `%s`: %s\n", path, f.Definition)
		}
	}
	golden.Compare(t, filepath.Join("..", "..", "docs", "reference", "figures.md"), b.String())
}

// definedLists are the figures of the lists, which stand at several places, by their path below.
func definedLists() []Figure {
	var all []Figure
	for _, f := range UsageFigures {
		all = append(all, f.Figure)
	}
	for _, f := range LatencyFigures {
		all = append(all, f.Figure)
	}
	return all
}

var (
	changeKind = regexp.MustCompile(`(push|Push|propagation)\.(endpointAdd|endpointRemove|endpointHealth|route|policy)`)
	again      = regexp.MustCompile(`^(.*(?:starts|.\.latencies))\..*`) // latencies that are not the run's first ones
)

// documentedFigure is the row of a figure, which is that of several others.
func documentedFigure(f Figure) Figure {
	if f.list == "" {
		return f
	}
	row := f
	row.Label = strings.TrimRight(f.Label[:max(0, strings.LastIndex(f.Label, firstLabel(f.list)))], ":, ")
	row.Unit = "as [latencies](#latencies)"
	if f.list == usageList {
		row.Unit, row.Counts = "as [usage](#usage)", "as there"
	}
	row.Better = BetterLower
	row.Path = changeKind.ReplaceAllString(above(f), "$1.KIND") + ".*"
	if strings.Contains(row.Path, "KIND") {
		before, _, _ := strings.Cut(row.Label, ": ")
		row.Label = before + ": KIND"
	}
	if match := again.FindStringSubmatch(row.Path); match != nil {
		before, _, _ := strings.Cut(row.Label, ": ")
		row.Path, row.Label, row.Unit, row.Counts = match[1]+".*", before, "as `latencies.*`", "as there"
	}
	return row
}

// above is the path of the usage or the latency that a figure is of.
func above(f Figure) string {
	paths := []string{}
	if f.list == usageList {
		for _, u := range UsageFigures {
			paths = append(paths, u.Path)
		}
	} else {
		for _, l := range LatencyFigures {
			paths = append(paths, l.Path)
		}
	}
	for _, p := range paths {
		if rest, ok := strings.CutSuffix(f.Path, "."+p); ok {
			return rest
		}
	}
	return f.Path
}

// firstLabel is the label of a list's first figure.
func firstLabel(l list) string {
	if l == usageList {
		return UsageFigures[0].Label
	}
	return LatencyFigures[0].Label
}
