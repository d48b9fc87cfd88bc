package capacity

import (
	"fmt"
	"math"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/stats"
)

// pooledResponse is the size in bytes of the largest response for which gRPC for Go takes a buffer of about its
// size. For a larger one, up to 1 MiB, it takes a buffer of 1 MiB: the tiers of google.golang.org/grpc/mem,
// from which istiod's encoder takes its buffers, are 256 bytes, 4, 16 and 32 KiB, and 1 MiB.
const pooledResponse = 32 << 10

// largeResponses is 1 in meshes whose pushes are of responses for which gRPC takes buffers of 1 MiB. They are
// in use while responses are sent, and kept until the second garbage collection after that, so that the
// memory of a larger mesh is higher by about the same amount whatever its size
// (docs/results/2026-11-25-large-responses.md).
var largeResponses = term{"responses above 32 KiB", func(p point) float64 {
	if p.whole > pooledResponse {
		return 1
	}
	return 0
}, false}

// sizesOfBuffers is how many sizes a model needs on each side of pooledResponse: one that is off by itself looks
// like a step.
const sizesOfBuffers = 2

// wholeTypes are the types of xDS whose responses istiod sends as a whole in each push of more than endpoints, if not for
// another reason: clusters are, where not only changes are sent.
var wholeTypes = []string{"LDS", "RDS", "CDS"}

// wholeOf is the size in bytes of a response of a type that a push sends as a whole. It is that of the resources,
// without the few bytes of the response itself; 0 = not sent as a whole, not known, or of another control plane.
func wholeOf(r *record.Run, kind string) float64 {
	if r.Environment.ControlPlane.Name != "istiod" || r.XDS == nil || r.XDS.ConfigurationBytes == nil || kind == "CDS" && r.Spec.XDS != "sotw" {
		return 0
	}
	return r.XDS.ConfigurationBytes.ByType[kind]
}

// largestWhole is the size in bytes of the largest response that a push of a run sends as a whole; 0 = not known.
func largestWhole(r *record.Run) (largest float64) {
	for _, kind := range wholeTypes {
		largest = max(largest, wholeOf(r, kind))
	}
	return largest
}

// showsBuffers reports whether observations show what largeResponses costs.
func showsBuffers(seen []observation) bool {
	small, large := bySizeOfResponse(points(seen))
	return small >= sizesOfBuffers && large >= sizesOfBuffers
}

// bySizeOfResponse counts the sizes on each side of pooledResponse. Where responses are not known, it has none.
func bySizeOfResponse(seen []point) (small, large int) {
	counted := map[point]bool{}
	for _, p := range seen {
		switch {
		case p.whole == 0:
			return 0, 0
		case counted[p.size()]:
		case p.whole > pooledResponse:
			large++
		default:
			small++
		}
		counted[p.size()] = true
	}
	return small, large
}

// doubtBuffers states that the planned mesh has larger responses than enough of the runs, whose memory then does not
// show what their buffers need, and which runs would.
func (s *sample) doubtBuffers(t target) {
	var seen []point
	var pods [][]float64
	for _, r := range s.runs {
		p := pointOf(r)
		seen, pods = append(seen, p), append(pods, []float64{1, p.pods})
	}
	small, large := bySizeOfResponse(seen)
	if small == 0 || large >= sizesOfBuffers || t.whole <= pooledResponse {
		return
	}
	from := math.Inf(1)
	for _, kind := range wholeTypes {
		if fit, err := stats.LeastSquares(pods, s.wholes(kind), confidence); err == nil && fit.Terms[1].Value > 0 {
			from = min(from, (pooledResponse-fit.Terms[0].Value)/fit.Terms[1].Value)
		}
	}
	where := ""
	if !math.IsInf(from, 1) {
		where = fmt.Sprintf(" from about %.0f pods on", from)
	}
	s.doubt(rolloutMemory, "istiod pushes responses of more than 32 KiB%s, for each of which it takes a buffer of 1 MiB, so that its memory is higher there by a step: %s so large, %d are needed to forecast it",
		where, were(large, "size"), sizesOfBuffers)
}

// wholes are the sizes of the responses of a type, in bytes, of all runs.
func (s *sample) wholes(kind string) (all []float64) {
	for _, r := range s.runs {
		all = append(all, wholeOf(r, kind))
	}
	return all
}
