package latency

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/measure"
)

// mortal is a process of a sidecar that ends.
type mortal struct {
	id      string
	started time.Time
	ended   bool
}

func (m *mortal) ID() string                   { return m.id }
func (m *mortal) Started() (time.Time, error)  { return m.started, nil }
func (*mortal) ExitCPU() (time.Duration, bool) { return 0, false }
func (m *mortal) Read() (measure.Reading, error) {
	if m.ended {
		return measure.Reading{}, measure.ErrEnded
	}
	return measure.Reading{At: time.Now(), CPU: time.Since(m.started), Resident: 1e6}, nil
}

// A sidecar that ended uses nothing in the rounds that follow: those would be figures of another set-up.
func TestUsageOfEndedSidecar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		generator, sidecar := &mortal{id: "generator", started: time.Now()}, &mortal{id: "sidecar", started: time.Now()}
		r := &run{sampler: measure.NewSampler(0), sampling: t.Context()}
		for _, one := range []*mortal{generator, sidecar} {
			if err := r.sampler.Watch(one.id, one); err != nil {
				t.Fatal(err)
			}
		}
		bed := &testbed{sampled: "generator", sidecars: []tierSidecars{{tier: clientTier, count: 1, names: []string{"sidecar"}}}}
		round := func() error {
			start, err := r.sampler.Edge()
			if err != nil {
				return err
			}
			time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
			return r.usage(&repeatRun{}, bed, &dataplane.Result{Start: start, End: time.Now()})
		}
		if err := round(); err != nil {
			t.Fatalf("while it runs: %v", err)
		}
		sidecar.ended = true
		if err := round(); err == nil || err.Error() != "reading sidecar sidecar: it has ended while requests were sent" {
			t.Errorf("after its end: error %v, want that it has ended", err)
		}
	})
}

// What can no longer be read ends a run after the round, not after hours.
var _ = It("has no usage after the last sample", func() {
	t := GinkgoTB()
	sampling, stop := context.WithCancelCause(t.Context())
	r := &run{sampler: measure.NewSampler(0), sampling: sampling}
	why := errors.New("the API server does not answer")
	stop(why)
	if err := r.usage(&repeatRun{}, &testbed{}, &dataplane.Result{}); !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
})
