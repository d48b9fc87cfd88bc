package capacity

import (
	"fmt"
	"math"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/record"
)

// largeResponses is 1 in meshes whose pushes are of responses for which the control plane takes buffers of 1 MiB
// (record.Limits.LargeResponseBytes). They are in use while responses are sent, and kept until the second garbage
// collection after that, so that the memory of a larger mesh is higher by about the same amount whatever its size
// (docs/results/forecasts.md).
var largeResponses = term{"large responses", func(p point) float64 {
	if p.response > 1 {
		return 1
	}
	return 0
}, false}

// sizesOfBuffers is the number of sizes with, and without, large responses that a model
// needs: a single size that deviates looks like a step.
const sizesOfBuffers = 2

// wholeTypes are the types of xDS that are sent completely in each push of more than
// endpoints. Of clusters, delta xDS sends only those that changed.
var wholeTypes = []string{"LDS", "RDS", "CDS"}

// responseOf returns the size of a response of a type that a push sends completely, as a
// multiple of the limit above which a response is large. It is the size of the resources,
// without the few bytes of the response itself; 0 = not sent completely, or not known.
func responseOf(r *record.Run, kind string) float64 {
	l := r.Environment.ControlPlane.Limits
	if l == nil || l.LargeResponseBytes == 0 || r.XDS == nil || r.XDS.ConfigurationBytes == nil || kind == "CDS" && r.Scenario.Mesh.Sidecars.XDS != "sotw" {
		return 0
	}
	return r.XDS.ConfigurationBytes.ByType[kind] / l.LargeResponseBytes
}

// responsesOf returns responseOf for each run.
func responsesOf(runs []*record.Run, kind string) (all []float64) {
	for _, r := range runs {
		all = append(all, responseOf(r, kind))
	}
	return all
}

// largestResponse returns the size of the largest response that a push of a run sends
// completely, in the unit of responseOf.
func largestResponse(r *record.Run) (largest float64) {
	for _, kind := range wholeTypes {
		largest = max(largest, responseOf(r, kind))
	}
	return largest
}

// showsBuffers reports whether observations show what largeResponses costs.
func showsBuffers(seen []observation) bool {
	small, large := bySizeOfResponse(points(seen))
	return small >= sizesOfBuffers && large >= sizesOfBuffers
}

// bySizeOfResponse counts the sizes without large responses, and with them. Where responses are not known, it has none.
func bySizeOfResponse(seen []point) (small, large int) {
	counted := map[point]bool{}
	for _, p := range seen {
		switch {
		case p.response == 0:
			return 0, 0
		case counted[p.size()]:
		case largeResponses.of(p) > 0:
			large++
		default:
			small++
		}
		counted[p.size()] = true
	}
	return small, large
}

// warnOfBuffers states that too few sizes have large responses, or are without them, to show what the buffers of these
// need. That matters if the planned mesh and a run differ in it, or the runs do.
func (s *sample) warnOfBuffers(t target) {
	var seen []point
	var pods [][]float64
	for _, r := range s.runs {
		p := pointOf(r)
		seen, pods = append(seen, p), append(pods, []float64{1, p.pods})
	}
	small, large := bySizeOfResponse(seen)
	planned := largeResponses.of(t.point) > 0
	switch {
	case small == 0 && large == 0, small >= sizesOfBuffers && large >= sizesOfBuffers:
		return // not known, or shown
	case large == 0 && !planned, small == 0 && planned:
		return // of no matter
	}
	from := math.Inf(1)
	for _, kind := range wholeTypes {
		if fit, err := stats.LeastSquares(pods, responsesOf(s.runs, kind), confidence); err == nil && fit.Terms[1].Value > 0 {
			from = min(from, (1-fit.Terms[0].Value)/fit.Terms[1].Value)
		}
	}
	where := ""
	if !math.IsInf(from, 1) {
		where = fmt.Sprintf(" from about %.0f pods on", from)
	}
	c := s.runs[0].Environment.ControlPlane
	s.warn(rolloutMemory, "%s pushes responses of more than %.0f KiB%s, for each of which it takes a buffer of 1 MiB, so that its memory is higher there by a step: %s below that and %d above, and %d of each are needed to forecast it",
		c.Name, c.Limits.LargeResponseBytes/(1<<10), where, sizesWere(small), large, sizesOfBuffers)
}
