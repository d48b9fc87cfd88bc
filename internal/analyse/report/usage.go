package report

import (
	"maps"
	"slices"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// phasesShown are the phases with figures, in order. Rollout and steady are always shown,
// the others only if they have figures.
var phasesShown = []struct {
	name   record.PhaseName
	always bool
}{{record.PhaseBaseline, false}, {record.PhaseRollout, true}, {record.PhaseSteady, true}, {record.PhaseProbe, false}, {record.PhaseChange, false}, {record.PhaseCycle, false}, {record.PhaseStorm, false}, {record.PhaseChurn, false}}

// usage returns the usage of a phase; an empty one if it was not measured.
func usage(figures *record.ByPhase[*record.Usage], phase record.PhaseName) *record.Usage {
	return orEmpty(*orEmpty(orEmpty(figures).At(phase)))
}

// usageTable returns a table with a row for each figure and a column for each phase.
func (r *runReport) usageTable(title, path string, figures *record.ByPhase[*record.Usage]) table {
	t := table{Head: []marked{r.mark(path, "").on(title)}}
	var phases []record.PhaseName
	for _, p := range phasesShown {
		if p.always || *usage(figures, p.name) != (record.Usage{}) {
			phases = append(phases, p.name)
			t.Head = append(t.Head, r.mark(path+"."+string(p.name), path).on(string(p.name)))
		}
	}
	for _, f := range record.UsageFigures {
		if rare(f.Path) && !slices.ContainsFunc(phases, func(p record.PhaseName) bool { return f.Of(usage(figures, p)) != nil }) {
			continue
		}
		cells := plain(f.Label)
		for _, phase := range phases {
			within := path + "." + string(phase)
			cells = append(cells, r.mark(within+"."+f.Path, within).on(figureText(f.Unit, f.Of(usage(figures, phase)))))
		}
		t.Add(cells...)
	}
	return t
}

func (r *runReport) controlPlane() table {
	return r.usageTable("control plane", "controlPlane", r.run.ControlPlane)
}

func (r *runReport) realSidecars() table {
	if r.run.Sidecars == nil || r.run.Sidecars.Real == nil {
		return table{}
	}
	real := r.run.Sidecars.Real
	return r.usageTable(output.Many(real.Count, "real sidecar"), "sidecars.real", &real.ByPhase)
}

// usageFigureColumn shows one figure of the usage of programs, one in each row, in a
// phase.
type usageFigureColumn struct {
	head  string
	phase record.PhaseName
	path  string // below the usage
}

func heads(columns []usageFigureColumn) (all []marked) {
	for _, c := range columns {
		all = append(all, unmarked(c.head))
	}
	return all
}

// clusterColumns are the figures shown for each of the cluster's programs.
var clusterColumns = []usageFigureColumn{
	{"cores rollout", record.PhaseRollout, "cores.mean"},
	{"peak rollout", record.PhaseRollout, "cores.peak"},
	{"cores steady", record.PhaseSteady, "cores.mean"},
	{"memory peak rollout", record.PhaseRollout, "memoryBytes.peak"},
	{"memory mean steady", record.PhaseSteady, "memoryBytes.mean"},
	{"saturation rollout", record.PhaseRollout, "saturation"},
}

func (r *runReport) cluster() table {
	t := table{Head: append([]marked{r.mark("cluster", "").on("cluster")}, heads(clusterColumns)...)}
	for _, name := range slices.Sorted(maps.Keys(r.run.Cluster)) {
		figures, path := r.run.Cluster[name], "cluster."+name
		cells := []marked{r.mark(path, "cluster").on(name)}
		for _, c := range clusterColumns {
			cells = append(cells, r.mark(path+"."+string(c.phase)+"."+c.path, path).on(usageText(usage(&figures, c.phase), c.path)))
		}
		t.Add(cells...)
	}
	return t
}
