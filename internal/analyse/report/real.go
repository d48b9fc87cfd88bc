package report

import (
	"strconv"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// realColumns are the figures of one real sidecar of a run, as the mean over all.
var realColumns = []struct {
	head  string
	phase record.PhaseName
	path  string // below the usage of all together, whose warnings are the figure's too
	agent bool   // with the agent, else only Envoy
	print func(*float64) string
}{
	{"Envoy memory end rollout", record.PhaseRollout, "memoryBytes.end", false, bytes},
	{"Envoy memory mean steady", record.PhaseSteady, "memoryBytes.mean", false, bytes},
	{"with agent steady", record.PhaseSteady, "memoryBytes.mean", true, bytes},
	{"CPU time rollout", record.PhaseRollout, "cpuSeconds", true, seconds},
	{"cores steady", record.PhaseSteady, "cores.mean", true, millicores},
}

// realOf returns the real sidecars of a run; nil if there are none.
func realOf(r *record.Run) *record.RealSidecars {
	if r.Sidecars == nil || r.Sidecars.Real == nil || len(r.Sidecars.Real.Each) == 0 {
		return nil
	}
	return r.Sidecars.Real
}

// perSidecar returns the mean of a figure over the sidecars that have it.
func perSidecar(real *record.RealSidecars, phase record.PhaseName, path string, agent bool) *float64 {
	of := usageFigure(path).Of
	sum, n := 0.0, 0
	for i := range real.Each {
		each := &real.Each[i]
		value := of(usage(&each.Proxy, phase))
		if value == nil {
			continue
		}
		sum += *value
		n++
		if more := of(usage(each.Agent, phase)); agent && more != nil {
			sum += *more
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}

// realSidecars adds to a summary the usage of a real sidecar in each run, and how much
// more it is with the permissive mode than with the strict one at the same size.
func (d *document) realSidecars(runs []record.Run, warnings *warnings) {
	t := table{Head: plain("one real sidecar of", "mtls", "scope", "authz", "pods", "services", "sidecars"), Left: 3}
	for _, c := range realColumns {
		t.Head = append(t.Head, unmarked(c.head))
	}
	steady := map[string]map[[2]int][]float64{"permissive": {}, "strict": {}} // Envoy's memory by mode and size
	var sizes [][2]int
	for i := range runs {
		run := &runs[i]
		real := realOf(run)
		if real == nil {
			continue
		}
		knobs := run.Environment.Knobs
		cells := plain(orAbsent(run.Name), orAbsent(knobs.MTLS), orAbsent(knobs.Scope), orAbsent(knobs.Authz), count(new(run.PodCount())), count(new(run.ServiceCount())), count(&real.Count))
		for _, c := range realColumns {
			cells = append(cells, warnings.mark(run, "sidecars.real."+string(c.phase)+"."+c.path, "sidecars.real").on(c.print(perSidecar(real, c.phase, c.path, c.agent))))
		}
		t.Add(cells...)
		memory := perSidecar(real, record.PhaseSteady, "memoryBytes.mean", false)
		if byMode := steady[run.ModeName()]; byMode != nil && memory != nil && run.Status == record.StatusCompleted {
			size := [2]int{run.PodCount(), run.ServiceCount()}
			if len(steady["permissive"][size])+len(steady["strict"][size]) == 0 {
				sizes = append(sizes, size)
			}
			byMode[size] = append(byMode[size], *memory)
		}
	}
	if len(t.Rows) == 0 {
		return
	}
	d.tables = append(d.tables, t)
	modes := table{Head: plain("Envoy memory steady, by mode", "permissive", "strict", "permissive / strict")}
	for _, size := range sizes {
		permissive, strict := mean(steady["permissive"][size]), mean(steady["strict"][size])
		if permissive != nil && strict != nil {
			modes.AddPlain(output.Many(size[0], "pod")+", "+output.Many(size[1], "service"), bytes(permissive), bytes(strict), strconv.FormatFloat(*permissive / *strict, 'f', 2, 64))
		}
	}
	d.add(modes)
}

// mean returns the mean of the values; nil if there are none.
func mean(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return new(sum / float64(len(values)))
}
