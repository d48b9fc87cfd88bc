package report

import (
	"html/template"
	"maps"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// part is a section of one run.
type part struct {
	name, title string
	defined     string // heading of the definitions
	tables      []table
}

// parts returns the parts of the report of one run, in order; some have no tables.
func (r *runReport) parts() []part {
	parts := []part{
		{name: "thresholds", title: "Thresholds", defined: "thresholds", tables: []table{r.warnings.thresholds(r.run)}},
		{name: "rollout", title: "Phases and pods", defined: "pods", tables: []table{r.phases(), r.pods(), r.differences()}},
		{name: "need", title: "What the control plane needed", defined: "what-programs-need",
			tables: []table{r.controlPlane(), r.replicas(), r.cluster(), r.realSidecars()}},
		{name: "time", title: "Over time", defined: "the-record"},
		{name: "latency", title: ofProxies("How long sidecars and changes took", r.run), defined: "connections-and-configuration",
			tables: []table{r.latencies(true), r.changeLatencies(), r.changes(), r.explained()}},
		{name: "start", title: "How a pod starts", defined: "the-record"},
		{name: "xds", title: "Configuration sent", defined: "connections-and-configuration",
			tables: []table{r.xds(), r.received(), r.streams(), r.waypoints()}},
		{name: "certificates", title: "Certificates", defined: "certificates-and-tokens", tables: []table{r.certificates()}},
		{name: "changes", title: "Changes at a rate", defined: "changes-at-a-rate", tables: []table{r.changesMade(), r.changesCost()}},
		{name: "cycle", title: "A steady mesh with reconnects", defined: "a-steady-mesh-with-reconnects", tables: []table{r.cycle()}},
		{name: "upgrade", title: "The upgrade", defined: "upgrades", tables: []table{r.upgradeStages(), r.upgradeSides()}},
		{name: "disturbed", title: "Churn and faults", defined: "faults-and-churn", tables: r.disturbed()},
		{name: "own", title: "The control plane's own metrics", defined: "what-programs-need", tables: r.own()},
		{name: "instrument", title: "The instrument", defined: "the-instrument", tables: []table{r.instrument(), r.floor()}},
	}
	for _, p := range parts {
		for i, t := range p.tables {
			p.tables[i] = t.withoutUnknown()
		}
	}
	return parts
}

// section returns the section of one run.
func (r *runReport) section(id string, draw *drawer) section {
	charts := &runCharts{runReport: r, id: id, draw: draw}
	drawn := map[string]func() []template.HTML{
		"need": charts.needCharts, "time": charts.timeLines, "latency": charts.curves, "start": charts.starts, "xds": charts.xdsCharts, "upgrade": charts.upgradeCharts,
	}
	s := section{ID: id, Title: runTitle(r.run), Facts: r.warnings.facts(r.facts())}
	for _, p := range r.parts() {
		if p.name == "thresholds" {
			continue // the head of the page has those of all runs
		}
		made := section{ID: id + "-" + p.name, Title: p.title, Defined: p.defined, Tables: r.warnings.grids(p.tables...)}
		if draw := drawn[p.name]; draw != nil {
			made.Charts = draw()
		}
		if len(made.Charts)+len(made.Tables) > 0 {
			s.Parts = append(s.Parts, made)
		}
	}
	return s
}

// runTitle names a run and states what it measured.
func runTitle(run *record.Run) string {
	parts := []string{orAbsent(run.Name) + ":"}
	if pods := run.PodCount(); pods > 0 {
		parts = append(parts, output.Many(pods, "pod")+",", shortKnobs(run)+",")
	}
	return output.Plain(strings.Join(append(parts, orAbsent(string(run.Status))), " "))
}

// disturbed shows churn and faults. The outcomes of the faults and their costs for the
// control plane are two tables, because a page is not wide enough for one.
func (r *runReport) disturbed() []table {
	outcome, cost := split(r.faults(), faultOutcomes)
	return []table{r.churn(), outcome, cost, r.balance()}
}

// bySize draws several runs by size and knobs.
func bySize(runs []record.Run, d *warnings, draw *drawer) section {
	return section{
		ID: "overview", Title: "By size and mode", Defined: "what-one-more-pod-costs",
		Charts: append(sizeCharts(runs, d, draw), runCurves(runs, d, draw)),
	}
}

// details shows the figures of several runs, a row for each.
func details(runs []record.Run, d *warnings) section {
	doc := summary(runs, d, summaryTable(runs, d, timeColumns[:1]), narrowTable(runs, d, needColumns), narrowTable(runs, d, timeColumns[1:]))
	return section{ID: "details", Title: "All runs in figures", Defined: "what-programs-need", Facts: d.facts(doc.facts), Tables: d.grids(doc.tables...)}
}

// counterparts maps the control plane's own counts of the whole run, by their names in
// the record, to our counts of the same thing. Its count of streams is at one moment, and
// ours is of pods that ever had one, so that these are not compared.
var counterparts = []struct {
	own, ours string
	value     func(*record.Run) *int64
}{
	{"totalCertificateRequests", "certificates.attempts", func(r *record.Run) *int64 { return orEmpty(r.Certificates).Attempts }},
	{"totalCertificates", "certificates.issued", func(r *record.Run) *int64 { return orEmpty(r.Certificates).Issued }},
}

// own shows the control plane's own metrics by phase, and its counts compared with ours.
func (r *runReport) own() []table {
	if r.run.Own == nil {
		return nil
	}
	names, last := map[string]bool{}, map[string]float64{}
	byPhase := table{Head: []marked{r.mark("own", "").on("its own")}}
	var phases []map[string]float64
	for _, p := range phasesShown {
		metrics := *r.run.Own.At(p.name)
		if len(metrics) == 0 {
			continue
		}
		phases = append(phases, metrics)
		byPhase.Head = append(byPhase.Head, r.mark("own."+string(p.name), "own").on(string(p.name)))
		for name, v := range metrics {
			names[name], last[name] = true, v
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.HasPrefix(name, "total") || name == "connected" {
			continue
		}
		cells := []string{name}
		for _, metrics := range phases {
			cells = append(cells, entry(metrics, name, func(v *float64) string { return ownText(name, *v) }))
		}
		byPhase.AddPlain(cells...)
	}
	counts := table{Head: plain("counts", "its own", "ours", "difference")}
	add := func(own, ours string, v *int64) {
		theirs, ok := last[own]
		if !ok || v == nil {
			return
		}
		counts.Add(append([]marked{r.mark(ours, "").on(ours)}, plain(count(new(int64(theirs))), count(v), count(new(*v-int64(theirs))))...)...)
	}
	for _, c := range counterparts {
		add(c.own, c.ours, c.value(r.run))
	}
	if r.run.XDS != nil {
		for _, kind := range slices.Sorted(maps.Keys(r.run.XDS.Responses)) {
			add("totalResponses"+kind, "xds.responses."+kind, new(r.run.XDS.Responses[kind]))
		}
	}
	return []table{byPhase, counts}
}

// ownText formats one of the control plane's metrics, whose name ends in its unit.
func ownText(name string, v float64) string {
	switch {
	case strings.HasSuffix(name, "Seconds"):
		return seconds(&v)
	case strings.HasSuffix(name, "Bytes"):
		return bytes(&v)
	case v == float64(int64(v)):
		return count(new(int64(v)))
	default:
		return number(&v)
	}
}
