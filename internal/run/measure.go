package run

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// measurement computes the figures of a run whose phases have ended.
type measurement struct {
	*run
	document *record.Run     // takes the figures
	windows  []phases.Window // of the phases
}

// measure computes the figures of a run and puts them into its record. It is called
// when the sidecars have been stopped and the recorder still runs.
func (r *run) measure(ctx context.Context) error {
	windows := r.timeline.Windows()
	if len(windows) == 0 || isTooFast(r.cause()) != nil { // what is started again is not recorded
		return nil
	}
	begin := time.Now()
	r.countdown.enter(stageFinishing, begin)
	document := r.journal.Run()
	err := measurement{r, &document, windows}.measureAll(ctx)
	r.journal.Update(func(run *record.Run) {
		document.Warnings = run.Warnings // which grew meanwhile
		*run = document
	})
	if err != nil {
		return fmt.Errorf("computing the figures: %w", err)
	}
	r.progress.say(fmt.Sprintf("figures: computed in %.1f s", time.Since(begin).Seconds()))
	return r.journal.Save()
}

// measureAll computes the counts of sidecars, the usage in each phase, and the warnings about both.
func (m measurement) measureAll(ctx context.Context) error {
	if err := m.measureSidecars(); err != nil {
		return err
	}
	m.awaitSeries(ctx)
	m.measureSteal()
	m.measureSpeeds()
	if err := m.measureUsage(ctx); err != nil {
		return err
	}
	if err := m.measureRest(); err != nil {
		return err
	}
	m.measureCycle()
	if err := m.measureFaults(ctx); err != nil {
		return err
	}
	if err := m.upgrading.Measure(m.document, m.sampler, m.warnOfSaturation); err != nil {
		return err
	}
	m.awaitKubelets(ctx)
	if err := m.measureReal(); err != nil {
		return err
	}
	if err := m.crossCheck(ctx); err != nil {
		return err
	}
	if err := m.measureInstrument(ctx); err != nil {
		return err
	}
	var limiter float64
	if m.dilation != nil {
		limiter = m.dilation.LimiterWaitSeconds
	}
	for _, w := range (symptoms{
		limiter: limiter,
		lags:    m.observed.lags, counts: m.fleet.Workers.Counts(), xds: m.document.XDS,
		slowdown: m.spec.dilation(), starts: m.observed.latencies, latencies: &m.document.Latencies,
	}).warnings() {
		m.journal.Warn(w)
	}
	for _, w := range m.document.UnknownLatencies() {
		m.journal.Warn(w)
	}
	return nil
}

// awaitSeries returns when the time series contain what is computed from them, and warns when
// they do not. The sidecars have ended: what they caused is counted by the control plane, after
// the last phase too, where certificates are renewed and changes are taken back.
func (m measurement) awaitSeries(ctx context.Context) {
	if m.upgrading != nil {
		return // the time series that are read ended long before
	}
	if err := m.recorder.Scraped(ctx, time.Now()); err != nil {
		m.journal.Warn(record.Warning{About: "own", Reason: record.ReasonSeriesEnd, Detail: output.FirstLine(err)})
	}
}

// measureUsage computes the usage of the programs, and the control plane's own metrics, by phase.
func (m measurement) measureUsage(ctx context.Context) error {
	if m.usageKnown() {
		m.document.ControlPlane = &record.ByPhase[*record.Usage]{}
	}
	m.document.Cluster = map[string]record.ByPhase[*record.Usage]{}
	m.document.Own = &record.Own{Note: m.controlPlaneName() + "'s own metrics over the same windows"}
	for i, w := range m.windows {
		if m.dilation != nil && slices.Contains(m.dilation.RealTime, w.Name) {
			m.sampler.RealTime(w.Begin, w.End)
		}
		m.progress.say(fmt.Sprintf("computing the figures of %s, phase %d of %d", w.Name, i+1, len(m.windows)))
		if err := m.measurePhase(ctx, w); err != nil {
			return fmt.Errorf("reading the figures of %s: %w", w.Name, err)
		}
	}
	return nil
}

// measurePhase computes the usage of every component over one phase.
func (m measurement) measurePhase(ctx context.Context, w phases.Window) error {
	if m.document.Own.At(w.Name) == nil {
		return nil // settle belongs to no figure
	}
	if m.usageKnown() {
		if err := m.measureControlPlane(ctx, w); err != nil {
			return err
		}
	}
	if err := m.measureReplicas(ctx, w); err != nil {
		return err
	}
	if err := m.measureInstances(ctx, w); err != nil {
		return err
	}
	if err := m.measureCluster(ctx, w); err != nil {
		return err
	}
	if err := m.measureOwn(ctx, w); err != nil {
		return err
	}
	if err := m.checkWatches(ctx, w); err != nil {
		return err
	}
	return m.checkScrapes(ctx, w)
}

// measureControlPlane computes the usage of a control plane that runs here over one
// phase.
func (m measurement) measureControlPlane(ctx context.Context, w phases.Window) error {
	slot := m.document.ControlPlane.At(w.Name)
	usage, err := m.recorder.Figures(ctx, m.sampler, m.controlPlaneName(), w.Begin, w.End)
	if err != nil {
		return err
	}
	*slot = measure.UsageOf(usage)
	if w.Name == record.PhaseSteady {
		setCollected(*slot, m.observed.live)
	}
	m.warnOfUsage("controlPlane."+string(w.Name), w.Name, usage)
	source := m.document.Environment.ControlPlane
	source.Processors = cmp.Or(m.usableIn(w), source.Processors)
	if warning := limitWarning(source, m.document.SlowdownIn(w.Name), w.Name, usage); warning != nil {
		m.journal.Warn(*warning)
	}
	return nil
}

// restPart is the least length of the parts of a phase at rest of which the quietest counts, three of them at most.
const restPart = 10 * time.Second

// measureRest puts into the record what the control plane used at rest in the phases that were not slowed down and took their time.
func (m measurement) measureRest() error {
	if m.dilation == nil || !m.usageKnown() {
		return nil
	}
	for _, w := range m.windows {
		whole := slices.ContainsFunc(m.document.Phases, func(p record.Phase) bool { return p.Name == w.Name && p.EndedBy == record.EndedByDuration })
		if !whole || !slices.Contains(m.dilation.RealTime, w.Name) {
			continue
		}
		length := w.End.Sub(w.Begin)
		n := min(max(1, length/max(restPart, m.spec.slowed(measure.SampleInterval))), 3) // or a part would have no reading of its own
		least := math.Inf(1)
		for i := range n {
			usage, err := m.sampler.Figures(m.controlPlaneName(), w.Begin.Add(i*length/n), w.Begin.Add((i+1)*length/n))
			if err != nil {
				return err
			}
			least = min(least, usage.CoresMean)
		}
		if m.document.Environment.Dilation.AtRest == nil {
			m.document.Environment.Dilation.AtRest = map[record.PhaseName]float64{}
		}
		m.document.Environment.Dilation.AtRest[w.Name] = least
	}
	return nil
}

// limitWarning warns that a control plane used all processors that it could use,
// where its saturation does not say so; nil where it did not. Cores were measured on this
// machine, and its limit is in the modelled time.
func limitWarning(source record.ControlPlaneSource, slowdown float64, phase record.PhaseName, u measure.Usage) *record.Warning {
	peak := slowdown * u.CoresPeak
	if u.Saturation != nil && *u.Saturation > record.Saturated || !source.AtLimit(peak) {
		return nil
	}
	return &record.Warning{
		About: "controlPlane." + string(phase), Reason: record.ReasonAtLimit, Component: source.Name, Phase: phase,
		Values: map[string]float64{"peakCores": peak, "maxProcs": source.Limit()},
	}
}

// measureCluster computes the usage of the cluster's programs over one phase.
func (m measurement) measureCluster(ctx context.Context, w phases.Window) error {
	for _, c := range m.components() {
		usage, err := m.recorder.Figures(ctx, m.sampler, c.Name, w.Begin, w.End)
		if err != nil {
			return err
		}
		byPhase := m.document.Cluster[c.Name]
		*byPhase.At(w.Name) = measure.UsageOf(usage)
		m.document.Cluster[c.Name] = byPhase
	}
	if c, share := waitingCluster(m.document, w.Name); c != "" {
		m.journal.Warn(record.Warning{
			About: "cluster." + c + "." + string(w.Name), Reason: record.ReasonSaturated, Component: c, Phase: w.Name,
			Values: map[string]float64{"share": share},
		})
	}
	return nil
}

// measureOwn evaluates the control plane's own metrics over one phase.
func (m measurement) measureOwn(ctx context.Context, w phases.Window) error {
	own := map[string]float64{}
	seconds := fmt.Sprintf("%dms", w.End.Sub(w.Begin).Milliseconds())
	for _, metric := range m.driver.Metrics.Phase {
		value, ok, err := m.recorder.Value(ctx, strings.ReplaceAll(metric.Expr, "$window", seconds), w.End)
		if err != nil {
			return err
		}
		if ok {
			own[metric.Name] = value
		}
	}
	*m.document.Own.At(w.Name) = own
	if w.Name == record.PhaseProbe {
		m.document.Latencies.Explained = explainedPush(m.document.Latencies.Push, m.driver.Metrics.Push, own)
	}
	return nil
}

// checkScrapes warns of scrapes that were missed in a phase.
func (m measurement) checkScrapes(ctx context.Context, w phases.Window) error {
	warn := func(component string, missed, total int) {
		if missed > 0 {
			m.journal.Warn(record.Warning{
				About: "own." + string(w.Name), Reason: record.ReasonScrapeGap, Component: component, Phase: w.Name,
				Values: map[string]float64{"missed": float64(missed), "scrapes": float64(total)},
			})
		}
	}
	for _, job := range m.jobs {
		if job == m.controlPlaneName() && m.replicas != nil {
			continue
		}
		missed, total, err := m.recorder.Gaps(ctx, job, w.Begin, w.End)
		if err != nil {
			return err
		}
		warn(job, missed, total)
	}
	if m.replicas == nil {
		return nil
	}
	for _, name := range m.replicas.Throughout(w.Begin, w.End) {
		missed, total, err := m.recorder.InstanceGaps(ctx, m.controlPlaneName(), name, w.Begin, w.End)
		if err != nil {
			return err
		}
		warn(name, missed, total)
	}
	return nil
}

// explainedPush returns the share of the pushes that is explained by the stages that the control
// plane measures itself; nil if it does not measure one of them, or no change was
// followed.
func explainedPush(pushes map[record.ChangeKind]*record.Latency, stages []string, own map[string]float64) *record.Explained {
	var e record.Explained
	var count int64
	for _, push := range pushes {
		if push.Mean != nil {
			e.PushSeconds += *push.Mean * float64(push.Count)
			count += push.Count
		}
	}
	for _, stage := range stages {
		seconds, ok := own[stage]
		if !ok {
			return nil
		}
		e.OwnSeconds += seconds
	}
	if len(stages) == 0 || e.PushSeconds == 0 {
		return nil
	}
	e.PushSeconds /= float64(count)
	e.Share = e.OwnSeconds / e.PushSeconds
	return &e
}

// waitingCluster returns the program of the cluster that waited for processors for the
// greatest share of a phase; "" where none did for long, and where the control plane
// waited too: its own warning reaches the figures of all.
func waitingCluster(run *record.Run, phase record.PhaseName) (name string, share float64) {
	if run.ControlPlane != nil {
		if u := *run.ControlPlane.At(phase); u != nil && u.Saturation != nil && *u.Saturation > record.Saturated {
			return "", 0
		}
	}
	share = record.Saturated
	for _, c := range slices.Sorted(maps.Keys(run.Cluster)) {
		by := run.Cluster[c]
		if u := *by.At(phase); u != nil && u.Saturation != nil && *u.Saturation > share {
			name, share = c, *u.Saturation
		}
	}
	return name, share
}

// measureFaults computes what the faults cost.
func (m measurement) measureFaults(ctx context.Context) error {
	return m.injector.Ended(func(index int, fault scenario.Fault, begin, end time.Time, l *fleet.Latencies) error {
		section := &m.document.Faults[index]
		if m.usageKnown() {
			usage, err := m.recorder.Figures(ctx, m.sampler, m.controlPlaneName(), begin, end)
			if err != nil {
				return fmt.Errorf("reading the figures of %s: %w", fault.Name(), err)
			}
			section.ControlPlane = measure.UsageOf(usage)
			m.warnOfUsage(fmt.Sprintf("faults.%d.controlPlane", index), record.PhaseName(fault.Phase), usage)
		}
		return l.Save(m.journal, fmt.Sprintf("faults.%d.", index), &section.Latencies)
	})
}

// warnOfUsage warns if the control plane was saturated or restarted in a phase.
func (m measurement) warnOfUsage(about string, phase record.PhaseName, u measure.Usage) {
	m.warnOfSaturation(about, m.controlPlaneName(), phase, u)
	if u.Restarts > 0 {
		m.journal.Warn(record.Warning{
			About: about, Reason: record.ReasonRestarted, Component: m.controlPlaneName(), Phase: phase, Values: map[string]float64{"restarts": float64(u.Restarts)},
		})
	}
}

// warnOfSaturation warns if a program waited for processors for a large share of a phase.
func (m measurement) warnOfSaturation(about, program string, phase record.PhaseName, u measure.Usage) {
	if u.Saturation != nil && *u.Saturation > record.Saturated {
		m.journal.Warn(record.Warning{
			About: about, Reason: record.ReasonSaturated, Component: program, Phase: phase, Values: map[string]float64{"share": *u.Saturation},
		})
	}
}
