package report

import (
	"html/template"
	"math"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/analyse/report/chart"
	"scaler.mesh/scaler/pkg/record"
)

// upgradeStages returns a row for each stage of an upgrade: the usage of both control
// planes together, and the starts of the pods that were created meanwhile.
func (r *runReport) upgradeStages() table {
	t := table{Head: plain("upgrade", "length", "pods moved", "replaced", "both: cores, peak", "memory, peak", "pods, peak",
		"certificate p50", "p99", "complete p50", "p99", "lost", "reconnect p50", "max"), Left: 1}
	for _, name := range r.run.UpgradeStages() {
		s := r.run.Upgrade.Stages[name]
		path := "upgrade.stages." + name
		certificate, complete := orEmpty(s.Latencies.Certificate), orEmpty(s.Latencies.CompleteConfiguration)
		lost := certificate.Lost + complete.Lost
		row := []marked{
			r.mark(path, "").on(name), unmarked(seconds(orEmpty(r.run.Phase(record.UpgradePhase(name))).Seconds)),
			unmarked(count(s.Pods)), unmarked(count(s.Replaced)),
			r.mark(path+".peakCores", path).on(number(s.PeakCores)), r.mark(path+".peakMemoryBytes", path).on(bytes(s.PeakMemoryBytes)),
			unmarked(count(s.PeakPods)),
		}
		if s.Pods == nil {
			row = append(row, plain(absent, absent, absent, absent, absent)...)
		} else {
			row = append(row, r.mark(path+".latencies.certificate", path).on(quantile(certificate, certificate.P50)), unmarked(quantile(certificate, certificate.P99)),
				r.mark(path+".latencies.completeConfiguration", path).on(quantile(complete, complete.P50)), unmarked(quantile(complete, complete.P99)), unmarked(count(&lost)))
		}
		back := s.Latencies.Reconnect
		t.Add(append(row, r.mark(path+".latencies.reconnect", path).on(quantile(back, orEmpty(back).P50)), unmarked(lastOf(back)))...)
	}
	return t
}

// upgradeSides returns a row for each control plane in each stage of an upgrade.
func (r *runReport) upgradeSides() table {
	t := table{Head: plain("stage", "control plane", "cores, mean", "peak", "CPU time", "memory, peak", "end", "responses",
		"endpoint added p50", "p99", "stale, mean", "stale p50", "p99", "max"), Left: 2}
	for _, name := range r.run.UpgradeStages() {
		s := r.run.Upgrade.Stages[name]
		for _, of := range []struct {
			path    string
			version record.UpgradeVersion
			side    *record.UpgradeSide
		}{{"from", r.run.Upgrade.From, s.From}, {"to", r.run.Upgrade.To, s.To}} {
			if of.side == nil {
				continue
			}
			path := "upgrade.stages." + name + "." + of.path
			usage, added, removed := orEmpty(of.side.ControlPlane), of.side.Push[record.EndpointAdd], of.side.Push[record.EndpointRemove]
			cores, memory := orEmpty(usage.Cores), orEmpty(usage.MemoryBytes)
			t.Add(unmarked(name), r.mark(path+".controlPlane", "").on(of.version.Version),
				unmarked(number(cores.Mean)), unmarked(number(cores.Peak)), unmarked(seconds(usage.CPUSeconds)),
				unmarked(bytes(memory.Peak)), unmarked(bytes(memory.End)), unmarked(count(of.side.Responses)),
				r.mark(path+".push", path).on(quantile(added, orEmpty(added).P50)), unmarked(quantile(added, orEmpty(added).P99)),
				r.mark(path+".stale", path).on(number(of.side.Stale)),
				unmarked(quantile(removed, orEmpty(removed).P50)), unmarked(quantile(removed, orEmpty(removed).P99)), unmarked(quantile(removed, orEmpty(removed).Max)))
		}
	}
	return t
}

// upgraded states the needs of the runs' upgrades.
func upgraded(runs []record.Run, d *warnings) []marked {
	var all []marked
	for i := range runs {
		if text := runs[i].UpgradeSentence(); text != "" {
			all = append(all, d.mark(&runs[i], "upgrade.room", "").on(text))
		}
		if text := runs[i].UpgradeWaves(); text != "" {
			all = append(all, unmarked(text))
		}
	}
	return all
}

// upgradeCharts draws both control planes during an upgrade, beginning with the steady
// phase before it.
func (r *runCharts) upgradeCharts() []template.HTML {
	u := r.run.Upgrade
	if u == nil || u.To.Program == "" {
		return nil
	}
	at := slices.IndexFunc(r.run.Phases, func(p record.Phase) bool { return p.Name == record.PhaseSteady })
	moments, err := r.run.Timeline()
	if at < 0 || err != nil || len(moments) == 0 {
		return nil // the charts over the whole run say why
	}
	upgrade := *r.run
	upgrade.Phases = slices.Clone(r.run.Phases[at:])
	for i := range upgrade.Phases {
		p := &upgrade.Phases[i]
		p.Name = record.PhaseName(strings.TrimPrefix(string(p.Name), record.UpgradePrefix))
	}
	since := slices.IndexFunc(moments, func(m record.Moment) bool { return !m.Time.Before(upgrade.Phases[0].Start) })
	if since < 0 {
		return nil
	}
	of := &runCharts{runReport: &runReport{run: &upgrade, warnings: r.warnings}, id: r.id, draw: r.draw}
	programs := []record.UpgradeVersion{u.From, u.To}
	var drawn []template.HTML
	for _, c := range []struct {
		id, title, about string
		room             string // the figure of the whole upgrade
		format           func(*float64) string
		ticks            chart.Ticks
		of               func(record.Load) float64
	}{
		{"cores", "Cores of both control planes", "Means over a second each.", "upgrade.room.cores", number, chart.Number, func(l record.Load) float64 { return l.Cores }},
		{"memory", "Resident memory of both control planes", "", "upgrade.room.memoryBytes", bytes, chart.Bytes, func(l record.Load) float64 { return l.MemoryBytes }},
	} {
		lines := []timeLine{{"both together", chart.Style{Hue: 6, Dash: 2}, func(m, _ *record.Moment) float64 {
			return c.of(m.Programs[u.From.Program]) + c.of(m.Programs[u.To.Program])
		}}}
		for i, program := range programs {
			lines = append(lines, timeLine{program.Version, chart.Style{Hue: i, Dash: i}, func(m, _ *record.Moment) float64 {
				if l, ok := m.Programs[program.Program]; ok {
					return c.of(l)
				}
				return math.NaN()
			}})
		}
		l := of.timeChart(chart.Chart{
			ID: r.id + "-upgrade-" + c.id, Title: c.title, About: c.about, LimitedBy: r.links([]string{c.room}),
		}, c.format, c.ticks, lines, moments[since:])
		l.X.Name = "seconds since the steady phase began"
		drawn = append(drawn, r.draw.draw(l))
	}
	return drawn
}
