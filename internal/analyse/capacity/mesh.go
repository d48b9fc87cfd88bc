package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// target is the planned mesh, as far as the runs determine it.
type target struct {
	point
	services int
	perNode  int       // pods of a node whose proxy serves them; 0 = each pod has its own, or the mesh is captured
	nodes    int       // that have a proxy each
	streams  int       // of all proxies, where they are not all sidecars
	own      int       // pods that have a proxy each
	captured *Captured // nil = the mesh is synthetic
}

// aim makes the target: its services, by the ratio of the largest run unless they are
// given or those of a captured mesh, its nodes, and the configuration of a proxy. Configuration grows with services,
// pods and nodes; if these grew in step, only a mesh of the same ratio can be forecast.
func (s *sample) aim(o Options) (target, error) {
	last := s.runs[len(s.runs)-1]
	ratio := float64(last.ServiceCount()) / float64(last.PodCount())
	t := target{point: point{pods: float64(o.Pods), proxies: float64(o.Pods)}, services: o.Services, own: o.Pods}
	if s.growth != nil {
		if err := s.aimCaptured(&t, o); err != nil {
			return t, err
		}
	}
	if t.services == 0 {
		t.services = max(1, int(math.Ceil(ratio*float64(o.Pods)-1e-9)))
	}
	if err := s.aimNodes(&t, o); err != nil {
		return t, err
	}
	var rows [][]float64
	var held []float64
	var where []point
	ofServices := false // the effects of services and of pods are separate
	for _, r := range s.runs {
		n, services := float64(r.PodCount()), float64(r.ServiceCount())
		if s.growth == nil && math.Abs(services-ratio*n) > 1 { // the services of a captured mesh follow from its pods
			ofServices = true
		}
		p := pointOf(r)
		where = append(where, p)
		if p.configuration > 0 {
			rows, held = append(rows, []float64{1, n, services, p.proxies}), append(held, p.configuration)
		}
	}
	if off := math.Abs(float64(t.services)-ratio*t.pods) > 1; off && !ofServices && s.growth == nil {
		if !o.Force {
			return t, scenario.Refuse("services", o.Services, "%.0f, as all runs have %.3g services for each pod: run others with 'scaler rollout --services', or --force",
				math.Ceil(ratio*t.pods-1e-9), ratio)
		}
		s.warn("target.services", "no run has another ratio of services to pods than %.3g: what services alone cost is not known", ratio)
	}
	at := []float64{1, t.pods, float64(t.services), t.proxies}
	reduced := func(row []float64) []float64 {
		kept := row[:2:2]
		if ofServices {
			kept = append(kept, row[2])
		}
		if separate(where) {
			kept = append(kept, row[3])
		}
		return kept
	}
	for i := range rows {
		rows[i] = reduced(rows[i])
	}
	fit, err := stats.LeastSquares(rows, held, confidence)
	if err != nil {
		s.warn("xds.configurationBytes.mean", "not known of enough runs: figures are fitted to the number of pods alone")
		return t, nil
	}
	t.configuration = max(0, fit.At(reduced(at)))
	for _, kind := range wholeTypes {
		if len(rows) < len(s.runs) {
			break // not known of all
		}
		if fit, err := stats.LeastSquares(rows, responsesOf(s.runs, kind), confidence); err == nil {
			t.response = max(t.response, fit.At(reduced(at)))
		}
	}
	return t, nil
}

// aimNodes sets the target's number of nodes with a proxy, if the runs have some.
func (s *sample) aimNodes(t *target, o Options) error {
	known := perNodes(s.runs)
	if kindOf(s.runs[0]) == sidecars || s.growth != nil {
		if o.PodsPerNode != 0 {
			return scenario.Refuse("podsPerNode", o.PodsPerNode, "none for runs of a captured mesh, or in which every pod has a proxy of its own")
		}
		return nil
	}
	const about = "target.podsPerNode"
	last := usualPerNode(s.runs)
	if t.perNode = cmp.Or(o.PodsPerNode, last); t.perNode < 1 {
		return errors.New("planning: the runs do not state how many pods a node has")
	}
	t.proxies = math.Ceil(t.pods / float64(t.perNode))
	t.nodes, t.streams, t.own = int(t.proxies), int(t.proxies), 0
	least, most := known[0], known[len(known)-1]
	if largest := slices.MaxFunc(s.runs, func(a, b *record.Run) int { return a.Proxies.Nodes - b.Proxies.Nodes }).Proxies.Nodes; len(known) > 1 && t.proxies > float64(largest) {
		s.warn("target.nodes", "no run had more than %s: that a node costs as much in a larger mesh is assumed", output.Many(largest, "node"))
	}
	switch {
	case len(known) > 1 && (t.perNode < least || t.perNode > most):
		s.warn(about, "runs have %d to %d pods for each node: %d is beyond them", least, most, t.perNode)
	case len(known) > 1:
	case t.perNode == last:
		s.warn(about, "the plan holds for %s for each node only: pods and nodes grew together in all runs, and what a node costs is in the cost of its pods. Runs with another --pods-per-node separate them", output.Many(last, "pod"))
	case !o.Force:
		return scenario.Refuse("podsPerNode", t.perNode, "%d, as all runs have: run others with 'scaler rollout --pods-per-node', which separate nodes from pods, or --force", last)
	default:
		s.warn(about, "forced: no run has other than %s for each node: what a node costs is taken to be a part of what its pods cost", output.Many(last, "pod"))
	}
	return nil
}

// usualPerNode returns the number of pods per node in most runs of the largest size,
// which is the size of the last run.
func usualPerNode(runs []*record.Run) (usual int) {
	times := map[int]int{}
	for _, r := range runs {
		if n := r.Scenario.Mesh.PodsPerNode; r.PodCount() == runs[len(runs)-1].PodCount() {
			if times[n]++; times[n] > times[usual] {
				usual = n
			}
		}
	}
	return usual
}

// perNodes returns the numbers of pods per node in the runs, ascending.
func perNodes(runs []*record.Run) []int {
	var all []int
	for _, r := range runs {
		all = append(all, r.Scenario.Mesh.PodsPerNode)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// forecast fits a figure to the runs that have it. The error states why that is not
// possible: too few runs have it, unless it is forced.
func (f figure) forecast(s *sample, t target, o Options) (forecast, error) {
	chosen, good := f.choose(s, o.Pods)
	used, seen, bases := f.observations(chosen, t.configuration != 0)
	if skipped := len(chosen) - len(used); skipped > 0 && len(used) > 0 {
		s.warn(f.name, "%s of %d not used: the figure is not recorded there, or not above its value without a mesh", output.Many(skipped, "run"), len(chosen))
	}
	sizes := sizesOf(used)
	if len(sizes) < 2 {
		return forecast{}, errNoModel
	}
	if missing := lacks(sizes, o.Pods); len(missing) > len(lacks(s.sizes(), o.Pods)) {
		if !o.Force {
			return forecast{}, fmt.Errorf("not forecast: of the runs that have it, %s: %s, or --force", missing[0], advice(s, o))
		}
		s.warn(f.name, "forced: of the runs that have it, %s", strings.Join(missing, "; "))
	}
	model, err := f.model(seen)
	if err != nil {
		return forecast{}, err
	}
	made := forecast{estimate: model.forecast(t.point), parts: model.parts(kindOf(used[0])), good: good}
	switch {
	case !f.merges || good || !configurationGrows(seen):
	case s.merging:
		made.merge(s, f.name, t.point, seen)
	case s.queuing:
		s.warn(f.name, "pushes queued, though sidecars of the largest mesh were each sent as much as those of smaller ones, within a tenth: in one so large that they merge more it costs less")
	}
	made.raise(bases)
	if f.unit() == secondsUnit { // cores are processor time, too
		made.estimate = s.elsewhere(made.estimate)
	}
	switch {
	case !made.bounded:
		s.warn(f.name, "no interval: there are as many runs as terms, so that the request follows from the forecast alone")
	case model.astray:
		s.warn(f.name, "the sizes deviate from the line by more than repeats of one size differ: the interval is that of %s, not of %s", output.Many(model.sizes(), "size"), output.Many(len(used), "run"))
	case model.freedom <= 1 && model.within > 0:
		s.warn(f.name, "the fit is of %s and %s: it could hardly show an error that all runs of a size share, and the interval holds if there is none", output.Many(model.sizes(), "size"), output.Many(len(model.terms), "term"))
	}
	return made, nil
}

// observations returns the increase of a figure over its value without a mesh, for each
// run that has both, together with these runs and the values without a mesh. Without
// known, configuration is not known.
func (f figure) observations(runs []*record.Run, known bool) (used []*record.Run, seen []observation, bases []float64) {
	for _, r := range runs {
		v, base := f.of(r), f.before(r)
		if v == nil || base == nil || *v <= *base {
			continue
		}
		p := pointOf(r)
		if !known {
			p.configuration = 0
		}
		used, seen, bases = append(used, r), append(seen, observation{point: p, value: *v - *base}), append(bases, *base)
	}
	return used, seen, bases
}

// choose returns the runs whose figure is good, if there are enough of them, and reports
// whether it found those.
func (f figure) choose(s *sample, pods int) (chosen []*record.Run, isGood bool) {
	if f.good == nil {
		return s.runs, true
	}
	var all, good []*record.Run
	for _, r := range s.runs {
		if f.of(r) == nil {
			continue
		}
		all = append(all, r)
		if f.good(r) {
			good = append(good, r)
		}
	}
	worse := output.Many(len(all)-len(good), "run")
	switch {
	case len(good) == len(all):
		return s.runs, true
	case len(sizesOf(good)) < 2, len(lacks(sizesOf(good), pods)) > len(lacks(sizesOf(all), pods)):
		s.warn(f.name, "%s of %d are uncertain, and used because too few others are left: %s", worse, len(all), f.warning)
		return s.runs, false
	default:
		s.warn(f.name, "%s of %d are uncertain, and not used: %s", worse, len(all), f.warning)
		return good, true
	}
}

// forecast is an estimate with its model.
type forecast struct {
	estimate
	parts []Part
	good  bool // of runs whose figure is what its name says
}

// merge extends an interval down to the forecast for the case that pushes merge so much
// that every further pod costs as much as the previous one. If a control plane does not
// have the processors to push each change, the changes that wait for a sidecar are
// merged, and it uses all its processors while pods arrive: then a line with a constant
// applies instead of the bytes. Runs of smaller meshes do not show how near a larger mesh
// comes to that. The deviation of runs from that line is assumed to be the same as from
// the model: its own residuals would only show that the sizes so far are not on a line.
func (f *forecast) merge(s *sample, name string, p point, seen []observation) {
	if !f.bounded || f.value <= 0 {
		return
	}
	line, err := fit([]term{offset, pods}, seen)
	if err != nil {
		s.warn(name, "pushes queued and merged, and may merge more in a larger mesh: by how much less that would cost is not known")
		return
	}
	if low := line.at(p) * f.low / f.value; low < f.low {
		s.warn(name, "pushes queued and merged, and may merge more in a larger mesh: the interval begins where every further pod costs what those before did")
		f.low = max(0, low)
	}
}

// raise adds to a forecast the mean of the values without a mesh.
func (f *forecast) raise(bases []float64) {
	base := 0.0
	for _, b := range bases {
		base += b / float64(len(bases))
	}
	f.estimate = f.plus(base)
	if base == 0 {
		return
	}
	if f.parts[0].Term == constant.name {
		f.parts[0].Value += base
		return
	}
	f.parts = append([]Part{{constant.name, base}}, f.parts...)
}

// mean returns the mean of a figure over runs; nil if none has it.
func mean(runs []*record.Run, of func(*record.Run) *float64) *float64 {
	sum, n := 0.0, 0.0
	for _, r := range runs {
		if v := of(r); v != nil {
			sum, n = sum+*v, n+1
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / n)
}
