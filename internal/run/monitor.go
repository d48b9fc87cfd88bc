package run

import (
	"context"
	"time"

	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/pkg/record"
)

// count keeps scaler's own gauges of pods and sidecars, and the time line, up to
// date.
func (r *run) count(ctx context.Context) error {
	tick := time.NewTicker(measure.SampleInterval)
	defer tick.Stop()
	for {
		c := r.fleet.Count()
		r.metrics.Pods("created", c.Created)
		r.metrics.Pods("ready", c.Ready)
		r.metrics.Sidecars("connected", c.Connected)
		r.metrics.Proxies(c.Simulated)
		r.metrics.Sidecars("complete", c.Complete)
		r.metrics.Sidecars("converged", c.Converged)
		if err := r.journal.Writer().Moment(r.moment(c)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// phaseStatus returns the state of the run in a phase, to be shown.
func (r *run) phaseStatus() Status {
	current, c := r.timeline.Current(), r.fleet.Count()
	s := Status{
		Phase: string(current.Phase), Length: current.Length, Pods: r.spec.Pods(),
		Created: c.Created, Ready: c.Ready, Connected: c.Connected, Complete: c.Complete, Converged: c.Converged,
		Nodes: c.Nodes, Slowdown: 1,
	}
	if r.adapter.Nodes != nil {
		s.NodeProxy = r.driver.Proxy.Name
	}
	if current.Phase != "" {
		s.Elapsed, s.Slowdown = time.Since(current.Since), r.slowdownIn(current.Phase)
	}
	s.Cores, s.MemoryBytes, _ = r.sampler.Live(r.controlPlaneName())
	s.Cores *= s.Slowdown
	return s
}

// moment returns the state of the run for the time line.
func (r *run) moment(s fleet.Counts) record.Moment {
	c := r.fleet.Workers.Counts()
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
	names := append([]string{r.controlPlaneName(), measure.InstrumentName}, r.replicas.Names()...)
	for _, program := range r.components() {
		names = append(names, program.Name)
	}
	if next := r.nextName.Load(); next != nil {
		names = append(names, *next)
	}
	for _, name := range names {
		if cores, memory, ok := r.sampler.Live(name); ok {
			at.Programs[name] = record.Load{Cores: cores, MemoryBytes: memory}
		}
	}
	return at
}
