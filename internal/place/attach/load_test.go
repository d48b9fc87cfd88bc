package attach

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
)

// steadyUse uses so many cores since it began.
type steadyUse struct {
	measure.Source
	cores float64
	began time.Time
}

func (s steadyUse) Read() (measure.Reading, error) {
	now := time.Now()
	return measure.Reading{At: now, CPU: time.Duration(s.cores * float64(now.Sub(s.began)))}, nil
}

// The cores of all replicas are added.
func TestCoresOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		instances := []controlplane.Instance{{Usage: steadyUse{cores: 0.5, began: time.Now()}}, {Usage: steadyUse{cores: 1.25, began: time.Now()}}}
		if cores, err := coresOf(t.Context(), instances, loadWindow); err != nil || cores != 1.75 {
			t.Errorf("%v cores, %v, want 1.75", cores, err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := coresOf(ended, instances, loadWindow); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of its context: %v", err)
		}
	})
	if _, err := coresOf(t.Context(), nil, loadWindow); err == nil {
		t.Error("the cores of a control plane whose metrics are not known are known")
	}
}
