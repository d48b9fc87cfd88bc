package run

import (
	"testing"
	"testing/synctest"
	"time"

	"scaler.mesh/scaler/pkg/scenario"
)

// The time limit of proxies that are there before the mesh is that of the mesh, slowed down once.
func TestAwaitProxies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := DefaultSpec()
		s.Phases.ConvergeTimeout, s.Instrument.Dilation.Factor = scenario.Duration(time.Minute), 3
		r := &run{spec: s.onMachine()}
		begin := time.Now()
		err := r.awaitProxies(t.Context(), func() (done bool, state string) { return false, "none is ready" })
		if want := "starting proxies: none is ready after 3m0s"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
		if waited := time.Since(begin); waited != 3*time.Minute {
			t.Errorf("waited for %s", waited)
		}
	})
}
