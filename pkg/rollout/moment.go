package rollout

import (
	"time"

	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/fleet"
	"scaler.mesh/scaler/pkg/record"
)

// moment is how the run stands, of which s are the counts.
func (r *run) moment(s fleet.Counts) record.Moment {
	c := r.fleet.Store.Counters()
	m := record.Moment{
		Time:     time.Now().UTC(),
		Programs: map[string]record.Load{},
		Created:  s.Created, Ready: s.Ready, Complete: s.Complete, Converged: s.Converged,
		Connected:    int(c.Connected.Load()),
		Responses:    map[string]int64{},
		Attempts:     c.Attempts.Load(),
		Refusals:     c.Refusals.Load(),
		Certificates: c.Certificates.Load(),
	}
	for _, t := range c.Types() {
		m.Responses[t.String()], _ = c.Responses(t)
	}
	names := []string{r.controlPlaneName(), experiment.InstrumentName}
	for _, program := range r.env.Components() {
		names = append(names, program.Name)
	}
	for _, name := range names {
		if cores, memory, ok := r.sampler.Live(name); ok {
			m.Programs[name] = record.Load{Cores: cores, MemoryBytes: memory}
		}
	}
	return m
}
