package containers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/measure/clusterprometheus"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// lastSamples is until how long after its last phase a run waits for the samples of a Prometheus that follow it: one interval of a minute, or a
// shorter one and the age of values of cAdvisor.
const lastSamples = 75 * time.Second

// clocksDiffer is how much the clock of a Prometheus may differ from scaler's without a warning.
const clocksDiffer = time.Second

// askLimit is for all requests after that, in which samples are read: seven for each kind of metrics.
const askLimit = time.Minute

// Prometheus is what a record states of the Prometheus of a cluster; nil where none was to be asked.
func Prometheus(found *attach.Found) *record.PrometheusAccess {
	s := found.Prometheus
	if s == nil {
		return nil
	}
	access := &record.PrometheusAccess{Address: s.Address.String(), Detected: s.Detected, Version: s.Version}
	if s.Err != nil {
		access.Error = s.Err.Error()
	}
	return access
}

// AskPrometheus computes what the pods of the control plane used in each phase by the Prometheus of the cluster; nil where none was to be
// asked, or it has nothing.
func AskPrometheus(ctx context.Context, found *attach.Found, driver controlplane.Driver, o Options) *record.ClusterPrometheus {
	s := found.Prometheus
	if s == nil {
		return nil
	}
	name := s.Address.String()
	if s.Err != nil {
		o.Warn(record.Warning{About: "clusterPrometheus", Reason: record.ReasonNotMeasured, Component: name, Detail: name + ": " + experiment.FirstLine(s.Err)})
		return nil
	}
	passed := errors.New("the time limit passed")
	waitUntil, askUntil := limits(time.Now(), o)
	ctx, cancel := context.WithDeadlineCause(ctx, askUntil, passed)
	defer cancel()
	waiting, stop := context.WithDeadlineCause(ctx, waitUntil, passed)
	defer stop()
	p := prometheus{Options: o, sampled: func(pod string) string { return pod }}
	if len(found.Installation.Pods) == 1 {
		p.sampled = func(pod string) string {
			if pod == found.Installation.Pods[0] {
				return driver.Name
			}
			return pod // it came later: scaler does not read it
		}
	}
	document := &record.ClusterPrometheus{}
	document.OwnMetrics = p.measure(ctx, waiting, s, clusterprometheus.Own)
	document.Cadvisor = p.measure(ctx, waiting, s, clusterprometheus.Cadvisor)
	if document.OwnMetrics == nil && document.Cadvisor == nil {
		return nil
	}
	return document
}

// limits are until when samples are waited for, and until when a Prometheus is asked at all, however slow it is.
func limits(now time.Time, o Options) (waitUntil, askUntil time.Time) {
	waitUntil = o.Windows[len(o.Windows)-1].End.Add(lastSamples)
	if !o.Await || waitUntil.Before(now) {
		waitUntil = now
	}
	return waitUntil, waitUntil.Add(askLimit)
}

// prometheus makes records of what a Prometheus has.
type prometheus struct {
	Options
	sampled func(pod string) string // the name under which scaler reads the own metrics of a pod
}

// measure is what one kind of metrics says; nil where there are none. waiting ends when samples are not waited for any more.
func (p prometheus) measure(ctx, waiting context.Context, s *clusterprometheus.Source, kind clusterprometheus.Kind) *record.PrometheusSource {
	begin, end := p.Windows[0].Begin, p.Windows[len(p.Windows)-1].End
	about := "clusterPrometheus." + string(kind)
	await := func(moment time.Time) {
		if !p.Await {
			return
		}
		p.Say(fmt.Sprintf("waiting for %s to have samples after the last phase", s.Address))
		if err := s.Await(waiting, kind, moment); err != nil {
			p.Say(experiment.FirstLine(err)) // the figures that lack them say so in the record
		}
	}
	await(end)
	m, err := s.Read(ctx, kind, begin, end)
	if err == nil && p.Await && m.Older > time.Second {
		await(end.Add(m.Older)) // the samples right after the end may be of before it
		m, err = s.Read(ctx, kind, begin, end)
	}
	if err != nil {
		p.Warn(record.Warning{About: about, Reason: record.ReasonNotMeasured, Component: s.Address.String(), Detail: s.Address.String() + ": " + experiment.FirstLine(err)})
		return nil
	}
	source := &record.PrometheusSource{
		IntervalSeconds: m.Interval.Seconds(), LongestGapSeconds: m.LongestGap.Seconds(), OlderSeconds: m.Older.Seconds(), NewerSeconds: m.Newer.Seconds(),
		Each: map[string]*record.PrometheusPod{},
	}
	unknown := map[record.PhaseName][]string{} // pods
	reasons := map[record.PhaseName]error{}    // of the first
	gaps := map[record.PhaseName][]string{}    // pods
	if m.Ahead.Abs() > clocksDiffer {
		p.Warn(record.Warning{About: about, Reason: record.ReasonClocksDiffer, Component: s.Address.String(), Values: map[string]float64{"aheadSeconds": m.Ahead.Seconds()}})
	}
	for _, pod := range m.Pods() {
		one := &record.PrometheusPod{}
		for _, w := range p.Windows {
			slot := one.Usage.At(w.Name)
			if slot == nil {
				continue
			}
			u, there := m.Usage(pod, w.Begin, w.End)
			if !there {
				continue
			}
			if u.Err != nil {
				if unknown[w.Name] = append(unknown[w.Name], pod); reasons[w.Name] == nil {
					reasons[w.Name] = u.Err
				}
			}
			if u.Err == nil && u.Missed > 0 {
				gaps[w.Name] = append(gaps[w.Name], pod)
			}
			*slot = prometheusUsage(u, w)
		}
		one.Compared = p.compare(m, kind, pod, begin, end)
		source.Each[pod] = one
	}
	for _, w := range p.Windows {
		if slot := source.ControlPlane.At(w.Name); slot != nil {
			all := m.Together(w.Begin, w.End)
			*slot = prometheusUsage(all, w)
			if pods := gaps[w.Name]; pods != nil {
				p.Warn(record.Warning{
					About: about + "." + string(w.Name), Reason: record.ReasonScrapeGap, Phase: w.Name, Component: byPrometheus(kind, pods...),
					Values: map[string]float64{"missed": float64(all.Missed), "scrapes": float64(all.Missed + all.Samples)},
				})
			}
		}
		if pods := unknown[w.Name]; pods != nil {
			p.Warn(record.Warning{
				About: about + "." + string(w.Name), Reason: record.ReasonUsageUnknown, Phase: w.Name,
				Component: byPrometheus(kind, pods...), Detail: experiment.FirstLine(reasons[w.Name]),
			})
		}
	}
	return source
}

// prometheusUsage is what pods used in a window, as records have it.
func prometheusUsage(u clusterprometheus.Usage, w phases.Window) *record.PrometheusUsage {
	level := func(m *clusterprometheus.Memory) *record.Level {
		if m == nil {
			return nil
		}
		return &record.Level{Mean: &m.Mean, Peak: &m.Peak, End: &m.End}
	}
	usage := &record.PrometheusUsage{
		Usage:         record.Usage{CPUSeconds: u.CPUSeconds, MemoryBytes: level(u.Resident), WorkingSetBytes: level(u.WorkingSet), Restarts: &u.Restarts},
		CPUSecondsLow: &u.Low, CPUSecondsHigh: u.High, Samples: u.Samples,
	}
	if u.CPUSeconds != nil {
		usage.Cores = &record.Level{Mean: new(*u.CPUSeconds / w.End.Sub(w.Begin).Seconds())}
	}
	return usage
}

const (
	// sourcesDiffer is the share by which two sources may differ, and resolution by how many seconds of processor time: both count
	// in steps.
	sourcesDiffer = 0.05
	resolution    = 0.1
)

// compare compares the samples of a pod with what scaler read of its own metrics, and warns where they differ by more than
// what is not known of either; nil where there is nothing to compare.
func (p prometheus) compare(m *clusterprometheus.Metrics, kind clusterprometheus.Kind, pod string, from, to time.Time) *record.PrometheusCompared {
	// Scaler reads a program once a second, between which its figures are taken as even.
	older, newer := m.Older+experiment.SampleInterval, m.Newer+experiment.SampleInterval
	span, ok := m.Span(pod, from.Add(older), to.Add(-newer))
	if !ok {
		return nil
	}
	cpu := func(from, to time.Time) float64 {
		if !from.Before(to) {
			return 0
		}
		u, err := p.Sampler.Figures(p.sampled(pod), from, to)
		if err != nil {
			ok = false
		}
		return u.CPUSeconds
	}
	c := &record.PrometheusCompared{
		Seconds: span.Last.Sub(span.First).Seconds(), CPUSeconds: span.CPUSeconds,
		OwnCPUSecondsLow:  cpu(span.First.Add(newer), span.Last.Add(-older)),
		OwnCPUSecondsHigh: cpu(span.First.Add(-older), span.Last.Add(newer)),
	}
	if !ok {
		return nil // scaler did not read it all the time
	}
	p.judge(kind, pod, "processor time in seconds", c.CPUSeconds, c.OwnCPUSecondsLow, c.OwnCPUSecondsHigh, resolution)
	if kind != clusterprometheus.Own || len(span.Memory) == 0 {
		return c
	}
	var mean, low, high float64
	n := float64(len(span.Memory))
	for _, s := range span.Memory {
		before, err := p.Sampler.Figures(p.sampled(pod), s.At.Add(-older), s.At)
		after, err2 := p.Sampler.Figures(p.sampled(pod), s.At, s.At.Add(newer))
		if err != nil || err2 != nil {
			return c
		}
		mean += s.Value
		low += min(before.MemoryMean, before.MemoryEnd, after.MemoryMean, after.MemoryEnd)
		high += max(before.MemoryPeak, after.MemoryPeak)
	}
	mean, low, high = mean/n, low/n, high/n
	c.MemoryBytes, c.OwnMemoryBytesLow, c.OwnMemoryBytesHigh = &mean, &low, &high
	if mean > high { // low is no limit: between two readings memory may have been less
		p.judge(kind, pod, "resident memory in bytes", mean, low, high, 0)
	}
	return c
}

// byPrometheus names pods and the source of their figures.
func byPrometheus(kind clusterprometheus.Kind, pods ...string) string {
	return strings.Join(pods, ", ") + " by " + string(kind) + " of the cluster's Prometheus"
}

// judge warns where a figure is not within limits.
func (p prometheus) judge(kind clusterprometheus.Kind, pod, what string, theirs, low, high, resolution float64) {
	if theirs >= low*(1-sourcesDiffer)-resolution && theirs <= high*(1+sourcesDiffer)+resolution {
		return
	}
	p.Warn(record.Warning{
		About: "clusterPrometheus." + string(kind) + ".each." + pod + ".compared", Reason: record.ReasonSourcesDiffer, Component: byPrometheus(kind, pod), Detail: what,
		Values: map[string]float64{"theirs": theirs, "low": low, "high": high},
	})
}
