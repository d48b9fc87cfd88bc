package record

import (
	"encoding/json"
	"testing"
)

func TestStormBoundBy(t *testing.T) {
	istiod := &Limits{TokenReviewsPerSecond: 80, TokenReviewsBurst: 160}
	for _, c := range []struct {
		limits   *Limits
		replicas int
		issued   int64
		seconds  float64
		least    float64 // 0: the limit does not explain it
	}{
		{istiod, 1, 100, 0.5, 0}, // all at once
		{istiod, 1, 400, 3.1, 3}, // (400-160)/80
		{istiod, 1, 400, 2.9, 0}, // shorter than the limit allows
		{istiod, 1, 400, 10, 0},  // much longer than the limit explains
		{istiod, 1, 1600, 18.1, 18},
		{istiod, 2, 1600, 8.5, 8}, // each replica has a client
		{istiod, 2, 1600, 18.1, 0},
		{istiod, 0, 400, 3.1, 3}, // the number of replicas is not known
		{nil, 1, 400, 3.1, 0},    // a control plane without known limits
		{&Limits{StreamWaitSeconds: 1}, 1, 400, 3.1, 0},
	} {
		got := StormBoundBy(c.limits, c.replicas, c.issued, c.seconds)
		if (got != nil) != (c.least > 0) || got != nil && got.Seconds != c.least {
			t.Errorf("%d certificates in %g s are bound by %+v, want %g s", c.issued, c.seconds, got, c.least)
		}
	}
}

func TestStormSentence(t *testing.T) {
	for document, want := range map[string]string{
		`{}`: "",
		`{"boundBy":{"limit":"tokenReviews","perSecond":80,"atOnce":160,"seconds":3.0125}}`: "token reviews, limited to 80 per second after 160 at once: at least 3.01 s",
	} {
		var s CertificateStorm
		if err := json.Unmarshal([]byte(document), &s); err != nil {
			t.Fatal(err)
		}
		if got := s.BoundSentence(); got != want {
			t.Errorf("%s: %q, want %q", document, got, want)
		}
	}
}
