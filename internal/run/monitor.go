package run

import (
	"context"
	"sync/atomic"
	"time"

	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// monitor knows how a run stands: for scaler's own gauges, the time line and the
// display of phases.
type monitor struct {
	pods     int             // wanted
	name     string          // of the control plane
	replicas []string        // of it; nil = it is one program
	programs func() []string // further ones
	sampler  *measure.Sampler
	metrics  *measure.Metrics
	fleet    *fleet.Fleet
	proxy    string // what the proxy of a node is called; "" = nodes have none
	timeline *phases.Timeline
	writer   *record.Writer
	slowdown func(record.PhaseName) float64

	others atomic.Pointer[[]string] // other control planes; nil = there is none
}

// count keeps scaler's own gauges of pods and sidecars, and the time line, up to
// date.
func (m *monitor) count(ctx context.Context) error {
	tick := time.NewTicker(measure.SampleInterval)
	defer tick.Stop()
	for {
		c := m.fleet.Count()
		m.metrics.Pods("created", c.Created)
		m.metrics.Pods("ready", c.Ready)
		m.metrics.Sidecars("connected", c.Connected)
		m.metrics.Proxies(c.Simulated)
		m.metrics.Sidecars("complete", c.Complete)
		m.metrics.Sidecars("converged", c.Converged)
		if err := m.writer.Moment(m.moment(c)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// status returns the state of the run, to be shown.
func (m *monitor) status() Status {
	current, c := m.timeline.Current(), m.fleet.Count()
	s := Status{
		Phase: string(current.Phase), Length: current.Length, Pods: m.pods,
		Created: c.Created, Ready: c.Ready, Connected: c.Connected, Complete: c.Complete, Converged: c.Converged,
		NodeProxy: m.proxy, Nodes: c.Nodes, Slowdown: 1,
	}
	if current.Phase != "" {
		s.Elapsed, s.Slowdown = time.Since(current.Since), m.slowdown(current.Phase)
	}
	s.Cores, s.MemoryBytes, _ = m.sampler.Live(m.name)
	s.Cores *= s.Slowdown
	return s
}

// moment returns the state of the run for the time line.
func (m *monitor) moment(s fleet.Counts) record.Moment {
	c := m.fleet.Workers.Counts()
	at := record.Moment{
		Time:     time.Now().UTC(),
		Programs: map[string]record.Load{},
		Created:  s.Created, Ready: s.Ready, Complete: s.Complete, Converged: s.Converged,
		Connected:    int(c.Connected),
		Responses:    map[string]int64{},
		Attempts:     c.Attempts,
		Refusals:     c.Refusals,
		Certificates: c.Certificates,
	}
	for _, of := range c.Subscribed() {
		at.Responses[of.Type.String()] = of.Responses
	}
	names := append([]string{m.name, measure.InstrumentName}, m.replicas...)
	names = append(names, m.programs()...)
	if others := m.others.Load(); others != nil {
		names = append(names, *others...)
	}
	for _, name := range names {
		if cores, memory, ok := m.sampler.Live(name); ok {
			at.Programs[name] = record.Load{Cores: cores, MemoryBytes: memory}
		}
	}
	return at
}
