package changes

import (
	"slices"
	"testing"

	"scaler.mesh/scaler/internal/topology"
)

// A Service that lists several workloads is changed once, whichever of its ports is listed first.
func TestOnceEach(t *testing.T) {
	listings := []topology.Listing{{Namespace: "a", Service: "web", Port: "http"}, {Namespace: "a", Service: "web", Port: "admin"}, {Namespace: "b", Service: "web", Port: "http"}}
	if got := onceEach([]int{2, 1, 0}, func(i int) topology.Listing { return listings[i] }); !slices.Equal(got, []int{2, 1}) {
		t.Errorf("%v, want one of each Service", got)
	}
}
