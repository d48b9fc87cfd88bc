package run

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"scaler.mesh/scaler/pkg/scenario"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/record"
)

// minCycle is the shortest length of a cycle: reconnects take about a second, which
// must be short against it.
const minCycle = 10 * time.Second

func (s Spec) checkCycle(d controlplane.Driver) error {
	switch length := time.Duration(s.Phases.Cycle); {
	case length == 0:
		return nil
	case d.Proxy.ConnectionAge == 0:
		return scenario.Refuse("phases.cycle", length, "none with controlPlane.name %s, of which no age is known at which it closes connections", s.ControlPlane.Name)
	case length < minCycle || length > d.Proxy.ConnectionAge:
		return scenario.Refuse("phases.cycle", length, "from %s to %s, which is the age at which %s closes connections", minCycle, d.Proxy.ConnectionAge, s.ControlPlane.Name)
	}
	return nil
}

// turn is an action of a sidecar in a cycle.
type turn struct {
	at     time.Duration // since its beginning
	pod    string
	action worker.Action // Reset or Renew
}

// planCycle spreads over a length what the sidecars of pods do over an age of
// connections: each reconnects once, at a random moment, and as many as fall into that
// age renew their certificate, which each does after a time renewal; 0 = never. Sidecars
// that renew more often than they reconnect do so in steady already: none is added. The
// turns are in the order of time; the seed decides.
func planCycle(pods []string, length, age, renewal time.Duration, seed uint64) (turns []turn, renewals int) {
	random := rand.New(rand.NewPCG(seed, 0))
	moment := func() time.Duration { return time.Duration(random.Float64() * float64(length)) }
	for _, pod := range pods {
		turns = append(turns, turn{moment(), pod, worker.Reset})
	}
	if renewal > age {
		renewals = int(math.Round(float64(len(pods)) * age.Seconds() / renewal.Seconds()))
	}
	for _, i := range random.Perm(len(pods))[:renewals] {
		turns = append(turns, turn{moment(), pods[i], worker.Renew})
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.pod, b.pod)) })
	return turns, renewals
}

// cycle is the phase in which every sidecar reconnects once, and the certificates are renewed
// that are due in that time.
type cycle struct {
	length   time.Duration
	turns    []turn
	timeout  time.Duration // for all to be back
	section  *record.Cycle // of the record
	fleet    *fleet.Fleet
	timeline *phases.Timeline
	journal  *journal.Journal
}

// cycle lets the sidecars take their turns, if that was asked for, and waits until all are back.
func (r *run) cycle(ctx context.Context) error {
	length := time.Duration(r.spec.Phases.Cycle)
	if length == 0 {
		return nil
	}
	pods := r.fleet.Connected()
	age, renewal := r.spec.slowed(r.driver.Proxy.ConnectionAge), r.spec.renewal(r.driver)
	turns, renewals := planCycle(pods, length, age, renewal, r.spec.Mesh.Seed)
	phase := cycle{
		length: length, turns: turns, timeout: time.Duration(r.spec.Phases.ConvergeTimeout), fleet: r.fleet, timeline: r.timeline, journal: r.journal,
		section: &record.Cycle{
			Sidecars: len(pods), AgeSeconds: r.driver.Proxy.ConnectionAge.Seconds(),
			RenewalSeconds: renewal.Seconds() / r.spec.dilation(), Renewals: renewals,
		},
	}
	return phase.run(ctx)
}

func (c cycle) run(ctx context.Context) error {
	c.journal.Update(func(run *record.Run) { run.Cycle = c.section })
	background := c.fleet.Pods.Begin()
	limited, cancel := context.WithTimeoutCause(ctx, c.length+c.timeout, phases.ErrUnconverged)
	defer cancel()
	err := c.timeline.Measure(ctx, record.PhaseCycle, c.length, func(ctx context.Context) (record.EndedBy, error) {
		begin := time.Now()
		for _, t := range c.turns {
			if err := task.WaitUntil(ctx, begin.Add(t.at)); err != nil {
				return "", err
			}
			c.fleet.Act(t.action, t.pod)
		}
		if err := task.WaitUntil(ctx, begin.Add(c.length)); err != nil {
			return "", err
		}
		settled, err := c.fleet.AwaitSettled(limited)
		return c.timeline.EndedBy(ctx, limited, "cycle", settled, err)
	})
	_, returned := c.fleet.Pods.End(background)
	reconnect, saveErr := c.journal.SaveLatency("cycle.reconnect", background.Latencies.Reconnect)
	c.journal.Update(func(*record.Run) { c.section.Returned, c.section.Reconnect = &returned, reconnect })
	if errors.Is(err, phases.ErrUnconverged) {
		c.timeline.NotConvergedAgain("cycle", "", c.timeout)
	}
	return errors.Join(err, saveErr)
}

// measureCycle computes what a cycle costs, once the usage of its phase is known.
func (m measurement) measureCycle() {
	if c, p := m.document.Cycle, m.document.Phase(record.PhaseCycle); c != nil && p != nil && m.document.ControlPlane != nil {
		c.SetCores(m.document.ControlPlane.Steady, m.document.ControlPlane.Cycle, p.Seconds, m.document.SlowdownIn)
	}
}
