package record

import "fmt"

// StormLimit is a limit that can explain how long a certificate storm took. The list
// is closed.
type StormLimit string

// StormTokenReviews is the limit of the client through which the control plane has
// the API server review the token of each request.
const StormTokenReviews StormLimit = "tokenReviews"

// StormBound is the limit that explains the length of a certificate storm.
type StormBound struct {
	Limit     StormLimit `json:"limit"`
	PerSecond float64    `json:"perSecond"` // what the limit allows, of all replicas together
	AtOnce    float64    `json:"atOnce"`    // and allows at once before that
	Seconds   float64    `json:"seconds"`   // the time in which it allows the certificates issued
}

// stormTolerance is the largest ratio of a storm's time to the time that a limit requires
// with which the limit explains the storm.
const stormTolerance = 1.25

// StormBoundBy returns the limit of a control plane with so many replicas that
// explains why issuing certificates to all sidecars at once took so many seconds. It
// returns nil where none is known to: the storm was shorter than the limit allows, so
// that the limit did not hold, or much longer, or limits is nil. Each request takes
// one token review.
func StormBoundBy(limits *Limits, replicas int, issued int64, seconds float64) *StormBound {
	if limits == nil || limits.TokenReviewsPerSecond <= 0 {
		return nil
	}
	n := float64(max(1, replicas))
	b := &StormBound{Limit: StormTokenReviews, PerSecond: n * limits.TokenReviewsPerSecond, AtOnce: n * limits.TokenReviewsBurst}
	b.Seconds = (float64(issued) - b.AtOnce) / b.PerSecond
	if b.Seconds <= 0 || seconds < b.Seconds || seconds > stormTolerance*b.Seconds {
		return nil
	}
	return b
}

// BoundSentence returns the limit that explains the storm's length, as text; "" when
// none is known to.
func (s *CertificateStorm) BoundSentence() string {
	b := s.BoundBy
	if b == nil {
		return ""
	}
	of := string(b.Limit)
	if b.Limit == StormTokenReviews {
		of = "token reviews"
	}
	return fmt.Sprintf("%s, limited to %.4g per second after %.4g at once: at least %.3g s", of, b.PerSecond, b.AtOnce, b.Seconds)
}
