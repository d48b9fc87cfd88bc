package changes

import (
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/scenario"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		rate   scenario.Rate
		length time.Duration
		ok     bool
	}{
		{5, 30 * time.Second, true},
		{1000, 100 * time.Second, true},
		{1000, 101 * time.Second, false},
	} {
		if err := Check(scenario.Changes{PerSecond: c.rate, Kind: scenario.EndpointChange}, c.length); (err == nil) != c.ok {
			t.Errorf("%s for %s: %v", c.rate, c.length, err)
		}
	}
}
