package capacity

import (
	"slices"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// Figures that a control plane gives of itself, absent where it does not: the mean
// time that a push waited for its turn, and how many responses it sent.
const (
	queueMetric  = "queueSeconds"
	pushesMetric = "pushes"
	// certificatesMetric counts the certificate requests.
	certificatesMetric = "certificateRequests"
)

// sentLess is the share of what a sidecar of a smaller mesh was sent below which one
// of the largest was sent less.
const sentLess = 0.9

// onePace leaves out small sizes that were under another regime than the largest.
// Below some size a control plane pushes every change to every sidecar by itself.
// Above it pushes queue for longer than changes are collected for (the debounce),
// so that those that wait for the same sidecar become one: it then is as busy as it
// can be while pods come, and holds what is under way. A line through both regimes
// would be a curve of neither; what is planned for is in the upper one. Where pods come
// so slowly that a sidecar is sent as much in the largest mesh as in smaller ones,
// pushes merge no more there, and all sizes are under one regime.
func (s *sample) onePace(target int, known map[string]*record.Limits) {
	queued := map[int]bool{}
	for _, size := range s.sizes() {
		queued[size.Pods] = s.queued(size.Pods, known)
	}
	s.queuing = queued[s.largest()]
	if s.merging = s.queuing && s.mergesMore(); !s.merging {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(s.runs), func(r *record.Run) bool { return !queued[r.Spec.Pods] })
	upper := sample{runs: rest}
	left := len(queued) - len(upper.sizes())
	switch {
	case left == 0 || target < rest[0].Spec.Pods:
	case len(upper.sizes()) >= sizesNeeded && len(lacks(upper.sizes(), target)) > len(lacks(s.sizes(), target)):
		s.doubt("runs", "the sizes at which pushes queued, of %d pods and more, were run once each: smaller ones are used all the same, though they cost less than a line to larger ones has it", rest[0].Spec.Pods)
	case len(upper.sizes()) < sizesNeeded:
		s.doubt("runs", "pushes queued at %s of %d only: smaller ones are used all the same, though they cost less than a line to larger ones has it", output.Many(len(upper.sizes()), "size"), len(queued))
	default:
		s.doubt("runs", "%s below %d pods not used: pushes did not queue there as they do at larger sizes", output.Many(left, "size"), rest[0].Spec.Pods)
		s.runs = rest
	}
}

// queued reports whether pushes waited for longer than the debounce in the median run
// of a size.
func (s *sample) queued(pods int, known map[string]*record.Limits) bool {
	var waits []float64
	debounce := 0.0
	for _, r := range s.runs {
		if r.Spec.Pods != pods || r.Own == nil {
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
// each than those of a smaller one, as they are where pushes merge the more the larger
// the mesh. Where it is not known it is taken to be so.
func (s *sample) mergesMore() bool {
	each := map[int]float64{} // of a size, to one sidecar, in all its runs
	for _, r := range s.runs {
		if r.Own == nil || r.Own.Rollout[pushesMetric] == 0 {
			return true
		}
		each[r.Spec.Pods] += r.Own.Rollout[pushesMetric] / pointOf(r).proxies
	}
	most, last := 0.0, 0.0
	for _, size := range s.sizes() {
		last = each[size.Pods] / float64(size.Runs)
		most = max(most, last)
	}
	return last < sentLess*most
}
