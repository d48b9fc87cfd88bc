package run

import (
	"slices"
	"testing"

	"scaler.mesh/scaler/internal/experiment"
)

func TestCheckEnv(t *testing.T) {
	if err := checkEnv("controlPlane.env", []string{"A=b", "_X1=", "PILOT_DEBOUNCE_AFTER=1s", "EMPTY="}); err != nil {
		t.Error(err)
	}
	for _, kv := range []string{"", "A", "=b", "1A=b", "A B=c", "GOMAXPROCS=1", "A=\x00"} {
		if checkEnv("controlPlane.env", []string{"OK=1", kv}) == nil {
			t.Errorf("%q: want an error", kv)
		}
	}
}

func TestLastProcessors(t *testing.T) {
	all := []int{0, 1, 4, 5}
	for n, want := range map[int][]int{0: nil, 1: {5}, 3: {1, 4, 5}, 4: nil, 9: nil} {
		if got := lastProcessors(all, n); !slices.Equal(got, want) {
			t.Errorf("the last %d of %v: got %v, want %v", n, all, got, want)
		}
	}
	if len(experiment.Processors()) == 0 {
		t.Error("no processors")
	}
}
