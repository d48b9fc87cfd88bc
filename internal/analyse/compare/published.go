package compare

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// publishedYAML is reference/published.yaml, a copy of the file kept with the design:
// figures that others published, each with its source.
//
//go:embed published.yaml
var publishedYAML []byte

// published is one source of publishedYAML.
type published struct {
	Name       string            `json:"name"`
	Source     string            `json:"source"`
	Setup      string            `json:"setup"`
	Versions   map[string]string `json:"versions"`
	Chart      bool              `json:"chart"` // values were read off a chart
	Rows       []map[string]any  `json:"rows"`
	Statements []string          `json:"statements"`
	// Further tables of one source.
	ControlPlaneBytes      []map[string]any `json:"controlPlaneBytes"`
	ControlPlaneCPUPercent []map[string]any `json:"controlPlaneCPUPercent"`
	DataPlaneBytes         []map[string]any `json:"dataPlaneBytes"`
}

// readPublished reads the embedded figures, in their order.
func readPublished() ([]published, error) {
	var file struct {
		ControlPlane []published `json:"controlPlane"`
		DataPlane    []published `json:"dataPlane"`
		Telemetry    []published `json:"telemetry"`
	}
	if err := yaml.Unmarshal(publishedYAML, &file); err != nil {
		return nil, fmt.Errorf("reading the published figures: %w", err)
	}
	return slices.Concat(file.ControlPlane, file.DataPlane, file.Telemetry), nil
}

// Published returns the names of the published results that ComparePublished takes.
func Published() ([]string, error) {
	all, err := readPublished()
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names, err
}

// PublishedComparison is the result of ComparePublished: published figures, and ours of
// the same size.
type PublishedComparison struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"` // "PublishedComparison"
	Name       string         `json:"name"`
	Source     string         `json:"source"`
	Setup      []string       `json:"setup"`                // how they were measured, how ours, and what of ours is left out
	Statements []string       `json:"statements,omitempty"` // what else the source states
	Rows       []PublishedRow `json:"rows"`
}

// PublishedRow is a published figure, with ours if there is one.
type PublishedRow struct {
	Of        string   `json:"of"`     // its subject, as in "200 pods"
	Figure    string   `json:"figure"` // by the name it has in the collection
	Published string   `json:"published"`
	Runs      string   `json:"runs,omitempty"` // ours: control plane and knobs
	Ours      string   `json:"ours,omitempty"` // name of our figure, see Name
	Unit      Unit     `json:"unit,omitempty"`
	Mean      *Sample  `json:"sample,omitempty"`
	Ratio     *float64 `json:"ratio,omitempty"` // ours over the published

	group *repeats // of ours; nil where there is none
}

// counterparts maps published figures to ours. If a source does not state whether it
// means the mean or the peak, both are compared.
var counterparts = map[string][]string{
	"rolloutCores":    {"controlPlane.rollout.cores.mean", "controlPlane.rollout.cores.peak"},
	"steadyCores":     {"controlPlane.steady.cores.mean"},
	"rolloutBytes":    {"controlPlane.rollout.memoryBytes.peak"},
	"steadyBytes":     {"controlPlane.steady.memoryBytes.mean", "controlPlane.steady.heapBytes.mean"},
	"controllerBytes": {"controlPlane.steady.memoryBytes.mean"},
	"bytes":           {"controlPlane.steady.memoryBytes.mean"},
	"sidecarBytes":    {"sidecars.real.steady.memoryBytes.mean"},
}

// rowKeys are the properties that identify a published figure, in the order in which they
// are printed.
var rowKeys = []string{"pods", "services", "mode", "churnPerSecond", "rps", "component", "mesh", "collectors"}

// ComparePublished compares published results with the runs of ours that are of the same
// size, those of each folder separately, as A, B and so on. Nothing is tested: published
// figures come without their spread, and from other machines; the result says so, and
// which runs of ours have no counterpart. The error lists the valid names if name is none
// of them.
func ComparePublished(name string, folders ...[]record.Run) (*PublishedComparison, error) {
	all, err := readPublished()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(p published) bool { return p.Name == name })
	if at < 0 {
		names, _ := Published()
		return nil, scenario.Refuse("published", name, "one of %s", strings.Join(names, ", "))
	}
	p := all[at]
	var groups []namedGroup
	var unknown []*record.Run
	for i, runs := range folders {
		side := string(rune('A' + i))
		gathered, begun, err := gather(side, runs)
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, begun...)
		name := ""
		if len(folders) > 1 {
			name = side + ": "
		}
		for _, group := range gathered {
			groups = append(groups, namedGroup{name, group})
		}
	}
	comparison := &PublishedComparison{APIVersion: record.APIVersion, Kind: "PublishedComparison", Name: p.Name, Source: p.Source, Statements: p.Statements}
	comparison.describe(p, groups)
	for _, t := range []struct {
		name string
		rows []map[string]any
	}{{"", p.Rows}, {"control plane, bytes", p.ControlPlaneBytes}, {"control plane, % of CPU", p.ControlPlaneCPUPercent}, {"data plane, bytes", p.DataPlaneBytes}} {
		for _, row := range t.rows {
			comparison.row(t.name, row, groups)
		}
	}
	comparison.leftOut(groups, unknown)
	return comparison, nil
}

// namedGroup is a group of runs with a prefix for its name.
type namedGroup struct {
	side string
	*repeats
}

// name names the group to a reader, as a row of ours does.
func (c namedGroup) name() string {
	return c.side + c.first.Environment.ControlPlane.Name + ", " + c.first.Environment.Knobs.Text()
}

// leftOut lists the runs of ours without a counterpart, and the reasons.
func (l *PublishedComparison) leftOut(groups []namedGroup, unknown []*record.Run) {
	for _, c := range groups {
		name := c.name()
		if n := len(c.unused); n > 0 {
			l.Setup = append(l.Setup, fmt.Sprintf("ours: of %s, %s: %d of %s did not complete and are left out (%s)",
				output.Many(c.first.PodCount(), "pod"), name, n, output.Many(n+len(c.used), "run"), unusedText(c.unused)))
		}
		compared := slices.ContainsFunc(l.Rows, func(b PublishedRow) bool { return b.group == c.repeats })
		if len(c.used) > 0 && !compared {
			l.Setup = append(l.Setup, fmt.Sprintf("ours: of %s, %s: %s left out: nothing that was measured is published of that size and mode",
				output.Many(c.first.PodCount(), "pod"), name, output.Many(len(c.used), "run")))
		}
	}
	for _, run := range unknown {
		l.Setup = append(l.Setup, "ours: "+notYet(run, "is left out"))
	}
}

// describe states how both were measured.
func (l *PublishedComparison) describe(p published, groups []namedGroup) {
	setup := p.Setup
	if setup == "" {
		setup = "the collection does not say on what"
	}
	if len(p.Versions) > 0 {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(p.Versions)) {
			parts = append(parts, name+" "+p.Versions[name])
		}
		setup += "; " + strings.Join(parts, ", ")
	}
	if p.Chart {
		setup += "; read off a chart"
	}
	l.Setup = append(l.Setup, "published: "+setup)
	var ours []string
	for _, c := range groups {
		if len(c.used) == 0 {
			continue
		}
		env := c.first.Environment
		text := fmt.Sprintf("ours: %s %s on %s and %s, kernel %s, a cluster of fake nodes with simulated sidecars; steady %s",
			env.ControlPlane.Name, env.ControlPlane.Version, output.Many(env.CPUs, "processor"), Bytes.print(float64(env.MemoryBytes)), env.Kernel, c.first.Scenario.Phases.Steady)
		if !slices.Contains(ours, text) {
			ours = append(ours, text)
		}
	}
	l.Setup = append(l.Setup, ours...)
	l.Setup = append(l.Setup, "these are not the same machine, control plane and method, and the published figures come without their spread: the ratio is no test of anything")
}

// row compares every figure of a published row with ours.
func (l *PublishedComparison) row(table string, row map[string]any, groups []namedGroup) {
	var of []string
	for _, key := range rowKeys {
		switch value := row[key].(type) {
		case nil:
		case float64:
			of = append(of, digits(value)+" "+key)
		default:
			of = append(of, fmt.Sprint(value))
		}
	}
	if table != "" {
		of = append(of, table)
	}
	if note, ok := row["note"].(string); ok {
		of = append(of, note)
	}
	for _, key := range slices.Sorted(maps.Keys(row)) {
		if key == "note" || slices.Contains(rowKeys, key) {
			continue
		}
		values, isMap := row[key].(map[string]any)
		if !isMap {
			l.figure(strings.Join(of, ", "), key, row, row[key], groups)
			continue
		}
		for _, variant := range slices.Sorted(maps.Keys(values)) {
			l.figure(strings.Join(of, ", "), key+", "+variant, row, values[variant], groups)
		}
	}
}

// figure compares one published figure with ours, once for each of our groups of that
// size and each counterpart; without any it is listed by itself.
func (l *PublishedComparison) figure(of, key string, row map[string]any, value any, groups []namedGroup) {
	base := PublishedRow{Of: of, Figure: key, Published: publishedText(key, value)}
	found := false
	for _, group := range groups {
		if !sameSize(row, group) {
			continue
		}
		for _, path := range counterparts[key] {
			b := base
			if b.take(path, value, group) {
				l.Rows = append(l.Rows, b)
				found = true
			}
		}
	}
	if !found {
		l.Rows = append(l.Rows, base)
	}
}

// take fills in our side, and reports whether there is one.
func (b *PublishedRow) take(path string, value any, group namedGroup) bool {
	f := Figure{Path: path}
	for _, run := range group.used {
		for _, v := range figures(run) {
			if v.Path == path && v.Value != nil {
				f.Unit = Unit(v.Figure.Unit)
				// Real sidecars are recorded as a total, and published per sidecar.
				if strings.HasPrefix(path, "sidecars.real.") && run.Sidecars.Real.Count > 0 {
					v.Value = new(*v.Value / float64(run.Sidecars.Real.Count))
				}
				f.A.take(v)
			}
		}
	}
	if f.A.N == 0 {
		return false
	}
	f.A.describe(false)
	b.Runs, b.group = group.name(), group.repeats
	b.Ours, b.Unit, b.Mean = Name(path), f.Unit, &f.A
	if of, ok := value.(float64); ok && of != 0 {
		b.Ratio = new(stat.Mean(f.A.values, nil) / of)
	}
	return true
}

// sameSize reports whether a published row has the size of a group of ours, and its mode
// if it names one, and contains nothing that our runs do not have.
func sameSize(row map[string]any, group namedGroup) bool {
	sized := false
	for key, ours := range map[string]float64{"pods": float64(group.first.PodCount()), "services": float64(group.first.ServiceCount())} {
		if published, ok := row[key].(float64); ok {
			if published != ours {
				return false
			}
			sized = true
		}
	}
	if mode, ok := row["mode"].(string); ok && mode != group.first.ModeName() {
		return false
	}
	churn, _ := row["churnPerSecond"].(float64)
	return sized && (churn == 0) == (group.first.Scenario.Load.Churn == 0)
}

// publishedText formats a published value in the unit that its key names.
func publishedText(key string, value any) string {
	switch v := value.(type) {
	case float64:
		key, _, _ = strings.Cut(key, ", ")
		switch {
		case strings.HasSuffix(strings.ToLower(key), "bytes"):
			return Bytes.print(v)
		case key == "p50" || key == "p90" || key == "p99" || key == "p100":
			return Seconds.print(v)
		default:
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case []any:
		var parts []string
		for _, one := range v {
			parts = append(parts, publishedText(key, one))
		}
		return strings.Join(parts, " to ")
	default:
		return fmt.Sprint(v)
	}
}

// publishedHead names the columns of rows.
var publishedHead = []string{"of", "figure", "our runs", "our figure", "published", "ours", "ours/published"}

// cells returns the cells of a row.
func (b PublishedRow) cells() []string {
	mean, ratio := "-", "-"
	if b.Mean != nil {
		mean = b.Mean.text(b.Unit) + ", " + output.Many(b.Mean.N, "run")
	}
	if b.Ratio != nil {
		ratio = digits(*b.Ratio)
	}
	return []string{b.Of, b.Figure, cmp.Or(b.Runs, "-"), cmp.Or(b.Ours, "-"), b.Published, mean, ratio}
}

func (l *PublishedComparison) write(d *output.Document) {
	d.Title("compared with " + l.Name)
	d.List(append([]string{"source: " + l.Source}, l.Setup...)...)
	t := output.Table{Head: publishedHead, Left: 3}
	for _, b := range l.Rows {
		t.Add(b.cells()...)
	}
	d.Section("Figures")
	d.Table(t)
	var statements []string
	for _, statement := range l.Statements {
		statements = append(statements, "the source says: "+statement)
	}
	d.List(statements...)
}
