package capacity

import (
	"slices"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// Figures from a control plane's own metrics, absent if it has none: the mean time that a
// push waited in the queue, and the responses that it sent.
const (
	queueMetric  = "queueSeconds"
	pushesMetric = "pushes"
	// certificatesMetric counts the certificate requests.
	certificatesMetric = "certificateRequests"
)

// sentLess is the ratio of responses per sidecar, in the largest mesh to a smaller one,
// below which sidecars of the largest were sent less.
const sentLess = 0.9

// onePace leaves out small sizes that were in another regime than the largest. Below some
// size a control plane pushes every change to every sidecar separately. Above it pushes
// queue for longer than the debounce, so that the pushes that wait for the same sidecar
// are merged: then it is fully loaded while pods arrive, and holds everything that is in
// progress. A line through both regimes would fit neither; the planned mesh is in the
// upper one. If pods arrive so slowly that a sidecar is sent as much in the largest mesh
// as in smaller ones, pushes do not merge more there, and all sizes are in one regime.
func (s *sample) onePace(target int, known map[string]*record.Limits) {
	queued := map[int]bool{}
	for _, size := range s.sizes() {
		queued[size.Pods] = s.queued(size.Pods, known)
	}
	s.queuing = queued[s.largest()]
	if s.merging = s.queuing && s.mergesMore(); !s.merging {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(s.runs), func(r *record.Run) bool { return !queued[r.PodCount()] })
	upper := sample{runs: rest}
	left := len(queued) - len(upper.sizes())
	switch {
	case left == 0 || target < rest[0].PodCount():
	case len(upper.sizes()) >= sizesNeeded && len(lacks(upper.sizes(), target)) > len(lacks(s.sizes(), target)):
		s.warn("runs", "the sizes at which pushes queued, of %d pods and more, were run once each: smaller sizes are used, too, although a pod costs less there than the line through the larger sizes states", rest[0].PodCount())
	case len(upper.sizes()) < sizesNeeded:
		s.warn("runs", "pushes queued at %s of %d only: smaller sizes are used, too, although a pod costs less there than the line through the larger sizes states", output.Many(len(upper.sizes()), "size"), len(queued))
	default:
		s.warn("runs", "%s below %d pods not used: pushes did not queue there as they do at larger sizes", output.Many(left, "size"), rest[0].PodCount())
		s.runs = rest
	}
}

// queued reports whether pushes waited for longer than the debounce in the median run
// of a size.
func (s *sample) queued(pods int, known map[string]*record.Limits) bool {
	var waits []float64
	debounce := 0.0
	for _, r := range s.runs {
		if r.PodCount() != pods || r.Own == nil {
			continue
		}
		if wait, ok := r.Own.Rollout[queueMetric]; ok {
			waits = append(waits, wait)
		}
		if l := meshOf(r, known).limits; l != nil {
			debounce = l.DebounceSeconds
		}
	}
	slices.Sort(waits)
	return debounce > 0 && len(waits) > 0 && waits[len(waits)/2] > debounce
}

// mergesMore reports whether the proxies of the largest mesh were sent fewer responses
// each than those of a smaller one, as happens if pushes merge more in larger meshes. If
// that is not known, the result is true.
func (s *sample) mergesMore() bool {
	each := map[int]float64{} // of a size, to one sidecar, in all its runs
	for _, r := range s.runs {
		if r.Own == nil || r.Own.Rollout[pushesMetric] == 0 {
			return true
		}
		each[r.PodCount()] += r.Own.Rollout[pushesMetric] / pointOf(r).proxies
	}
	most, last := 0.0, 0.0
	for _, size := range s.sizes() {
		last = each[size.Pods] / float64(size.Runs)
		most = max(most, last)
	}
	return last < sentLess*most
}
