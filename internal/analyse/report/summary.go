package report

import (
	"fmt"
	"slices"
	"strconv"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// axis is a property in which runs may differ, in addition to the size and the settings,
// which every row shows. Values that all runs share are facts above the tables; differing
// ones are in a separate table.
type axis struct {
	name  string
	value func(*record.Run) string // "" is not shown when all runs share it
	of    []string                 // names of the conditions that it states; nil = that of its name
	quiet bool                     // it is shown only where runs differ
}

// texts are the properties that a report prints in words of its own.
var texts = []axis{
	{name: "control plane", value: func(r *record.Run) string { return controlPlaneText(r.Environment.ControlPlane) }, of: []string{"control plane", "sidecars' version", "replicas", "processors"}},
	{name: "settings", value: func(r *record.Run) string { return orAbsent(settingsText(r.Environment.ControlPlane.Settings)) }, of: []string{}},
	{name: "data plane", value: dataplaneText, of: []string{"data plane", "pods per node", "waypoints"}},
	{name: "namespaces", value: func(r *record.Run) string { return strconv.Itoa(r.NamespaceCount()) }},
	{name: "topology", value: topologyText},
	{name: "seed", value: func(r *record.Run) string { return strconv.FormatUint(r.Scenario.Mesh.Seed, 10) }},
	{name: "arrival", value: arrivalOf},
	{name: "xds", value: func(r *record.Run) string { return orAbsent(r.Scenario.Mesh.Sidecars.XDS) }},
	{name: "start delay", value: (*record.Run).StartDelay},
	{name: "change", value: func(r *record.Run) string { return r.Scenario.Load.Changes.String() }},
	{name: "churn", value: func(r *record.Run) string { return r.Scenario.Load.Churn.String() }},
	{name: "faults", value: func(r *record.Run) string { return r.Scenario.Load.FaultsText() }},
	{name: "real sidecars", value: func(r *record.Run) string {
		if n := r.Scenario.Mesh.Sidecars.Real; n > 0 {
			return strconv.Itoa(n)
		}
		return ""
	}},
	{name: "certificate storm", value: func(r *record.Run) string {
		if r.Scenario.Load.CertificateStorm {
			return "in the end"
		}
		return ""
	}},
	{name: "machine", value: func(r *record.Run) string { return machineText(r.Environment) }, of: []string{"CPUs", "memory", "kernel", "Kubernetes", "KWOK"}},
	{name: "dilation", value: dilationText},
	{name: "priority", value: func(r *record.Run) string {
		if r.Environment.Priority == nil {
			return ""
		}
		return r.Environment.Priority.Text()
	}},
}

// inRows are the conditions that every row shows.
var inRows = []string{record.PodsCondition, record.ServicesCondition, record.SettingsCondition}

// axes are the properties in which runs may differ: those with texts of their own, and all other
// conditions.
var axes = allAxes()

func allAxes() []axis {
	stated := slices.Clone(inRows)
	for _, a := range texts {
		if a.of == nil {
			stated = append(stated, a.name)
		}
		stated = append(stated, a.of...)
	}
	all := slices.Clone(texts)
	for _, c := range record.Conditions {
		if !slices.Contains(stated, c.Name) {
			all = append(all, axis{name: c.Name, value: c.Of, quiet: true})
		}
	}
	return all
}

// dataplaneText describes the data plane of a run's pods; "" for sidecars. Runs that
// differ only in size have the same text.
func dataplaneText(r *record.Run) string {
	if r.Dataplane() == record.SidecarDataplane {
		return ""
	}
	text := fmt.Sprintf("%s, a node for %s", r.Dataplane(), output.Many(r.Scenario.Mesh.PodsPerNode, "pod"))
	if r.Mesh != nil && r.Proxies != nil {
		text = fmt.Sprintf("%s, %s", r.Dataplane(), output.Many(r.Proxies.Nodes, "node"))
	}
	p := r.Proxies
	if p == nil {
		return text
	}
	and := func(before string) string {
		if w := p.Waypoints; w != nil && w.Ready != nil {
			return before + output.Many(*w.Ready, "waypoint")
		}
		return ""
	}
	if mixed(r) {
		return text + fmt.Sprintf("; %s in %d of %d namespaces have no sidecars, but the nodes' %s%s", output.Many(r.PodCount()-*p.Sidecars, "pod"), len(p.Namespaces), r.NamespaceCount(), plural(p.Name), and(" and "))
	}
	return text + fmt.Sprintf("; what is said of sidecars is of the nodes' %s%s", plural(p.Name), and(", and of "))
}

// summaryColumn is one figure of each run.
type summaryColumn struct {
	head  string
	path  string // in the record; a mark stands at the figure itself
	print func(*record.Run) string
}

// headlineColumns are the figures shown first: the control plane's usage during the
// rollout, and the arrival of the pods.
var headlineColumns = []summaryColumn{
	{"pods", "pods.requested", func(r *record.Run) string { return count(new(r.PodCount())) }},
	{"arrival", "arrival", arrivalOf},
	figureColumn("pods/s", arrivalRate),
	figureColumn("CPU time", need(record.PhaseRollout, "cpuSeconds")),
	figureColumn("cores", need(record.PhaseRollout, "cores.mean")),
	figureColumn("pushes per sidecar", pushesPerSidecar.as(tally)),
	figureColumn("bytes per sidecar", bytesPerSidecar),
	figureColumn("memory, peak", need(record.PhaseRollout, "memoryBytes.peak")),
}

func figureColumn(head string, f figure) summaryColumn { return summaryColumn{head, f.path, f.text} }

// headline returns a table of the headline figures, with a row for each run.
func headline(d *warnings, runs ...*record.Run) table {
	t := table{Head: plain("headline"), Left: 1}
	for _, r := range runs {
		t.AddPlain(orAbsent(r.Name))
	}
	addColumns(&t, runs, d, headlineColumns)
	return t
}

// needColumns are the figures of the control plane's usage.
var needColumns = []summaryColumn{
	figureColumn("cores rollout", need(record.PhaseRollout, "cores.mean")),
	figureColumn("peak rollout", need(record.PhaseRollout, "cores.peak")),
	figureColumn("cores steady", need(record.PhaseSteady, "cores.mean")),
	figureColumn("memory peak rollout", need(record.PhaseRollout, "memoryBytes.peak")),
	figureColumn("memory mean steady", need(record.PhaseSteady, "memoryBytes.mean")),
	figureColumn("heap end rollout", need(record.PhaseRollout, "heapBytes.end")),
	figureColumn("heap mean steady", need(record.PhaseSteady, "heapBytes.mean")),
	figureColumn("heap after GC", need(record.PhaseSteady, "heapBytes.collected")),
}

// timeColumns are the waits of the sidecars, and the amount that they received.
var timeColumns = []summaryColumn{
	{"converged", "pods.converged", convergedText},
	{"rollout time", "phases.rollout", rolloutText},
	latencyColumn("certificate p50", "certificate.p50", certificateOf, p50),
	latencyColumn("p99", "certificate.p99", certificateOf, p99),
	latencyColumn("complete p50", "completeConfiguration.p50", completeOf, p50),
	latencyColumn("p99", "completeConfiguration.p99", completeOf, p99),
	{"certificate, complete lost", "latencies.completeConfiguration.lost", func(r *record.Run) string { return lostText(certificateOf(r), completeOf(r)) }},
	figureColumn("configuration", configuration),
}

func latencyColumn(head, path string, which func(*record.Run) *record.Latency, of func(*record.Latency) *float64) summaryColumn {
	return summaryColumn{head, "latencies." + path, func(r *record.Run) string {
		l := which(r)
		return quantile(l, of(orEmpty(l)))
	}}
}

func convergedText(r *record.Run) string {
	if r.Pods == nil || r.Pods.Converged == nil {
		return absent
	}
	return fmt.Sprintf("%d/%d", *r.Pods.Converged, r.Pods.Requested)
}

// rolloutText formats the rollout time: the length of the rollout phase, if it ended by
// convergence; if it ended by the time limit, only a lower bound is known, and if the mesh came to rest otherwise than
// expected, nothing is.
func rolloutText(r *record.Run) string {
	p := r.Phase(record.PhaseRollout)
	switch {
	case p == nil || p.Seconds == nil:
		return absent
	case p.EndedBy == record.EndedByConverged:
		return seconds(p.Seconds)
	case p.EndedBy == record.EndedByQuiescent:
		return unknown
	default:
		return ">" + seconds(p.Seconds)
	}
}

// summaryDocument compares several runs, a row for each.
func summaryDocument(runs []record.Run) document {
	var d warnings
	for i := range runs {
		d.add(&runs[i])
	}
	all := pointers(runs)
	return summary(runs, &d, headline(&d, all...), d.thresholds(all...), summaryTable(runs, &d, needColumns), summaryTable(runs, &d, timeColumns))
}

// summary returns a document about several runs, with these tables.
func summary(runs []record.Run, d *warnings, tables ...table) document {
	doc := document{title: output.Many(len(runs), "run"), limits: d.limits(true)}
	differing := differingAxes(runs)
	for _, a := range axes {
		if value, same := common(runs, a); same && !a.quiet {
			doc.facts.add(a.name, value)
		}
	}
	if len(differing) > 0 {
		doc.tables = append(doc.tables, differenceTable(runs, differing))
	}
	doc.add(tables...)
	doc.realSidecars(runs, d)
	doc.dataplanes(runs, d)
	doc.cost(runs, differing, d)
	return doc
}

// common returns the value of all runs on an axis, and whether it is the same; "" for no
// runs.
func common(runs []record.Run, a axis) (value string, same bool) {
	if len(runs) == 0 {
		return "", true
	}
	value = a.value(&runs[0])
	for i := range runs {
		if a.value(&runs[i]) != value {
			return "", false
		}
	}
	return value, true
}

func differenceTable(runs []record.Run, differing []axis) table {
	t := table{Head: plain("run"), Left: len(differing)}
	for _, a := range differing {
		t.Head = append(t.Head, unmarked(a.name))
	}
	for i := range runs {
		cells := []string{orAbsent(runs[i].Name)}
		for _, a := range differing {
			cells = append(cells, orAbsent(a.value(&runs[i])))
		}
		t.AddPlain(cells...)
	}
	return t
}

// summaryTable returns a table with the size, the settings and some figures of each run.
func summaryTable(runs []record.Run, d *warnings, columns []summaryColumn) table {
	t := table{Head: plain("run", "status", "mtls", "scope", "authz", "pods", "services"), Left: 4}
	for i := range runs {
		run := &runs[i]
		knobs := run.Environment.Knobs
		t.AddPlain(orAbsent(run.Name), orAbsent(string(run.Status)), orAbsent(knobs.MTLS), orAbsent(knobs.Scope), orAbsent(knobs.Authz),
			count(new(run.PodCount())), count(new(run.ServiceCount())))
	}
	addColumns(&t, pointers(runs), d, columns)
	return t
}

// narrowTable returns a table with some figures of each run, without the settings.
func narrowTable(runs []record.Run, d *warnings, columns []summaryColumn) table {
	t := table{Head: plain("run")}
	for i := range runs {
		t.AddPlain(orAbsent(runs[i].Name))
	}
	addColumns(&t, pointers(runs), d, columns)
	return t
}

// addColumns adds figures to a table that has a row for each run.
func addColumns(t *table, runs []*record.Run, d *warnings, columns []summaryColumn) {
	for _, c := range columns {
		t.Head = append(t.Head, unmarked(ofProxies(c.head, runs...)))
		for i, r := range runs {
			t.Rows[i] = append(t.Rows[i], d.mark(r, c.path, "").on(c.print(r)))
		}
	}
}

// pointers returns pointers to the runs.
func pointers(runs []record.Run) []*record.Run {
	var all []*record.Run
	for i := range runs {
		all = append(all, &runs[i])
	}
	return all
}
