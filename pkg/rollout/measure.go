package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
	"scaler.mesh/scaler/pkg/stats"
)

// measure computes what the phases cost and what came of the sidecars, and puts
// it into the record. It is called when the sidecars have been stopped and the
// recorder still runs.
func (r *rolloutRun) measure(ctx context.Context) error {
	if len(r.windows) == 0 {
		return nil
	}
	r.countXDS()
	if err := r.countCertificates(); err != nil {
		return err
	}
	if r.record.Phase(record.PhaseRollout) != nil {
		r.latencies.lose(r.spec.Topology.Pods, r.spec.RealSidecars)
	}
	if err := r.latencies.save(r.writer, "", &r.record.Latencies); err != nil {
		return err
	}
	if err := r.recorder.Scraped(ctx, r.windows[len(r.windows)-1].end); err != nil {
		r.warn(record.Warning{About: "own", Reason: record.ReasonSeriesEnd, Detail: experiment.FirstLine(err)})
	}
	r.record.ControlPlane = &record.ByPhase[*record.Usage]{}
	r.record.Cluster = map[string]record.ByPhase[*record.Usage]{}
	r.record.Own = &record.Own{Note: r.controlPlaneName() + "'s own metrics over the same windows"}
	for _, w := range r.windows {
		if err := r.measurePhase(ctx, w); err != nil {
			return fmt.Errorf("reading the figures of %s: %w", w.name, err)
		}
	}
	if err := r.measureFaults(ctx); err != nil {
		return err
	}
	if err := r.measureReal(); err != nil {
		return err
	}
	if err := r.crossCheck(ctx); err != nil {
		return err
	}
	if err := r.measureInstrument(ctx); err != nil {
		return err
	}
	r.doubt()
	return r.save()
}

// measurePhase computes the usage of every component over one phase.
func (r *rolloutRun) measurePhase(ctx context.Context, w window) error {
	slot := r.record.ControlPlane.At(w.name)
	if slot == nil {
		return nil // settle belongs to no figure
	}
	usage, err := r.recorder.Figures(ctx, r.sampler, r.controlPlaneName(), w.begin, w.end)
	if err != nil {
		return err
	}
	*slot = experiment.UsageOf(usage)
	if heap := (*slot).HeapBytes; heap != nil && w.name == record.PhaseSteady {
		heap.Collected = r.live
	}
	r.doubtUsage("controlPlane."+string(w.name), w.name, usage)
	if s := usage.Saturation; r.record.AtLimit(w.name) && (s == nil || *s <= record.Saturated) {
		r.warn(record.Warning{
			About: "controlPlane." + string(w.name), Reason: record.ReasonAtLimit, Component: r.controlPlaneName(), Phase: w.name,
			Values: map[string]float64{"peakCores": usage.CoresPeak, "maxProcs": float64(r.record.Environment.ControlPlane.GOMAXPROCS)},
		})
	}
	for _, c := range r.cluster.Components() {
		usage, err := r.recorder.Figures(ctx, r.sampler, c.Name, w.begin, w.end)
		if err != nil {
			return err
		}
		phases := r.record.Cluster[c.Name]
		*phases.At(w.name) = experiment.UsageOf(usage)
		r.record.Cluster[c.Name] = phases
	}
	if c, share := waitingCluster(&r.record, w.name); c != "" {
		r.warn(record.Warning{
			About: "cluster." + c + "." + string(w.name), Reason: record.ReasonSaturated, Component: c, Phase: w.name,
			Values: map[string]float64{"share": share},
		})
	}
	own := map[string]float64{}
	seconds := fmt.Sprintf("%dms", w.end.Sub(w.begin).Milliseconds())
	for _, m := range r.adapter.Server.Metrics().Phase {
		value, ok, err := r.recorder.Value(ctx, strings.ReplaceAll(m.Expr, "$window", seconds), w.end)
		if err != nil {
			return err
		}
		if ok {
			own[m.Name] = value
		}
	}
	*r.record.Own.At(w.name) = own
	if w.name == record.PhaseProbe {
		r.record.Latencies.Explained = explainedPush(r.record.Latencies.Push, r.adapter.Server.Metrics().Push, own)
	}
	for _, job := range r.jobs {
		missed, total, err := r.recorder.Gaps(ctx, job, w.begin, w.end)
		if err != nil {
			return err
		}
		if missed > 0 {
			r.warn(record.Warning{
				About: "own." + string(w.name), Reason: record.ReasonScrapeGap, Component: job, Phase: w.name,
				Values: map[string]float64{"missed": float64(missed), "scrapes": float64(total)},
			})
		}
	}
	return nil
}

// explainedPush is how much of the pushes the stages say that the control plane
// counts itself; nil when it does not count one of them, or nothing was followed.
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

// doubtUsage warns of what makes a phase's usage doubtful.
func (r *rolloutRun) doubtUsage(about string, phase record.PhaseName, u recorder.Usage) {
	w := record.Warning{About: about, Component: r.controlPlaneName(), Phase: phase}
	if u.Saturation != nil && *u.Saturation > record.Saturated {
		w.Reason, w.Values = record.ReasonSaturated, map[string]float64{"share": *u.Saturation}
		r.warn(w)
	}
	if u.Restarts > 0 {
		w.Reason, w.Values = record.ReasonRestarted, map[string]float64{"restarts": float64(u.Restarts)}
		r.warn(w)
	}
}

// doubt warns of what touches the figures of the whole run.
func (r *rolloutRun) doubt() {
	for _, each := range []struct {
		about string
		lag   *stats.Histogram
	}{{"latencies", r.lag}, {"latencies.push", r.probeLag}} {
		if late := each.lag.Summary().P99; late != nil && *late > experiment.LateInstrument.Seconds() {
			r.warn(record.Warning{About: each.about, Reason: record.ReasonLateInstrument, Values: map[string]float64{"p99Seconds": *late}})
		}
	}
	if late := experiment.LateReceipt(r.fleet.probes.Counters()); late != nil {
		r.warn(*late)
	}
	if n := *r.record.XDS.Refusals; n > 0 {
		r.warn(record.Warning{About: "latencies.completeConfiguration", Reason: record.ReasonRefused, Values: map[string]float64{
			"refused": float64(n), "attempts": float64(*r.record.XDS.Attempts),
		}})
	}
	if n := r.fleet.impatient; n > 0 {
		r.warn(record.Warning{About: "latencies.podReady", Reason: record.ReasonIncompleteReady, Values: map[string]float64{
			"pods": float64(n), "quietSeconds": patience.Seconds(),
		}})
	}
	for _, n := range r.latencies.all() {
		if latency := *n.summary(&r.record.Latencies); latency != nil && latency.Lost > 0 {
			r.warn(record.Warning{About: "latencies." + n.name, Reason: record.ReasonLost, Values: map[string]float64{
				"lost": float64(latency.Lost), "all": float64(latency.Count + latency.Lost),
			}})
		}
	}
}

// countPods counts how far the pods came, as at the end of rollout.
func (r *rolloutRun) countPods() {
	var s Status
	r.fleet.count(&s)
	pods := r.record.Pods
	pods.Created, pods.Ready, pods.Connected = &s.Created, &s.Ready, &s.Connected
	pods.Complete, pods.Converged = &s.Complete, &s.Converged
}

// countXDS reads the sidecars' counters into the record.
func (r *rolloutRun) countXDS() {
	x := experiment.XDSCounts(r.fleet.probes.Counters())
	x.ConfigurationBytes, x.ConfigurationResources = r.holdings.bytes, r.holdings.resources
	r.record.XDS = x
}

// crossCheck lays the control plane's own counts beside ours. After a phase in
// which nothing was touched they must be equal, unless it was restarted and lost
// them.
func (r *rolloutRun) crossCheck(ctx context.Context) error {
	if !r.completed || r.restarted.Load() {
		return nil
	}
	var w window // the last with figures
	var own map[string]float64
	for _, each := range r.windows {
		if slot := r.record.Own.At(each.name); slot != nil {
			w, own = each, *slot
		}
	}
	counters := r.adapter.Server.Metrics().Counters
	check := func(figure, about, expr string, at time.Time, ours int64) error {
		if expr == "" {
			return nil
		}
		theirs, ok, err := r.recorder.Value(ctx, expr, at)
		if err != nil {
			return err
		}
		if ok {
			own[figure] = theirs
		}
		if int64(theirs) != ours {
			r.warn(record.Warning{About: about, Reason: record.ReasonCountsDiffer, Component: r.controlPlaneName(), Detail: expr, Values: map[string]float64{
				"theirs": math.Trunc(theirs), "ours": float64(ours),
			}})
		}
		return nil
	}
	now := time.Now() // counts do not change any more; how many are connected did
	if r.spec.RealSidecars > 0 {
		// What real sidecars ask for, scaler does not count.
		return check("connected", "pods.connected", counters.Connected, w.end, int64(r.spec.Topology.Pods))
	}
	var errs []error
	for _, t := range slices.Sorted(maps.Keys(counters.Responses)) {
		expr := counters.Responses[t]
		errs = append(errs, check("totalResponses"+t.String(), "xds.responses."+t.String(), expr, now, r.record.XDS.Responses[t.String()]))
	}
	return errors.Join(append(errs,
		check("connected", "pods.connected", counters.Connected, w.end, int64(w.streams)),
		check("totalCertificateRequests", "certificates.attempts", counters.CertificateRequests, now, *r.record.Certificates.Attempts),
		check("totalCertificates", "certificates.issued", counters.Certificates, now, *r.record.Certificates.Issued),
	)...)
}

// countCertificates counts what became of the pods' certificates.
func (r *rolloutRun) countCertificates() error {
	c := r.fleet.probes.Counters()
	issued := c.Certificates.Load()
	certificates := &record.Certificates{
		Issued:   &issued,
		Attempts: new(c.CertificateRequests.Load()),
		Note:     "failed: pods without a certificate at the end",
	}
	r.fleet.mu.Lock()
	defer r.fleet.mu.Unlock()
	there, failed := 0, int64(0)
	for _, p := range r.fleet.pods {
		if p.gone {
			continue
		}
		there++
		if p.times.Certified.IsZero() {
			failed++
		}
	}
	// Pods that never came have none either.
	certificates.Failed = new(failed + int64(max(0, r.spec.Topology.Pods-there)))
	if csr := r.fleet.csr; csr.last.After(csr.first) {
		certificates.PerSecond = new(float64(csr.issued) / csr.last.Sub(csr.first).Seconds())
	}
	certificates.Storm = r.storm
	renewals, err := experiment.SaveHistogram(r.writer, "certificateRenewals", r.fleet.renewals)
	if err != nil {
		return err
	}
	certificates.Renewals = renewals
	r.record.Certificates = certificates
	return nil
}

// measureInstrument records what scaler itself needed, over the rollout.
func (r *rolloutRun) measureInstrument(ctx context.Context) error {
	r.record.Instrument = &record.Instrument{Floor: r.floor(), CPUs: r.others}
	if summary := r.lag.Summary(); summary.Count > 0 {
		lag := record.Latency(summary)
		r.record.Instrument.Lag = &lag
		if err := r.writer.Histogram("lag", r.lag); err != nil {
			return err
		}
	}
	var idle, loaded float64 // resident bytes without and with sidecars
	for _, w := range r.windows {
		usage, err := r.recorder.Figures(ctx, r.sampler, experiment.InstrumentName, w.begin, w.end)
		if err != nil {
			return err
		}
		switch w.name {
		case record.PhaseBaseline:
			idle = usage.MemoryEnd
		case record.PhaseRollout:
			loaded = usage.MemoryEnd
			r.record.Instrument.Cores = &usage.CoresMean
			r.record.Instrument.MemoryBytes = &usage.MemoryPeak
			r.record.Instrument.OpenFiles = &usage.OpenFilesPeak
		}
	}
	if connected := r.record.Pods.Connected; loaded > 0 && connected != nil && *connected > 0 {
		r.record.Instrument.BytesPerSidecar = new((loaded - idle) / float64(*connected))
	}
	return nil
}
