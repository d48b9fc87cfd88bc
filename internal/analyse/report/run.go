package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// runReport makes the document of one run.
type runReport struct {
	run      *record.Run
	warnings warnings
}

func runDocument(run *record.Run) document {
	r := runReport{run: run}
	r.warnings.add(run)
	d := document{
		title:  fmt.Sprintf("%s: %s", orAbsent(run.Name), orAbsent(string(run.Status))),
		facts:  r.facts(),
		tables: []table{headline(&r.warnings, run)},
		limits: r.warnings.limits(false),
	}
	for _, p := range r.parts() {
		title := p.title
		for _, t := range p.tables {
			if len(t.Rows) > 0 {
				t.Title, title = title, ""
				d.tables = append(d.tables, t)
			}
		}
	}
	return d
}

// mark returns the marks of the figure at path; see warnings.mark.
func (r *runReport) mark(path, within string) marks { return r.warnings.mark(r.run, path, within) }

func (r *runReport) facts() facts {
	asked, env := r.run.Scenario, r.run.Environment
	mesh := fmt.Sprintf("%s, %s, %s; %s, seed %d", output.Many(r.run.PodCount(), "pod"), output.Many(r.run.ServiceCount(), "service"),
		output.Many(r.run.NamespaceCount(), "namespace"), topologyText(r.run), asked.Mesh.Seed)
	knobs := env.Knobs.Text()
	if mode := r.run.ModeName(); mode != "" {
		knobs += " (mode " + mode + ")"
	}
	var all facts
	all.add("control plane", controlPlaneText(env.ControlPlane))
	if n := env.ControlPlane.Processors; n > 0 { // not part of controlPlaneText: it depends on the speed of the machine, and would distinguish equal runs
		all.add("CPU quota", fmt.Sprintf("%.3g processors of this machine in the modelled time", n))
	}
	if text := dataplaneText(r.run); text != "" {
		if p := r.run.Proxies; p != nil {
			text = output.Many(p.Nodes, "node") + ": " + text
		}
		all.add("data plane", text)
	}
	all.add("settings", settingsText(env.ControlPlane.Settings))
	all = append(all, facts{
		{"knobs", unmarked(knobs)},
		{"mesh", unmarked(mesh)},
		{"arrival", r.mark("arrival", "").on(arrivalOf(r.run) + r.arrivalText())},
		{"xds", unmarked(orAbsent(asked.Mesh.Sidecars.XDS))},
		{"machine", unmarked(machineText(env))},
		{"started", unmarked(r.startedText())},
	}...)
	if text := processorText(env.Processor); text != "" {
		all = append(all, fact{"processor", r.mark("environment.processor", "").on(text)})
	}
	if m := r.run.Mesh; m != nil {
		all = append(all, fact{"captured mesh", unmarked(meshText(r.run))}, fact{"not checked", unmarked(notCheckedText(m))})
		all.add("not reproduced", notReproducedText(m))
	}
	all.add("dilation", dilationText(r.run))
	if env.Dilation != nil && env.Dilation.Auto != nil {
		all.add("dilation chosen", choiceText(r.run))
	}
	if env.Priority != nil {
		all.add("priority", env.Priority.Text())
	}
	all.add("start delay", r.run.StartDelay())
	if c := r.run.Certificates; c != nil && c.Storm != nil {
		all.add("certificate storm bound by", c.Storm.BoundSentence())
	}
	if text := r.run.UpgradeSentence(); text != "" {
		all = append(all, fact{"upgrade", r.mark("upgrade.room", "").on(text)})
	}
	all.add("waves", r.run.UpgradeWaves())
	all.add("reason", r.run.Reason)
	return all
}

func controlPlaneText(c record.ControlPlaneSource) string {
	parts := []string{strings.TrimSpace(orAbsent(c.Name) + " " + c.Version)}
	if c.ProxyVersion != "" {
		parts = append(parts, "sidecars "+c.ProxyVersion)
	}
	if c.Replicas > 0 {
		parts = append(parts, output.Many(c.Replicas, "replica"))
	}
	if c.GOMAXPROCS > 0 {
		parts = append(parts, fmt.Sprintf("GOMAXPROCS %d", c.GOMAXPROCS))
	}
	if c.MemoryLimitBytes > 0 {
		limit := fmt.Sprintf("memory limit of %d MiB as a setting", c.MemoryLimitBytes>>20)
		if c.MemoryLimitEnforced {
			limit = fmt.Sprintf("memory limited to %d MiB", c.MemoryLimitBytes>>20)
		}
		parts = append(parts, limit)
	}
	return strings.Join(parts, ", ")
}

// dilationText states the factor by which time was slowed down; "" if it was not.
func dilationText(r *record.Run) string {
	k := r.Slowdown()
	if k == 1 {
		return ""
	}
	return fmt.Sprintf("time slowed down %g times; figures are those of the modelled processors", k)
}

// choiceText states how the factor of a dilation was chosen.
func choiceText(r *record.Run) string {
	c, k := r.Environment.Dilation.Auto, r.Slowdown()
	machine := output.Many(c.Processors, "processor")
	if c.Speed > 0 {
		machine += fmt.Sprintf(" of speed %.3g", c.Speed)
	}
	text := fmt.Sprintf("%g, by an expected need of %.3g reference processors and %s: while pods come for %s, the control plane needs %s of processor time, the cluster %s and scaler %s",
		k, c.Cores, machine, seconds(&c.Seconds), seconds(&c.ControlPlaneSeconds), seconds(&c.ClusterSeconds), seconds(&c.InstrumentSeconds))
	if again := c.Restart; again != nil {
		text += fmt.Sprintf("; started again at %s, because with %g %s waited for processors for %s of %s, and the bound is %s",
			again.At.Format(time.RFC3339), again.Factor, again.Component, percent(&again.Share), again.Phase, percent(&again.Bound))
	}
	return text
}

func settingsText(settings map[string]string) string { return output.Pairs(settings, " ") }

func topologyText(r *record.Run) string {
	text := orAbsent(r.Topology())
	if parts := r.Parts.String(); parts != "" {
		text += "; " + parts
	}
	return text
}

// meshText describes the captured mesh of a run.
func meshText(r *record.Run) string {
	m := r.Mesh
	text := fmt.Sprintf("%s (%s), scale %d: %s, %s, %s without sidecars", r.Scenario.Mesh.File, m.Digest, r.Scenario.Mesh.Scale.First(),
		output.Many(m.Endpoints, "endpoint"), output.Many(m.Gateways, "gateway"), output.Many(m.Outside, "pod"))
	if m.OtherRevisions > 0 {
		text += fmt.Sprintf(", %s of other revisions than %s", output.Many(m.OtherRevisions, "pod"), r.Scenario.Mesh.Revision)
	}
	return text
}

// notReproducedText lists the parts of the captured cluster that the run did not have as they were.
func notReproducedText(m *record.Mesh) string {
	var parts []string
	for _, n := range m.NotReproduced {
		parts = append(parts, n.What)
	}
	return strings.Join(parts, ", ")
}

// notCheckedText lists the parts of a captured mesh that are not checked.
func notCheckedText(m *record.Mesh) string {
	var parts []string
	for _, n := range m.NotChecked {
		part := string(n.What)
		if n.Count > 0 {
			part += fmt.Sprintf(" (%d)", n.Count)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// arrivalOf describes how pods arrive, in the syntax of the flag.
func arrivalOf(r *record.Run) string {
	a := r.Scenario.Load.Arrival
	switch {
	case r.PodCount() == 0: // it ended before that was known
		return absent
	case a.Rate > 0:
		return "one by one at " + a.String()
	}
	return a.String()
}

func (r *runReport) arrivalText() string {
	a := r.run.Arrival
	if a == nil {
		return ""
	}
	var parts []string
	if a.OfferedPerSecond != nil {
		parts = append(parts, "offered "+number(a.OfferedPerSecond))
	}
	if a.AchievedPerSecond != nil {
		parts = append(parts, "achieved "+number(a.AchievedPerSecond))
	}
	if parts == nil {
		return ""
	}
	text := ": " + strings.Join(parts, ", ") + " pods/s"
	if a.StepsLateSeconds != nil {
		text += ", bursts done at most " + seconds(a.StepsLateSeconds) + " after they were due"
	}
	return text
}

func machineText(env record.Environment) string {
	var parts []string
	if env.CPUs > 0 {
		parts = append(parts, output.Many(env.CPUs, "CPU"))
	}
	if env.MemoryBytes > 0 {
		parts = append(parts, bytes(new(float64(env.MemoryBytes))))
	}
	for _, p := range []struct{ name, version string }{
		{"kernel", env.Kernel}, {"Kubernetes", env.Kubernetes}, {"KWOK", env.Kwok}, {"scaler", env.Scaler},
	} {
		if p.version != "" {
			parts = append(parts, p.name+" "+p.version)
		}
	}
	return orAbsent(strings.Join(parts, ", "))
}

// processorText states the processor's model, its speed and what the hypervisor took; "" where
// nothing is known.
func processorText(p *record.Processor) string {
	if p == nil {
		return ""
	}
	var parts []string
	if p.Model != "" {
		parts = append(parts, p.Model)
	}
	add := func(when string, s *record.Speed) {
		if s != nil {
			parts = append(parts, fmt.Sprintf("%.3g reference processors %s (%.3g to %.3g)", s.Speed, when, s.Low, s.High))
		}
	}
	add("before the run", p.Before)
	if s, sampled := p.Phases[record.PhaseRollout]; sampled {
		add("in the rollout", &s)
	} else {
		add("in the run", p.Run)
	}
	var steal []string
	for _, phase := range phasesShown {
		if share, known := p.Steal[phase.name]; known && share >= 0.001 {
			steal = append(steal, fmt.Sprintf("%s in %s", percent(&share), phase.name))
		}
	}
	if steal != nil {
		parts = append(parts, "stolen by others on its host: "+strings.Join(steal, ", "))
	}
	return strings.Join(parts, "; ")
}

func (r *runReport) startedText() string {
	if r.run.Started.IsZero() {
		return absent
	}
	text := r.run.Started.Format(time.RFC3339)
	if r.run.Finished == nil {
		return text + ", end unknown"
	}
	return text + ", " + seconds(new(r.run.Finished.Sub(r.run.Started).Seconds())) + " in all"
}

func (r *runReport) phases() table {
	t := table{Head: plain("phase", "ended by", "length"), Left: 1}
	for _, p := range r.run.Phases {
		t.Add(r.mark("phases."+string(p.Name), "").on(string(p.Name)), unmarked(orAbsent(string(p.EndedBy))), unmarked(seconds(p.Seconds)))
	}
	return t
}

// differences lists the resources that sidecars held otherwise than expected at the end of phases that ended by
// quiescence.
func (r *runReport) differences() table {
	t := table{Head: plain("at rest, but not as expected", "resource", "sidecars", "explained by", "one sidecar", "difference"), Left: 6}
	for _, p := range r.run.Phases {
		name := string(p.Name)
		for _, d := range p.Differences {
			t.AddPlain(name, d.Type+" "+d.Resource, fmt.Sprint(d.Sidecars), cmp.Or(d.Object, "nothing known"), d.Example, d.Detail)
		}
		if p.MoreDifferences > 0 {
			t.AddPlain(name, fmt.Sprintf("and %d more", p.MoreDifferences), "", "", "", "")
		}
	}
	return t
}

// column is one figure of a table with a single row: the column's heading, the
// figure's path below that of the table, and its text.
type column struct{ head, path, text string }

// oneRow returns a table of the record's figures at path, each with its mark.
func (r *runReport) oneRow(title, path, name string, columns []column) table {
	t := table{Head: plain(title)}
	row := []marked{r.mark(path, "").on(name)}
	for _, c := range columns {
		t.Head = append(t.Head, unmarked(c.head))
		row = append(row, r.mark(path+"."+c.path, path).on(c.text))
	}
	t.Add(row...)
	return t
}

func (r *runReport) pods() table {
	p := r.run.Pods
	if p == nil {
		p = &record.Pods{Requested: r.run.PodCount()}
	}
	return r.oneRow("pods", "pods", "at end of rollout", columnsOf(record.PodFigures, p))
}

func (r *runReport) xds() table {
	t := table{Head: plain("xds", "responses", "bytes")}
	x := r.run.XDS
	if x == nil {
		return t
	}
	types := map[string]bool{}
	for name := range x.Responses {
		types[name] = true
	}
	for name := range x.Bytes {
		types[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		t.Add(unmarked(name), r.mark("xds.responses."+name, "").on(entry(x.Responses, name, count)),
			r.mark("xds.bytes."+name, "").on(entry(x.Bytes, name, func(n *int64) string { return bytes(new(float64(*n))) })))
	}
	return t
}

// received shows the rates at which sidecars received responses, by phase.
func (r *runReport) received() table {
	x := r.run.XDS
	if x == nil || x.Rates == nil {
		return table{}
	}
	t := table{Head: plain("received")}
	var all []*record.Rates
	for _, phase := range record.FigurePhases {
		if of := *x.Rates.At(phase); of != nil {
			t.Head = append(t.Head, r.mark("xds.rates."+string(phase), "").on(string(phase)))
			all = append(all, of)
		}
	}
	for _, f := range record.RateFigures {
		row := plain(f.Label)
		for _, of := range all {
			row = append(row, unmarked(figureText(f.Unit, f.Of(of))))
		}
		t.Add(row...)
	}
	return t
}

// entry formats the value of a map at name; absent if there is none.
func entry[T any](m map[string]T, name string, print func(*T) string) string {
	v, ok := m[name]
	if !ok {
		return absent
	}
	return print(&v)
}

func (r *runReport) streams() table {
	x := r.run.XDS
	if x == nil {
		return table{}
	}
	return r.oneRow("streams", "xds", ofProxies("all sidecars", r.run), columnsOf(record.StreamFigures, x, "attempts", "refusals", "reconnects"))
}

// waypoints shows the configuration that each waypoint holds; it is empty if there are
// none.
func (r *runReport) waypoints() table {
	p := r.run.Proxies
	if p == nil || p.Waypoints == nil {
		return table{}
	}
	of := "one for each " + r.run.Waypoints()
	if r.run.Mesh != nil { // a captured one
		of = "of the captured mesh"
	}
	return r.oneRow("waypoints", "proxies.waypoints", of, columnsOf(record.WaypointFigures, p.Waypoints))
}

func (r *runReport) certificates() table {
	c := r.run.Certificates
	if c == nil {
		return table{}
	}
	return r.oneRow("certificates", "certificates", ofProxies("all sidecars", r.run), columnsOf(record.CertificateFigures, c))
}
