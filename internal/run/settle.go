package run

import (
	"context"
	"time"

	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// settling is the phase in which the control plane comes to rest, and what sidecars hold is
// compared with what they should.
type settling struct {
	length    time.Duration // at least
	limit     time.Duration // at most, until the control plane is quiet
	dataplane dataplane
	fleet     *fleet.Fleet
	timeline  *phases.Timeline
	journal   *journal.Journal
	observed  *observed // takes what the proxies hold
}

// settle lets the control plane come to rest, and warns when it has not.
func (r *run) settle(ctx context.Context) error {
	length := r.spec.Phases.Settle
	phase := settling{length: time.Duration(length), limit: r.spec.likeRest(length), dataplane: r.dataplane(), fleet: r.fleet, timeline: r.timeline, journal: r.journal, observed: &r.observed}
	return phase.run(ctx)
}

func (s settling) run(ctx context.Context) (err error) {
	if err := s.timeline.Measure(ctx, record.PhaseSettle, s.limit, s.rest); err != nil {
		return err
	}
	if s.observed.holdings, err = s.fleet.Holdings(ctx); err != nil {
		return err
	}
	if expected, optional := s.dataplane.holdings(s.fleet.IDs()); expected != nil {
		warnings, err := s.fleet.CompareHoldings(ctx, expected, optional)
		if err != nil {
			return err
		}
		for _, w := range warnings {
			s.journal.Warn(w)
		}
	}
	warnNotQuiet(s.fleet, s.journal)
	return nil
}

// rest waits for the length. Where time is slowed down, what goes on at its end is waited for, for as long as the phase would
// take if it were slowed down.
func (s settling) rest(ctx context.Context) (record.EndedBy, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	endedBy, err := phases.Wait(s.length)(ctx)
	if err != nil || s.limit == s.length {
		return endedBy, err
	}
	if err := s.fleet.AwaitQuiet(limited); err != nil && ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return endedBy, nil // run warns of what is not quiet at the limit
}

// holdings returns the keys of all resources that the sidecars of each service
// hold when converged, with these pods there; nil if the adapter cannot say. "" stands for the proxies of
// nodes, the label of a waypoint for it. optional are those that sidecars may hold.
func (d dataplane) holdings(pods []string) (expected map[string]map[convergence.Key]bool, optional map[convergence.Key]bool) {
	expected, optional = map[string]map[convergence.Key]bool{}, map[convergence.Key]bool{}
	add := func(service string, all []convergence.Key) {
		if all == nil {
			expected = nil
		}
		if expected == nil {
			return
		}
		expected[service] = map[convergence.Key]bool{}
		for _, key := range all {
			expected[service][key] = true
		}
	}
	var discovered []convergence.Key // by sidecars, where others have the proxy of their node
	if d.adapter.Nodes != nil {
		add("", d.adapter.Nodes.Holds(d.mesh, d.knobs, pods))
		for _, w := range d.waypoints() {
			add(w.Label, d.adapter.Nodes.Waypoints.Holds(d.mesh, w, pods))
		}
		keys, all := d.adapter.Nodes.Discovered(pods)
		if all {
			discovered = keys
		}
		for _, key := range keys {
			optional[key] = !all
		}
	}
	for i, s := range d.mesh.Services {
		if d.adapter.ServedByNode(d.mesh, s) {
			continue
		}
		holds := d.adapter.Mesh.Holds(d.mesh, d.knobs, i)
		if holds != nil {
			holds = append(holds, discovered...)
		}
		add(s.Name, holds)
	}
	return expected, optional
}
