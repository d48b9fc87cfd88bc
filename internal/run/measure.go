package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/run/faults"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// measurement computes the figures of a run that has ended: what the phases cost and
// what came of the sidecars.
type measurement struct {
	*run
	document *record.Run // that the figures are put into
}

// measure computes the figures of a run and puts them into its record. It is called
// when the sidecars have been stopped and the recorder still runs.
func (r *run) measure(ctx context.Context) error {
	if len(r.timeline.Windows()) == 0 {
		return nil
	}
	begin := time.Now()
	document := r.journal.Run()
	m := measurement{r, &document}
	err := m.measure(ctx)
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

func (m measurement) measure(ctx context.Context) error {
	if err := m.measureSidecars(); err != nil {
		return err
	}
	windows := m.timeline.Windows()
	since := windows[len(windows)-1].End
	if last := m.fleet.Pods.LastResponse(); last.After(since) {
		since = last // what was changed was taken back after its phase
	}
	if m.upgrading == nil { // else what is read of the time series ended long before
		if err := m.recorder.Scraped(ctx, since); err != nil {
			m.journal.Warn(record.Warning{About: "own", Reason: record.ReasonSeriesEnd, Detail: experiment.FirstLine(err)})
		}
	}
	if usageKnown(m.adapter) {
		m.document.ControlPlane = &record.ByPhase[*record.Usage]{}
	}
	m.document.Cluster = map[string]record.ByPhase[*record.Usage]{}
	m.document.Own = &record.Own{Note: m.controlPlaneName() + "'s own metrics over the same windows"}
	for i, w := range windows {
		if m.dilation != nil && slices.Contains(m.dilation.RealTime, w.Name) {
			m.sampler.RealTime(w.Begin, w.End)
		}
		m.progress.say(fmt.Sprintf("computing the figures of %s, phase %d of %d", w.Name, i+1, len(windows)))
		if err := m.measurePhase(ctx, w); err != nil {
			return fmt.Errorf("reading the figures of %s: %w", w.Name, err)
		}
	}
	for _, do := range []func(context.Context) error{m.measureCycle, m.measureFaults, m.measureUpgrade, m.measureContainers, m.measureReal, m.crossCheck, m.measureInstrument, m.askPrometheus} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	incomplete, quiet := m.fleet.Readiness.Incomplete()
	for _, w := range (symptoms{
		lag: m.observed.lag, probeLag: m.observed.probeLag, changeLag: m.observed.changeLag, counts: m.fleet.Workers.Counts(), xds: m.document.XDS,
		incomplete: incomplete, quiet: quiet, slowdown: m.spec.dilation(), starts: m.observed.latencies, latencies: &m.document.Latencies,
	}).doubts() {
		m.journal.Warn(w)
	}
	return nil
}

// measurePhase computes the usage of every component over one phase.
func (m measurement) measurePhase(ctx context.Context, w phases.Window) error {
	if m.document.Own.At(w.Name) == nil {
		return nil // settle belongs to no figure
	}
	if usageKnown(m.adapter) {
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
	*slot = experiment.UsageOf(usage)
	if w.Name == record.PhaseSteady {
		setCollected(*slot, m.observed.live)
	}
	m.doubtUsage("controlPlane."+string(w.Name), w.Name, usage)
	if s := usage.Saturation; m.document.AtLimit(w.Name) && (s == nil || *s <= record.Saturated) {
		m.journal.Warn(record.Warning{
			About: "controlPlane." + string(w.Name), Reason: record.ReasonAtLimit, Component: m.controlPlaneName(), Phase: w.Name,
			Values: map[string]float64{"peakCores": usage.CoresPeak, "maxProcs": float64(m.document.Environment.ControlPlane.GOMAXPROCS)},
		})
	}
	return nil
}

// measureCluster computes the usage of the cluster's programs over one phase.
func (m measurement) measureCluster(ctx context.Context, w phases.Window) error {
	for _, c := range components(m.run) {
		usage, err := m.recorder.Figures(ctx, m.sampler, c.Name, w.Begin, w.End)
		if err != nil {
			return err
		}
		byPhase := m.document.Cluster[c.Name]
		*byPhase.At(w.Name) = experiment.UsageOf(usage)
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
	metrics := m.driver.Metrics
	for _, metric := range metrics.Phase {
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
		m.document.Latencies.Explained = explainedPush(m.document.Latencies.Push, metrics.Push, own)
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

// explainedPush is how much of the pushes the stages account for that the control
// plane counts itself; nil when it does not count one of them, or nothing was
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

// waitingCluster is the program of the cluster that waited for processors for the
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
func (m measurement) measureFaults(ctx context.Context) error {
	return m.injector.Ended(func(index int, fault faults.Fault, begin, end time.Time, l *fleet.Latencies) error {
		section := &m.document.Faults[index]
		if usageKnown(m.adapter) {
			usage, err := m.recorder.Figures(ctx, m.sampler, m.controlPlaneName(), begin, end)
			if err != nil {
				return fmt.Errorf("reading the figures of %s: %w", fault.Name(), err)
			}
			section.ControlPlane = experiment.UsageOf(usage)
			m.doubtUsage(fmt.Sprintf("faults.%d.controlPlane", index), fault.Phase, usage)
		}
		return l.Save(m.journal.Writer(), fmt.Sprintf("faults.%d.", index), &section.Latencies)
	})
}

// measureInstrument records what scaler itself needed, over the rollout.
func (m measurement) measureInstrument(ctx context.Context) error {
	instrument := &record.Instrument{Floor: m.spec.floor(), CPUs: m.affinity.others}
	m.document.Instrument = instrument
	if summary := m.observed.lag.Summary(); summary.Count > 0 {
		lag := record.Latency(summary)
		instrument.Lag = &lag
		if err := m.journal.Writer().Histogram("lag", m.observed.lag); err != nil {
			return err
		}
	}
	var idle, loaded float64 // resident bytes without and with sidecars
	for _, w := range m.timeline.Windows() {
		usage, err := m.recorder.Figures(ctx, m.sampler, experiment.InstrumentName, w.Begin, w.End)
		if err != nil {
			return err
		}
		switch w.Name {
		case record.PhaseBaseline:
			idle = usage.MemoryEnd
		case record.PhaseRollout:
			loaded = usage.MemoryEnd
			instrument.Cores = &usage.CoresMean
			instrument.MemoryBytes = &usage.MemoryPeak
			instrument.OpenFiles = &usage.OpenFilesPeak
			instrument.Saturation, instrument.WaitedSeconds = usage.Saturation, usage.Waited
			if err := m.measureWorkers(w); err != nil {
				return err
			}
		}
	}
	if connected := m.document.Pods.Connected; m.adapter.Nodes == nil && loaded > 0 && connected != nil && *connected > 0 {
		instrument.BytesPerSidecar = new((loaded - idle) / float64(*connected))
	}
	return nil
}

// doubtUsage warns of what makes a phase's usage doubtful.
func (m measurement) doubtUsage(about string, phase record.PhaseName, u measure.Usage) {
	w := record.Warning{About: about, Component: m.controlPlaneName(), Phase: phase}
	if u.Saturation != nil && *u.Saturation > record.Saturated {
		w.Reason, w.Values = record.ReasonSaturated, map[string]float64{"share": *u.Saturation}
		m.journal.Warn(w)
	}
	if u.Restarts > 0 {
		w.Reason, w.Values = record.ReasonRestarted, map[string]float64{"restarts": float64(u.Restarts)}
		m.journal.Warn(w)
	}
}
