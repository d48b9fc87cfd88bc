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

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/run/faults"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// measurement holds the inputs of all figures of a run that has ended, and the record that they are put into.
type measurement struct {
	document *record.Run     // takes the figures
	windows  []phases.Window // of the phases
	journal  *journal.Journal
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
	err := r.measureAll(ctx, measurement{document: &document, windows: windows, journal: r.journal})
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
func (r *run) measureAll(ctx context.Context, m measurement) error {
	if err := r.sidecarFigures(m).measure(); err != nil {
		return err
	}
	if err := r.awaitSeries(ctx, m); err != nil {
		return err
	}
	r.measureSteal(m)
	r.measureSpeeds(m)
	usage := r.usageFigures(m)
	if err := usage.measure(ctx, r.progress.say); err != nil {
		return err
	}
	if err := usage.measureRest(); err != nil {
		return err
	}
	for _, do := range []func(context.Context) error{
		func(context.Context) error { return m.measureCycle() },
		func(ctx context.Context) error { return usage.measureFaults(ctx, r.injector) },
		func(context.Context) error { return r.upgrading.Measure(m.document, r.sampler, usage.warnOfSaturation) },
		func(ctx context.Context) error { return r.awaitKubelets(ctx, m) },
		func(context.Context) error { return r.realFigures(m).measure() },
		func(ctx context.Context) error { return r.crossCheck(ctx, m) },
		r.instrumentFigures(m).measure,
	} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	var limiter float64
	if r.dilation != nil {
		limiter = r.dilation.LimiterWaitSeconds
	}
	for _, w := range (symptoms{
		limiter: limiter,
		lags:    r.observed.lags, counts: r.fleet.Workers.Counts(), xds: m.document.XDS,
		slowdown: r.spec.dilation(), starts: r.observed.latencies, latencies: &m.document.Latencies,
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
func (r *run) awaitSeries(ctx context.Context, m measurement) error {
	if r.upgrading != nil {
		return nil // what is read of the time series ended long before
	}
	if err := r.recorder.Scraped(ctx, time.Now()); err != nil {
		m.journal.Warn(record.Warning{About: "own", Reason: record.ReasonSeriesEnd, Detail: output.FirstLine(err)})
	}
	return nil
}

// usageFigures computes the usage of the programs, and the control plane's own metrics, by phase.
type usageFigures struct {
	measurement
	instances  instances
	components []place.Component // of the cluster
	jobs       []string          // that are scraped
	metrics    controlplane.Metrics
	recorder   *measure.Recorder
	sampler    *measure.Sampler
	dilation   *record.Dilation            // nil where time was not slowed down
	live       *float64                    // bytes of the control plane's heap at the end of steady; nil = not known
	interval   time.Duration               // between two readings of processes
	usable     func(phases.Window) float64 // processors that a replica could use, in the modelled time; 0 = all that it has
	allStreams bool                        // all streams are of simulated sidecars, which are counted
}

func (r *run) usageFigures(m measurement) usageFigures {
	return usageFigures{
		measurement: m, instances: r.instances(), components: r.components(), jobs: r.jobs, metrics: r.driver.Metrics,
		recorder: r.recorder, sampler: r.sampler, dilation: r.dilation, live: r.observed.live, interval: r.spec.slowed(measure.SampleInterval), usable: r.usableIn, allStreams: r.spec.Mesh.Sidecars.Real == 0,
	}
}

// measure computes them for all phases.
func (m usageFigures) measure(ctx context.Context, say func(string)) error {
	if m.instances.usageKnown() {
		m.document.ControlPlane = &record.ByPhase[*record.Usage]{}
	}
	m.document.Cluster = map[string]record.ByPhase[*record.Usage]{}
	m.document.Own = &record.Own{Note: m.instances.name + "'s own metrics over the same windows"}
	for i, w := range m.windows {
		if m.dilation != nil && slices.Contains(m.dilation.RealTime, w.Name) {
			m.sampler.RealTime(w.Begin, w.End)
		}
		say(fmt.Sprintf("computing the figures of %s, phase %d of %d", w.Name, i+1, len(m.windows)))
		if err := m.measurePhase(ctx, w); err != nil {
			return fmt.Errorf("reading the figures of %s: %w", w.Name, err)
		}
	}
	return nil
}

// measurePhase computes the usage of every component over one phase.
func (m usageFigures) measurePhase(ctx context.Context, w phases.Window) error {
	if m.document.Own.At(w.Name) == nil {
		return nil // settle belongs to no figure
	}
	if m.instances.usageKnown() {
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
func (m usageFigures) measureControlPlane(ctx context.Context, w phases.Window) error {
	slot := m.document.ControlPlane.At(w.Name)
	usage, err := m.recorder.Figures(ctx, m.sampler, m.instances.name, w.Begin, w.End)
	if err != nil {
		return err
	}
	*slot = measure.UsageOf(usage)
	if w.Name == record.PhaseSteady {
		setCollected(*slot, m.live)
	}
	m.warnOfUsage("controlPlane."+string(w.Name), w.Name, usage)
	source := m.document.Environment.ControlPlane
	source.Processors = cmp.Or(m.usable(w), source.Processors)
	if warning := limitWarning(source, m.document.SlowdownIn(w.Name), w.Name, usage); warning != nil {
		m.journal.Warn(*warning)
	}
	return nil
}

// restPart is the least length of the parts of a phase at rest of which the quietest counts, three of them at most.
const restPart = 10 * time.Second

// measureRest puts into the record what the control plane used at rest in the phases that were not slowed down and took their time.
func (m usageFigures) measureRest() error {
	if m.dilation == nil || !m.instances.usageKnown() {
		return nil
	}
	for _, w := range m.windows {
		whole := slices.ContainsFunc(m.document.Phases, func(p record.Phase) bool { return p.Name == w.Name && p.EndedBy == record.EndedByDuration })
		if !whole || !slices.Contains(m.dilation.RealTime, w.Name) {
			continue
		}
		length := w.End.Sub(w.Begin)
		n := min(max(1, length/max(restPart, m.interval)), 3) // or a part would have no reading of its own
		least := math.Inf(1)
		for i := range n {
			usage, err := m.sampler.Figures(m.instances.name, w.Begin.Add(i*length/n), w.Begin.Add((i+1)*length/n))
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
func (m usageFigures) measureCluster(ctx context.Context, w phases.Window) error {
	for _, c := range m.components {
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
func (m usageFigures) measureOwn(ctx context.Context, w phases.Window) error {
	own := map[string]float64{}
	seconds := fmt.Sprintf("%dms", w.End.Sub(w.Begin).Milliseconds())
	for _, metric := range m.metrics.Phase {
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
		m.document.Latencies.Explained = explainedPush(m.document.Latencies.Push, m.metrics.Push, own)
	}
	return nil
}

// checkScrapes warns of scrapes that were missed in a phase.
func (m usageFigures) checkScrapes(ctx context.Context, w phases.Window) error {
	warn := func(component string, missed, total int) {
		if missed > 0 {
			m.journal.Warn(record.Warning{
				About: "own." + string(w.Name), Reason: record.ReasonScrapeGap, Component: component, Phase: w.Name,
				Values: map[string]float64{"missed": float64(missed), "scrapes": float64(total)},
			})
		}
	}
	for _, job := range m.jobs {
		if job == m.instances.name && m.instances.replicas != nil {
			continue
		}
		missed, total, err := m.recorder.Gaps(ctx, job, w.Begin, w.End)
		if err != nil {
			return err
		}
		warn(job, missed, total)
	}
	if m.instances.replicas == nil {
		return nil
	}
	for _, name := range m.instances.replicas.Throughout(w.Begin, w.End) {
		missed, total, err := m.recorder.InstanceGaps(ctx, m.instances.name, name, w.Begin, w.End)
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
	if run.ControlPlane == nil {
		run = &record.Run{ControlPlane: &record.ByPhase[*record.Usage]{}, Cluster: run.Cluster}
	}
	if u := *run.ControlPlane.At(phase); u != nil && u.Saturation != nil && *u.Saturation > record.Saturated {
		return "", 0
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
func (m usageFigures) measureFaults(ctx context.Context, injector *faults.Injector) error {
	return injector.Ended(func(index int, fault scenario.Fault, begin, end time.Time, l *fleet.Latencies) error {
		section := &m.document.Faults[index]
		if m.instances.usageKnown() {
			usage, err := m.recorder.Figures(ctx, m.sampler, m.instances.name, begin, end)
			if err != nil {
				return fmt.Errorf("reading the figures of %s: %w", fault.Name(), err)
			}
			section.ControlPlane = measure.UsageOf(usage)
			m.warnOfUsage(fmt.Sprintf("faults.%d.controlPlane", index), record.PhaseName(fault.Phase), usage)
		}
		return l.Save(m.journal.Writer(), fmt.Sprintf("faults.%d.", index), &section.Latencies)
	})
}

// warnOfUsage warns if the control plane was saturated or restarted in a phase.
func (m usageFigures) warnOfUsage(about string, phase record.PhaseName, u measure.Usage) {
	m.warnOfSaturation(about, m.instances.name, phase, u)
	if u.Restarts > 0 {
		m.journal.Warn(record.Warning{
			About: about, Reason: record.ReasonRestarted, Component: m.instances.name, Phase: phase, Values: map[string]float64{"restarts": float64(u.Restarts)},
		})
	}
}

// warnOfSaturation warns if a program waited for processors for a large share of a phase.
func (m usageFigures) warnOfSaturation(about, program string, phase record.PhaseName, u measure.Usage) {
	if u.Saturation != nil && *u.Saturation > record.Saturated {
		m.journal.Warn(record.Warning{
			About: about, Reason: record.ReasonSaturated, Component: program, Phase: phase, Values: map[string]float64{"share": *u.Saturation},
		})
	}
}
