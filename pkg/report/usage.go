package report

import (
	"maps"
	"slices"

	"scaler.mesh/scaler/pkg/output"
	"scaler.mesh/scaler/pkg/record"
)

// phasesShown are the phases with figures, in order. Rollout and steady are
// shown always, the others when there is something to show.
var phasesShown = []struct {
	name   record.PhaseName
	always bool
}{{record.PhaseBaseline, false}, {record.PhaseRollout, true}, {record.PhaseSteady, true}, {record.PhaseProbe, false}, {record.PhaseStorm, false}, {record.PhaseChurn, false}}

// usage is what a phase used; of one that was not measured it has nothing.
func usage(figures *record.ByPhase[*record.Usage], phase record.PhaseName) *record.Usage {
	return orEmpty(*orEmpty(orEmpty(figures).At(phase)))
}

// usageTable has a row for each figure and a column for each phase.
func (r *runReport) usageTable(title, path string, figures *record.ByPhase[*record.Usage]) output.Table {
	t := output.Table{Head: []string{title + r.mark(path, "")}}
	var phases []record.PhaseName
	for _, p := range phasesShown {
		if p.always || *usage(figures, p.name) != (record.Usage{}) {
			phases = append(phases, p.name)
			t.Head = append(t.Head, string(p.name)+r.mark(path+"."+string(p.name), path))
		}
	}
	for _, row := range usageRows {
		cells := []string{row.name}
		for _, phase := range phases {
			within := path + "." + string(phase)
			cells = append(cells, row.print(usage(figures, phase))+r.mark(within+"."+row.path, within))
		}
		t.Add(cells...)
	}
	return t
}

func (r *runReport) controlPlane() output.Table {
	return r.usageTable("control plane", "controlPlane", r.run.ControlPlane)
}

func (r *runReport) realSidecars() output.Table {
	if r.run.Sidecars == nil || r.run.Sidecars.Real == nil {
		return output.Table{}
	}
	real := r.run.Sidecars.Real
	return r.usageTable(output.Many(real.Count, "real sidecar"), "sidecars.real", &real.ByPhase)
}

// clusterColumns are the figures shown of each of the cluster's programs.
var clusterColumns = []struct {
	head  string
	phase record.PhaseName
	path  string // below the usage
}{
	{"cores rollout", record.PhaseRollout, "cores.mean"},
	{"peak rollout", record.PhaseRollout, "cores.peak"},
	{"cores steady", record.PhaseSteady, "cores.mean"},
	{"memory peak rollout", record.PhaseRollout, "memoryBytes.peak"},
	{"memory mean steady", record.PhaseSteady, "memoryBytes.mean"},
	{"saturation rollout", record.PhaseRollout, "saturation"},
}

func (r *runReport) cluster() output.Table {
	t := output.Table{Head: []string{"cluster" + r.mark("cluster", "")}}
	for _, c := range clusterColumns {
		t.Head = append(t.Head, c.head)
	}
	for _, name := range slices.Sorted(maps.Keys(r.run.Cluster)) {
		figures, path := r.run.Cluster[name], "cluster."+name
		cells := []string{name + r.mark(path, "cluster")}
		for _, c := range clusterColumns {
			cells = append(cells, usageText(usage(&figures, c.phase), c.path)+r.mark(path+"."+string(c.phase)+"."+c.path, path))
		}
		t.Add(cells...)
	}
	return t
}
