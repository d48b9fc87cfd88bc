package xdsprobe

import (
	"testing"
	"testing/synctest"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// A certificate's latency counts from its own request, whatever else is requested
// meanwhile, and one that comes unasked has none.
func TestSecretTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times secretTimes
		begin := time.Now()
		next := func() { <-time.After(time.Second) }
		answered := func(names ...string) map[string]time.Duration {
			var resources []*Resource
			for _, name := range names {
				resources = append(resources, &Resource{Resource: proxy.Resource{Key: convergence.Key{Type: convergence.SDS, Name: name}}})
			}
			times.answer(resources)
			after := map[string]time.Duration{}
			for name, at := range times.answered {
				after[name] = at.Sub(begin)
			}
			return after
		}
		check := func(what string, got map[string]time.Duration, name string, want time.Duration) {
			t.Helper()
			if at, ok := got[name]; !ok || at != want {
				t.Errorf("%s: %s was requested at %v, want %v", what, name, got, want)
			}
		}
		times.request([]string{"certificate", "gone"})
		next()
		times.request([]string{"roots"})
		next()
		check("the first answer", answered("certificate"), "certificate", 0)
		if got := answered("certificate"); len(got) != 0 {
			t.Errorf("what comes unasked was requested at %v", got)
		}
		check("the second", answered("certificate", "roots"), "roots", time.Second)
		times.forget([]string{"gone"})
		if got := answered("gone"); len(got) != 0 {
			t.Errorf("what is not subscribed to any more was requested at %v", got)
		}
		times.request([]string{"certificate"}) // on a new stream
		next()
		times.request([]string{"certificate"}) // and on the next
		check("after two reconnects", answered("certificate"), "certificate", 3*time.Second)
	})
}
