package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/record"
)

// The cost of one more pod is the slope of the model with which a plan forecasts a figure
// (capacity.OneMorePod), from runs that differ only in size. A figure that grows with the
// square has none. Runs that did not complete are omitted.

// confidence of the intervals.
const confidence = 0.95

// sizesNeeded is the number of different sizes needed for the interval of a line: two
// points always lie on one.
const sizesNeeded = 3

// costFigure is a figure that grows with the mesh; it is printed in amounts for one more pod.
type costFigure struct {
	name string
	figure
	// itself means that the figure is the configuration, which is not fitted to
	// configuration.
	itself bool
}

var costFigures = []costFigure{
	{"memory, peak of rollout", need(record.PhaseRollout, "memoryBytes.peak"), false},
	{"memory, mean of steady", need(record.PhaseSteady, "memoryBytes.mean"), false},
	{"live heap, end of rollout", need(record.PhaseRollout, "heapBytes.end"), false},
	{"live heap, mean of steady", need(record.PhaseSteady, "heapBytes.mean"), false},
	{"live heap, steady, after GC", need(record.PhaseSteady, "heapBytes.collected"), false},
	{"CPU time of rollout", need(record.PhaseRollout, "cpuSeconds"), false},
	{"cores, mean of rollout", need(record.PhaseRollout, "cores.mean").as(millicores), false},
	{"cores, mean of steady", need(record.PhaseSteady, "cores.mean").as(millicores), false},
	{"rollout time", rolloutTime, false},
	{"configuration of a sidecar", configuration.as(fewBytes), true},
}

// fewBytes formats a size, including fractions of a byte, which slopes have.
func fewBytes(v *float64) string {
	if v == nil || math.Abs(*v) >= 100 {
		return bytes(v)
	}
	return threeDigits(*v) + "B"
}

// millicores formats thousandths of a core, because one pod uses far less than a core.
func millicores(v *float64) string {
	if v == nil {
		return absent
	}
	return threeDigits(*v*1e3) + "m"
}

// alike is a group of completed runs that differ in nothing but the size, or in nothing
// but size and settings.
type alike struct {
	key  string
	runs []*record.Run
}

// group groups completed runs by key, in order of the first of each group.
func group(runs []record.Run, key func(*record.Run) string) []alike {
	var groups []alike
	for i := range runs {
		if runs[i].Status != record.StatusCompleted {
			continue
		}
		of := key(&runs[i])
		at := slices.IndexFunc(groups, func(g alike) bool { return g.key == of })
		if at < 0 {
			at = len(groups)
			groups = append(groups, alike{key: of})
		}
		groups[at].runs = append(groups[at].runs, &runs[i])
	}
	return groups
}

// sizes of the group, ascending, each once.
func (g alike) sizes() []int {
	var sizes []int
	for _, r := range g.runs {
		sizes = append(sizes, r.PodCount())
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// surroundings returns a function that combines all properties in which runs on one line
// must agree, except the settings. The calls between services, and their namespaces, may
// differ.
func surroundings(differing []axis) func(*record.Run) string {
	return func(r *record.Run) string {
		var parts []string
		for _, a := range differing {
			if a.name != "namespaces" && a.name != "seed" {
				parts = append(parts, a.value(r))
			}
		}
		return strings.Join(parts, ", ")
	}
}

// cost adds to a summary the cost of one more pod, or why it is not known.
func (d *document) cost(runs []record.Run, differing []axis, warnings *warnings) {
	places := group(runs, surroundings(differing))
	// If runs differ in more than size and settings, each kind is named by its first run:
	// the table of differences has the rest.
	name := func(g alike) string {
		if len(places) < 2 {
			return ""
		}
		return " as in " + g.runs[0].Name
	}
	slopes := table{Head: plain("one more pod (95% interval)")}
	var columns []alike
	for _, g := range settings(runs) {
		with := g.runs[0].Environment.Knobs.Text() + name(g)
		if n := len(g.sizes()); n < sizesNeeded {
			d.facts.add("one more pod", fmt.Sprintf("cost unknown with %s: %d sizes, and at least %d are needed", with, n, sizesNeeded))
			continue
		}
		if !g.repeated() {
			d.facts.add("one more pod", fmt.Sprintf("cost unknown with %s: every size was run once; --repeats 3", with))
			continue
		}
		columns = append(columns, g)
		slopes.Head = append(slopes.Head, unmarked(fmt.Sprintf("%s; %s pods", with, joined(g.sizes()))))
	}
	if len(columns) == 0 {
		return
	}
	var shown []*record.Run
	for _, g := range columns {
		shown = append(shown, g.runs...)
	}
	for _, figure := range costFigures {
		cells := plain(ofProxies(figure.name, shown...))
		for _, g := range columns {
			cell := unmarked(g.oneMorePod(figure.figure))
			if cell.text != absent {
				cell.marks = warnings.markAll(g.runs, figure.path)
			}
			cells = append(cells, cell)
		}
		slopes.Add(cells...)
	}
	d.tables = append(d.tables, slopes)
	for _, g := range places {
		d.effects(g, name(g), warnings)
	}
}

// repeated reports whether any size was run more than once.
func (g alike) repeated() bool { return len(g.sizes()) < len(g.runs) }

// oneMorePod formats the cost of one more pod in a figure, or the model by which it grows
// with the square.
func (g alike) oneMorePod(f figure) string {
	cost, err := g.slope(f)
	switch {
	case errors.Is(err, capacity.ErrSquare):
		return "no slope: " + cost.Model
	case err != nil:
		return absent
	}
	return interval(stats.Term{Value: cost.Value, Low: cost.Low, High: cost.High}, 1, f.print)
}

// slope returns the increase of a figure with one more pod; see capacity.OneMorePod.
func (g alike) slope(f figure) (capacity.Cost, error) {
	path := f.path
	if path == rolloutTime.path {
		path += ".seconds"
	}
	return capacity.OneMorePod(g.runs, path)
}

// term is something that a figure may grow with.
type term struct {
	name  string
	of    func(*record.Run) *float64
	scale float64 // amounts of it that are printed
}

var (
	termPods     = term{"pod", func(r *record.Run) *float64 { return new(float64(r.PodCount())) }, 1}
	termServices = term{"service", func(r *record.Run) *float64 { return new(float64(r.ServiceCount())) }, 1}
	// termConfiguration is the configuration that all proxies hold together.
	termConfiguration = term{"MiB of sidecars' configuration", func(r *record.Run) *float64 {
		mean, holders := configuration.value(r), proxies(r)
		if mean == nil || holders == nil {
			return nil
		}
		if p := r.Proxies; mixed(r) { // the mean is theirs
			if p.ConfigurationBytes == nil || p.ConfigurationBytes.Mean == nil {
				return nil
			}
			return new(*mean*float64(*p.Sidecars) + *p.ConfigurationBytes.Mean*float64(p.Nodes))
		}
		return new(*mean * *holders)
	}, 1 << 20}
)

// fit fits a figure to terms and a constant. Runs that lack one are omitted. It returns
// an error if too few different sizes are left or terms grow together.
func (g alike) fit(f figure, terms []term) (stats.Fit, error) {
	var x [][]float64
	var y []float64
	for _, r := range g.runs {
		row := []float64{1}
		for _, t := range terms {
			if v := t.of(r); v != nil {
				row = append(row, *v)
			}
		}
		if value := f.value(r); value != nil && len(row) == 1+len(terms) {
			x, y = append(x, row), append(y, *value)
		}
	}
	different := slices.Clone(x)
	slices.SortFunc(different, func(a, b []float64) int { return slices.Compare(a, b) })
	different = slices.CompactFunc(different, slices.Equal[[]float64])
	if len(different) < max(sizesNeeded, len(terms)+2) {
		return stats.Fit{}, stats.ErrTooFew
	}
	return stats.LeastSquares(x, y, confidence)
}

// effects adds a table with the separate costs of pods, services and configuration,
// as far as the runs allow: knobs change the configuration at one size, and
// --services the services.
func (d *document) effects(g alike, name string, warnings *warnings) {
	if !g.repeated() {
		return // nothing distinguishes an effect from noise
	}
	for _, terms := range [][]term{
		{termPods, termServices, termConfiguration}, {termPods, termConfiguration}, {termPods, termServices},
	} {
		t := table{Head: plain("separate effects" + name + " (95% interval)")}
		for _, one := range terms {
			t.Head = append(t.Head, unmarked("one more "+ofProxies(one.name, g.runs...)))
		}
		for _, figure := range costFigures {
			fit, err := g.fit(figure.figure, terms)
			if err != nil || figure.itself {
				continue
			}
			cells := []marked{warnings.markAll(g.runs, figure.path).on(figure.name)}
			for i, one := range terms {
				cells = append(cells, unmarked(interval(fit.Terms[i+1], one.scale, figure.print)))
			}
			t.Add(cells...)
		}
		if len(t.Rows) > 0 {
			if share, ok := g.servicesPerPod(); ok && slices.IndexFunc(terms, func(t term) bool { return t.name == termServices.name }) < 0 {
				d.facts.add("separate effects", fmt.Sprintf("services grew with pods%s: one more pod includes %.3g service", name, share))
			}
			d.tables = append(d.tables, t)
			return
		}
	}
	if len(g.sizes()) >= sizesNeeded {
		d.facts.add("separate effects", "unknown: pods, services and configuration grew together"+name+"; add runs of the same sizes with other knobs or --services")
	}
}

// servicesPerPod returns the ratio of services to pods, if it is the same in all runs.
func (g alike) servicesPerPod() (share float64, ok bool) {
	for i, r := range g.runs {
		if r.PodCount() == 0 {
			return 0, false
		}
		of := float64(r.ServiceCount()) / float64(r.PodCount())
		if i > 0 && of != share {
			return 0, false
		}
		share = of
	}
	return share, share > 0
}

// interval formats a slope with its interval; "~" for one that may be 0.
func interval(t stats.Term, scale float64, print func(*float64) string) string {
	value, low, high := print(new(t.Value*scale)), print(new(t.Low*scale)), print(new(t.High*scale))
	if t.Low <= 0 && t.High >= 0 {
		value = "~"
	}
	return fmt.Sprintf("%s (%s to %s)", value, low, high)
}

// joined formats numbers as in "200, 400".
func joined(numbers []int) string {
	var parts []string
	for _, n := range numbers {
		parts = append(parts, fmt.Sprint(n))
	}
	return strings.Join(parts, ", ")
}
