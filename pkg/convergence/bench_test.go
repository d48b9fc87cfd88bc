package convergence

import (
	"fmt"
	"maps"
	"testing"
)

// BenchmarkRollout measures all the work of following one rollout of 1600 sidecars,
// each configured for 160 services of ten pods, whose endpoints change three times
// for each pod (it appears, becomes ready, goes) while every sidecar acknowledges
// every change of every service: 4,800 changes, 7.7 million acknowledgements.
func BenchmarkRollout(b *testing.B) {
	const sidecars, services, podsEach = 1600, 160, 10
	for b.Loop() {
		tracker := New()
		var wants []Want
		keys := make([]Key, services)
		names := make([]string, services)
		for i := range services {
			names[i] = fmt.Sprintf("mesh-0/svc-%d:http", i)
			keys[i] = Key{EDS, "outbound|80||" + names[i]}
			wants = append(wants, Want{Key: keys[i], Service: names[i]}, Want{Key: Key{CDS, keys[i].Name}})
		}
		scope := tracker.Scope(wants)
		ids := make([]string, sidecars)
		var first []Resource
		for i := range services {
			first = append(first, Resource{Key: Key{CDS, keys[i].Name}}, Resource{keys[i], &Content{}})
		}
		for i := range ids {
			ids[i] = fmt.Sprintf("pod-%d", i)
			tracker.Add(ids[i], scope)
			tracker.FirstRequest(ids[i], second(1))
			tracker.Certified(ids[i], second(1))
			tracker.Update(ids[i], Update{AckedAt: second(1), Set: first})
		}
		now := make([]Endpoints, services)
		for i := range now {
			now[i] = make(Endpoints)
		}
		for change := range 3 * podsEach {
			set := make([]Resource, services)
			for i := range services {
				switch change % 3 {
				case 0:
					now[i][addr(change)] = Unhealthy
				case 1:
					now[i][addr(change-1)] = Healthy
				default:
					delete(now[i], addr(change-2))
				}
				eps := make(Endpoints)
				maps.Copy(eps, now[i])
				set[i] = Resource{keys[i], &Content{Endpoints: eps}}
				tracker.SetEndpoints(names[i], eps, second(float64(2+change)))
			}
			for _, id := range ids {
				tracker.Update(id, Update{AckedAt: second(float64(3 + change)), Set: set})
			}
		}
		if at, ok := tracker.Converged(); !ok || !at.Equal(second(2+3*podsEach)) {
			b.Fatalf("converged %v at %v", ok, at)
		}
	}
	acks := float64(sidecars * services * 3 * podsEach)
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/acks, "ns/ack")
}

// BenchmarkUpdate measures one acknowledged change of one resource.
func BenchmarkUpdate(b *testing.B) {
	tracker := New()
	scope := tracker.Scope([]Want{{Key: edsKey, Service: svc}})
	contents := []*Content{{Endpoints: eps(1, 2, 3)}, {Endpoints: eps(1, 2)}}
	for i, c := range contents {
		tracker.SetEndpoints(svc, c.Endpoints, second(float64(i)))
		holder := fmt.Sprintf("holder-%d", i)
		tracker.Add(holder, scope)
		tracker.Update(holder, Update{AckedAt: second(1), Set: []Resource{{edsKey, c}}})
	}
	tracker.Add("x", scope)
	updates := []Update{
		{AckedAt: second(3), Set: []Resource{{edsKey, contents[0]}}},
		{AckedAt: second(3), Set: []Resource{{edsKey, contents[1]}}},
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tracker.Update("x", updates[i%2])
	}
}
