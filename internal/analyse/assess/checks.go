package assess

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/analyse/diff"
	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// version checks that the version that production runs was rehearsed, and the one that is to be assessed.
func (f Facts) version() Check {
	c := Check{Name: "version", Outcome: Holds, Basis: true}
	ran := f.From.Run.Environment.ControlPlane.Version
	var replaced []string
	for _, r := range []*record.Run{f.From.Run, f.Onto.Run} {
		if asked := r.Replaced(record.AboutVersion); asked != "" {
			replaced = append(replaced, fmt.Sprintf("%s was rehearsed in place of %s, whose images could not be had", r.Environment.ControlPlane.Version, asked))
		}
	}
	switch production := f.Captured.Release; {
	case replaced != nil:
		c.Outcome, c.Text = Unknown, strings.Join(replaced, "; ")
	case f.Captured.Stated && production != "" && production != ran:
		c.Text = fmt.Sprintf("%s was rehearsed, as --from states; the mesh file has %s", ran, production)
	case f.Captured.Stated:
		c.Text = fmt.Sprintf("%s was rehearsed, as --from states", ran)
	case production == "":
		c.Outcome, c.Text = Unknown, "the version that production runs is not known"
	case production != ran:
		c.Outcome, c.Text = Unknown, fmt.Sprintf("production runs %s, which scaler does not have; %s was rehearsed", production, ran)
	default:
		c.Text = ran + ", which production runs, was rehearsed"
	}
	return c
}

// state checks that the captured version reached the captured state.
func (f Facts) state() Check {
	c := Check{Name: "captured state", Basis: true}
	r := f.From.Run
	limit := float64(r.Environment.ControlPlane.MemoryLimitBytes)
	switch used := f.Captured.Observed("memory", ""); {
	case f.From.completed():
		c.Outcome, c.Text = Holds, fmt.Sprintf("%s came to rest with istiod %s", proxiesText(r), r.Environment.ControlPlane.Version)
	case f.From.OutOfMemory && used != nil && used.Max/float64(max(1, f.Captured.Replicas)) < limit:
		c.Outcome, c.Text = Unknown, fmt.Sprintf("istiod %s was killed in %s for exceeding its memory limit of %s, below which production stayed (%s at most): the replay needs more than production",
			r.Environment.ControlPlane.Version, last(r), output.Bytes(limit), output.Bytes(used.Max))
	case f.From.OutOfMemory:
		c.Outcome, c.Text = Broken, fmt.Sprintf("istiod %s was killed in %s for exceeding its memory limit of %s: an upgrade, which starts all pods again, needs more than it has",
			r.Environment.ControlPlane.Version, last(r), output.Bytes(limit))
	default:
		c.Outcome, c.Text = Unknown, fmt.Sprintf("with istiod %s, which production runs, the replay did not come to rest in %s within the time limit: the rehearsal does not match production", r.Environment.ControlPlane.Version, last(r))
	}
	return c
}

// agreement is the result of comparing the memory of a replay with production's.
type agreement int

const (
	unknown agreement = iota
	agrees
	above // the replay needs more than production
	below // production needs more than the replay
)

// model compares the memory of the replay with production's: what production used half of the time and at most, with
// what the replay used from rest to the peak of its rollout.
func (f Facts) model() (Check, agreement) {
	c := Check{Name: "memory of the model", Outcome: NotChecked}
	used := f.Captured.Observed("memory", "")
	plane := f.From.Run.ControlPlane
	switch {
	case used == nil:
		c.Text = f.noHistory("memory")
		return c, unknown
	case f.share() > 0:
		c.Text = f.onlyPart()
		return c, unknown
	case plane == nil || level(plane.Steady).Mean == nil || level(plane.Rollout).Peak == nil:
		c.Text = "the replay did not come to rest"
		return c, unknown
	}
	rest, peak := *level(plane.Steady).Mean*(1-spread), *level(plane.Rollout).Peak*(1+spread)
	c.Text = fmt.Sprintf("production used %s (p50) to %s (most) in %s, the replay %s (at rest) to %s (rollout), with ±%s",
		output.Bytes(used.P50), output.Bytes(used.Max), spanText(f.Captured.History), output.Bytes(*level(plane.Steady).Mean), output.Bytes(*level(plane.Rollout).Peak), output.Percent(spread))
	switch {
	case used.Max < rest:
		c.Outcome = Holds
		c.Text += ": the replay needs more than production, so its memory is an upper bound"
		return c, above
	case used.P50 > peak:
		c.Outcome = Unknown
		c.Text += ": production needs more than the replay, so the replay's memory does not predict production's"
		return c, below
	}
	c.Outcome = Holds
	return c, agrees
}

// processorTime compares the cores of the replay with production's, in reference processors, where the speed of production's nodes is known: what
// production used half of the time and at most, with what the replay used from rest to the peak of its rollout. No verdict is made
// from it: production has events that the replay does not make.
func (f Facts) processorTime() Check {
	c := Check{Name: "processor time of the model", Outcome: Unknown, Aside: true}
	used, nodes := f.Captured.Observed("processorTime", ""), f.Captured.NodeSpeed
	plane := f.From.Run.ControlPlane
	_, whyNot := f.nodeSpeed(f.From.Run)
	switch {
	case used == nil:
		c.Outcome, c.Text = NotChecked, f.noHistory("processorTime")
	case whyNot != "":
		c.Text = whyNot
	case plane == nil || plane.Steady == nil || plane.Steady.Cores == nil || plane.Steady.Cores.Mean == nil || plane.Rollout == nil || plane.Rollout.Cores == nil || plane.Rollout.Cores.Peak == nil:
		c.Text = "the replay did not come to rest"
	default:
		plane = f.From.Run.OnProcessor(1).ControlPlane // the reference processor
		rest, peak := *plane.Steady.Cores.Mean, *plane.Rollout.Cores.Peak
		low, high := used.P50*nodes.Speed, used.Max*nodes.Speed
		c.Text = fmt.Sprintf("production used %s (p50) to %s (most) reference processors in %s, the replay %s (at rest) to %s (peak of its rollout)",
			output.Digits(low, 2), output.Digits(high, 2), spanText(f.Captured.History), output.Digits(rest, 2), output.Digits(peak, 2))
		if low > peak {
			c.Text += ": production has more to do than the replay"
			return c
		}
		if high < rest {
			c.Text += ": the replay needs more than production"
		}
		c.Outcome = Holds
	}
	return c
}

// onlyPart states why figures of a share of the pods are not compared with production's.
func (f Facts) onlyPart() string {
	return fmt.Sprintf("%s of the pods were rehearsed, and production has all", f.share())
}

// spanText returns the length of a history, which may be of days or of some minutes.
func spanText(h *capture.History) string {
	length := h.To.Sub(h.From)
	if days := int(length.Hours() / 24); days > 0 {
		return output.Many(days, "day")
	}
	return length.String()
}

// noHistory states why a figure has no history.
func (f Facts) noHistory(figure string) string {
	if f.Captured.History == nil {
		return "the mesh file has no history (capture --prometheus, or --observe)"
	}
	for _, m := range f.Captured.History.Missing {
		if m.Figure == figure || m.Figure == "all" {
			return "the history of the mesh file does not have it: " + m.Why
		}
	}
	return "the history of the mesh file does not have it"
}

// noRate states why no changes were made at production's rate.
func (f Facts) noRate() string {
	if f.Captured.Observed("clusterEvents", "EndpointSlice update") == nil {
		return f.noHistory("clusterEvents")
	}
	return "the rate at which EndpointSlices change in the history is lower than can be made"
}

// ended checks how a step of the new version ended: killed, out of time, or done.
func ended(s Step, what string) (Check, bool) {
	switch r := s.Run; {
	case s.OutOfMemory:
		return Check{Outcome: Broken, Text: fmt.Sprintf("istiod was killed in %s for exceeding its memory limit of %s", last(r), output.Bytes(float64(r.Environment.ControlPlane.MemoryLimitBytes)))}, true
	case !s.completed():
		return Check{Outcome: Broken, Text: fmt.Sprintf("%s did not come to rest in %s within the time limit", what, last(r))}, true
	}
	return Check{Outcome: Holds}, false
}

// onto checks that the new version serves the mesh.
func (f Facts) onto() Check {
	c, over := ended(f.Onto, "the mesh")
	if c.Name = "new version"; !over {
		c.Text = fmt.Sprintf("%s came to rest with istiod %s", proxiesText(f.Onto.Run), f.Onto.Run.Environment.ControlPlane.Version)
	}
	return c
}

// proxiesText names all proxies of a mesh.
func proxiesText(r *record.Run) string {
	if withSidecars(r) {
		return fmt.Sprintf("all %d sidecars", r.PodCount())
	}
	return fmt.Sprintf("all proxies of the %d pods", r.PodCount())
}

// upgrade checks the move in waves.
func (f Facts) upgrade() Check {
	c, over := ended(f.Upgrade, "the mesh")
	if c.Name = "upgrade"; over {
		return c
	}
	u := f.Upgrade.Run.Upgrade
	if u == nil {
		c.Outcome, c.Text = Unknown, "the record has none"
		return c
	}
	waves, moved := 0, 0
	var lost []string
	for _, stage := range f.Upgrade.Run.UpgradeStages() {
		s := u.Stages[stage]
		if strings.HasPrefix(stage, "wave-") {
			waves++
			if s.Pods != nil {
				moved += *s.Pods
			}
		}
		if n := lostIn(s); n > 0 {
			lost = append(lost, fmt.Sprintf("%d in %s", n, stage))
		}
	}
	if lost != nil {
		c.Outcome, c.Text = Unknown, "certificates, configurations or pushes did not come within the time limit ("+strings.Join(lost, ", ")+"): whether requests fail for it was not tried"
		return c
	}
	c.Text = fmt.Sprintf("%s moved in %s, nothing was lost", output.Many(moved, "pod"), output.Many(waves, "wave"))
	if f.Captured.Replicas > 1 {
		c.Text += fmt.Sprintf("; each version had one istiod in place of %d, so that each needed more than a replica does", f.Captured.Replicas)
	}
	return c
}

// lostIn returns the number of observations that were lost in a stage.
func lostIn(s *record.UpgradeStage) (n int64) {
	add := func(l *record.Latency) {
		if l != nil {
			n += l.Lost
		}
	}
	add(s.Latencies.Certificate)
	add(s.Latencies.CompleteConfiguration)
	for _, side := range []*record.UpgradeSide{s.From, s.To} {
		if side != nil {
			for _, l := range side.Push {
				add(l)
			}
		}
	}
	return n
}

// recovery checks that proxies came back from the restart of an istiod, and from reconnecting all at once.
func (f Facts) recovery() Check {
	c := Check{Name: "recovery", Outcome: Holds}
	if len(f.Onto.Run.Faults) == 0 {
		c.Outcome, c.Text = NotChecked, "the new version did not come so far"
		return c
	}
	var times []string
	for _, fault := range f.Onto.Run.Faults {
		if fault.Seconds == nil {
			c.Outcome, c.Text = Broken, fmt.Sprintf("after %s the mesh did not converge again within the time limit", fault.Name)
			return c
		}
		times = append(times, fmt.Sprintf("%.1f s after %s", *fault.Seconds, fault.Name))
	}
	c.Text = "the mesh had converged again " + strings.Join(times, ", ")
	return c
}

// changes checks the changes at the rate of production.
func (f Facts) changes() Check {
	c := Check{Name: "changes at production's rate", Outcome: NotChecked}
	made := f.Onto.Run.Change
	switch {
	case f.Onto.Run.Scenario.Load.Changes.PerSecond == 0:
		c.Text = f.noRate()
	case made == nil || made.Push == nil:
		c.Text = "the new version did not come so far"
	case made.Push.Lost > 0:
		c.Outcome, c.Text = Unknown, fmt.Sprintf("at %s changes a second %d did not reach their proxies within the time limit", f.Onto.Run.Scenario.Load.Changes.PerSecond, made.Push.Lost)
	default:
		c.Outcome, c.Text = Holds, fmt.Sprintf("each of %s reached its proxies", f.Onto.Run.Scenario.Load.Changes)
	}
	return c
}

// configuration checks what proxies hold of the new version.
func (f Facts) configuration() Check {
	c := Check{Name: "configuration"}
	d := f.Diff
	if d == nil {
		c.Outcome, c.Text = NotChecked, "a version did not come so far"
		return c
	}
	var gone, effects []string
	rest, renamed := "nothing is left out", 0
	for _, g := range d.Groups {
		switch {
		case g.Op == diff.Renamed:
			renamed++
		case !removes(g):
		case slices.ContainsFunc(f.Captured.Patches, func(p Patch) bool { return p.lostIn(g) }):
			rest = "nothing is left out but parts of EnvoyFilters"
		default:
			gone = append(gone, fmt.Sprintf("%s of %s on %d of %d %s%s", partText(g), g.Class, g.Sidecars, g.OfSidecars, d.Proxies(), f.movedIn(g)))
		}
	}
	if renamed > 0 {
		rest += fmt.Sprintf(", %d renamed", renamed)
	}
	for _, e := range d.Effects {
		effects = append(effects, fmt.Sprintf("%s on %d", e.Effect, e.Sidecars))
	}
	switch {
	case len(d.Groups) > 0 && (d.From.NotQuiet || d.To.NotQuiet):
		c.Outcome, c.Text = Unknown, "an istiod still sent something when configurations were compared: differences may be of two moments (a longer phases.settle decides)"
	case len(d.OnlyFrom)+len(d.OnlyTo) > 0:
		c.Outcome, c.Text = Unknown, fmt.Sprintf("some %s existed with only one of the versions", d.Proxies())
	case gone != nil:
		c.Outcome, c.Text = Unknown, fmt.Sprintf("the new version leaves out %s: whether requests need it is not known", output.Many(len(gone), "part")+" ("+output.FirstOf(gone, 3)+")")
	case len(d.Groups) == 0:
		c.Outcome, c.Text = Holds, fmt.Sprintf("all %d %s hold the same as before", d.Sidecars, d.Proxies())
	default:
		c.Outcome, c.Text = Holds, fmt.Sprintf("%d of %d %s change in %s (%s), %s", d.Changed, d.Sidecars, d.Proxies(), output.Many(len(d.Groups), "way"), strings.Join(effects, ", "), rest)
	}
	return c
}

// removes reports whether a resource, or an element of a list in one, is gone.
func removes(g diff.Group) bool {
	return g.Op == diff.Removed && (g.Path == "" || strings.HasSuffix(g.Path, "]"))
}

// partText names what a group is about.
func partText(g diff.Group) string {
	if g.Path == "" {
		return output.FirstOf(g.Resources, 2)
	}
	return g.Path
}

// movedIn states in which waves the namespaces that have a difference are moved; "" where the record does not have it.
func (f Facts) movedIn(g diff.Group) string {
	var waves []string
	for _, stage := range f.Upgrade.Run.UpgradeStages() {
		for _, unit := range f.Upgrade.Run.Upgrade.Stages[stage].Moved {
			if !slices.Contains(waves, stage) && slices.ContainsFunc(g.Workloads, func(w diff.Workload) bool { return slices.Contains(unit.Namespaces, w.Namespace) }) {
				waves = append(waves, stage)
			}
		}
	}
	if waves == nil {
		return ""
	}
	return " (" + output.FirstOf(waves, 3) + ")"
}
