package convergence_test

import (
	"fmt"
	"net/netip"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
)

// A sidecar is expected to hold a cluster and, as its load assignment, the endpoint that the API
// server lists. It has converged when it has acknowledged both and has its certificate.
func ExampleTracker() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	cluster := convergence.Key{Type: convergence.CDS, Name: "outbound|80||a"}
	assignment := convergence.Key{Type: convergence.EDS, Name: "outbound|80||a"}
	endpoint := convergence.Endpoints{netip.MustParseAddrPort("10.0.0.1:8080"): convergence.Healthy}

	tracker := convergence.New()
	scope := tracker.Scope([]convergence.Want{{Key: cluster}, {Key: assignment, Service: "one/a:http"}})
	tracker.SetEndpoints("one/a:http", endpoint, second(0))
	tracker.Add("pod-1", scope)
	tracker.FirstRequest("pod-1", second(1))
	tracker.Certified("pod-1", second(2))
	tracker.Update("pod-1", convergence.Update{
		ReceivedAt: second(3), AckedAt: second(3), Set: []convergence.Resource{{Key: cluster}},
	})
	fmt.Println(tracker.Missing(1))
	tracker.Update("pod-1", convergence.Update{
		ReceivedAt: second(4), AckedAt: second(5),
		Set: []convergence.Resource{{Key: assignment, Content: &convergence.Content{Endpoints: endpoint}}},
	})
	at, ok := tracker.Converged()
	fmt.Println(ok, at.Sub(start))
	// Output:
	// [pod-1: EDS outbound|80||a is not held]
	// true 5s
}

// A change that carries a marker is followed to every sidecar that it concerns.
func ExampleTracker_Follow() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	route := convergence.Key{Type: convergence.RDS, Name: "80"}
	tracker := convergence.New()
	scope := tracker.Scope([]convergence.Want{{Key: route}})
	tracker.Add("pod-1", scope)
	tracker.Add("pod-2", scope)

	following := tracker.Follow(convergence.Change{Marker: "scaler-probe-7"}, []string{"pod-1", "pod-2"})
	tracker.Update("pod-1", convergence.Update{
		ReceivedAt: start.Add(120 * time.Millisecond), AckedAt: start.Add(121 * time.Millisecond),
		Set: []convergence.Resource{{Key: route, Content: &convergence.Content{Markers: []string{"scaler-probe-7"}}}},
	})
	reached, lost, _ := following.Stop() // at the time limit
	fmt.Println("pod-1 after", reached["pod-1"].Sub(start))
	fmt.Println("lost:", lost)
	// Output:
	// pod-1 after 120ms
	// lost: [pod-2]
}
