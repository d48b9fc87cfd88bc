package convergence

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const svc = "ns/a:http"

var (
	edsKey = Key{EDS, "outbound|80||a"}
	cdsKey = Key{CDS, "outbound|80||a"}
	rdsKey = Key{RDS, "80"}
)

// story reports to a Tracker what happens, second by second, and keeps what it says.
type story struct {
	*Tracker
	t        *testing.T
	scope    *Scope
	complete []string // "id@second"
}

// begin returns a story of sidecars that want a cluster, its endpoints and a route.
func begin(t *testing.T) *story {
	s := &story{Tracker: New(), t: t}
	s.OnComplete = func(id string, at time.Time) {
		s.complete = append(s.complete, fmt.Sprintf("%s@%v", id, at.Sub(start).Seconds()))
	}
	s.scope = s.Scope([]Want{
		{Key: cdsKey},
		{Key: edsKey, Service: svc},
		{Key: rdsKey, Members: []string{"a.ns", "a"}},
	})
	return s
}

func second(n float64) time.Time { return start.Add(time.Duration(n * float64(time.Second))) }

// eps writes endpoints by number: 1 is healthy, -1 is the same one unhealthy.
func eps(numbers ...int) Endpoints {
	e := make(Endpoints)
	for _, n := range numbers {
		if n < 0 {
			e[addr(-n)] = Unhealthy
		} else {
			e[addr(n)] = Healthy
		}
	}
	return e
}

func (s *story) lists(at float64, numbers ...int) { s.SetEndpoints(svc, eps(numbers...), second(at)) }

// starts registers a sidecar, certified, that sends its first request and gets
// all but endpoints.
func (s *story) starts(id string, at float64) {
	s.Add(id, s.scope)
	s.FirstRequest(id, second(at))
	s.Certified(id, second(at))
	s.Update(id, Update{AckedAt: second(at), Set: []Resource{
		{cdsKey, nil}, {rdsKey, &Content{Members: []string{"a", "a.ns", "b"}}}}})
}

func (s *story) holds(id string, at float64, numbers ...int) {
	s.Update(id, Update{AckedAt: second(at), Set: []Resource{{edsKey, &Content{Endpoints: eps(numbers...)}}}})
}

func (s *story) wantComplete(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.complete); diff != "" {
		s.t.Errorf("complete (-want +got):\n%s", diff)
	}
}

// wantConverged checks since when all have converged; at < 0 means that they have
// not.
func (s *story) wantConverged(want float64) {
	s.t.Helper()
	at, ok := s.Converged()
	if ok != (want >= 0) || ok && !at.Equal(second(want)) {
		s.t.Errorf("converged %v at %v, want %v", ok, at.Sub(start), want)
	}
}

func TestControlPlaneAheadOfOurWatch(t *testing.T) {
	s := begin(t)
	s.lists(1, 1)
	s.starts("x", 2)
	s.holds("x", 3, 1, 2) // a state that we have not seen yet
	s.wantComplete()
	s.wantConverged(-1)
	s.lists(4, 1, 2)
	s.wantComplete("x@3") // when it was acknowledged, not when we learnt of it
	s.wantConverged(4)
}

func TestEndpointsThatAreNotReadyAreExpected(t *testing.T) {
	s := begin(t)
	s.lists(1, 1, -2, 3)
	s.starts("x", 2)
	s.holds("x", 4, 1, 3) // without 2, which is not ready
	s.wantComplete()
	s.wantConverged(-1)
	s.lists(5, 1, 2, 3)
	s.wantComplete()
	s.holds("x", 6, 1, 2, 3)
	s.wantComplete("x@6")
	s.wantConverged(6)
}

func TestReadyEndpointThatIsHeldAsNotReady(t *testing.T) {
	s := begin(t)
	s.lists(1, 1, 2)
	s.starts("x", 2)
	s.holds("x", 3, 1, -2)
	s.wantComplete()
	s.lists(4, 1, -2) // it was ready, and is not any more
	s.wantComplete("x@3")
}

func TestContentReplacedBeforeOurWatchCaughtUp(t *testing.T) {
	s := begin(t)
	s.lists(1, 1)
	s.starts("x", 2)
	s.holds("x", 3, 1, 2)
	s.holds("x", 4, 1, 2, 3)
	s.lists(5, 1, 2)
	s.wantComplete()
	s.lists(6, 1, 2, 3)
	s.wantComplete("x@3")
}

func TestContentOlderThanTheFirstRequest(t *testing.T) {
	s := begin(t)
	s.lists(1, 1)
	s.lists(2, 1, 2)
	s.starts("x", 3)
	s.holds("x", 4, 1)
	s.wantComplete()
	s.holds("x", 5, 1, 2)
	s.wantComplete("x@5")
	s.wantConverged(5)
}

func TestContentOfTheFirstRequestSuffices(t *testing.T) {
	s := begin(t)
	s.lists(1, 1)
	s.starts("x", 2)
	s.lists(3, 1, 2)
	s.holds("x", 4, 1)
	s.wantComplete("x@4")
	s.wantConverged(-1)
	s.holds("x", 5, 1, 2)
	s.wantConverged(5)
}

func TestFirstRequestTakesVersionsByTime(t *testing.T) {
	s := begin(t)
	s.lists(1, 1)
	s.lists(3, 1, 2)
	s.starts("x", 2) // reported late: at that moment the second change was to come
	s.holds("x", 4, 1)
	s.wantComplete("x@4")
}

func TestEndpointRemovedAndAddedAgain(t *testing.T) {
	s := begin(t)
	s.lists(1, 1, 2)
	s.starts("x", 1)
	s.holds("x", 2, 1, 2)
	s.wantConverged(2)
	s.lists(3, 1)
	s.wantConverged(-1)
	s.starts("y", 4)
	s.holds("y", 5, 1, 2) // older than y's first request, as far as is known
	s.wantComplete("x@2")
	s.lists(6, 1, 2) // y's was this state then, or one that cannot be distinguished from it
	s.wantComplete("x@2", "y@5")
	s.wantConverged(6) // x never knew, but from 3 to 6 it was wrong
}

func TestHealthFlapsBack(t *testing.T) {
	s := begin(t)
	s.lists(1, 1)
	s.lists(2, -1)
	s.lists(3, 1)
	s.starts("x", 4)
	s.holds("x", 5, -1)
	s.wantComplete() // unhealthy was over at the first request
	s.holds("x", 6, 1)
	s.wantComplete("x@6")
	s.wantConverged(6)
	s.lists(7, -1)
	s.wantConverged(-1)
	s.lists(8, 1)
	s.wantConverged(8)
}

func TestEmptyService(t *testing.T) {
	s := begin(t)
	s.starts("x", 1)
	s.wantComplete() // the resource must be held, empty as it is
	s.holds("x", 2)
	s.wantComplete("x@2")
	s.wantConverged(2)
	s.lists(3) // listed, but still without endpoints: no change
	s.wantConverged(2)
	s.lists(4, 1)
	s.lists(5)
	s.wantConverged(5)
}

// TestTwoSlices is a pod whose endpoint moves from one slice to another while a
// second becomes unhealthy: we merge the slices in one order, the control plane
// in the other, so it pushes a mixture that was never one of our versions.
func TestTwoSlices(t *testing.T) {
	s := begin(t)
	s.lists(1, 1, 2)
	s.lists(2, 1)     // ours: endpoint 2 left its slice
	s.lists(3, -1, 2) // and came to the other, where 1 had become unhealthy
	s.starts("x", 1)  // needs version 1
	s.holds("x", 4, -1)
	s.wantComplete("x@4") // each endpoint in a state of version 1 or later
	s.wantConverged(-1)
	s.holds("x", 5, -1, 2)
	s.wantConverged(5)
}

func TestResourceRemovedAndAddedAgain(t *testing.T) {
	s := begin(t)
	s.lists(1, 1)
	s.starts("x", 2)
	s.Update("x", Update{AckedAt: second(3), Removed: []Key{cdsKey}})
	s.holds("x", 4, 1)
	s.wantComplete()
	s.Update("x", Update{AckedAt: second(5), Set: []Resource{{cdsKey, nil}}})
	s.wantComplete("x@5")
	s.Update("x", Update{AckedAt: second(6), Removed: []Key{edsKey}})
	s.wantConverged(-1)
	s.holds("x", 7, 1)
	s.wantComplete("x@5") // once
	s.wantConverged(7)
}

func TestSameContentAgain(t *testing.T) {
	s := begin(t)
	s.lists(1, 1)
	s.starts("x", 2)
	s.holds("x", 3, 1)
	s.holds("x", 9, 1) // equal, though another pointer: a wasted push
	s.wantConverged(3)
}

func TestReconnectDoesNotStartAnew(t *testing.T) {
	s := begin(t)
	s.lists(1, 1)
	s.starts("x", 2)
	s.lists(3, 1, 2)
	s.FirstRequest("x", second(4)) // a stream lost in mid-set
	s.holds("x", 5, 1)
	s.wantComplete("x@5")
	s.FirstRequest("x", second(6))
	s.holds("x", 7, 1, 2)
	s.wantComplete("x@5")
}

func TestPendingSidecarRemoved(t *testing.T) {
	s := begin(t)
	s.lists(1, 1)
	s.starts("x", 2)
	s.starts("y", 2)
	s.holds("x", 3, 1)
	s.holds("y", 4, 1, 2) // ahead of us
	s.wantConverged(-1)
	s.Remove("y")
	s.wantConverged(3)
	s.holds("y", 5, 1) // its last words
	s.lists(6, 1, 2)
	s.wantComplete("x@3")
	if got, want := s.Counts(), (Counts{Sidecars: 1, Complete: 1, Certified: 1}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}

func TestSidecarAddedAfterConvergence(t *testing.T) {
	s := begin(t)
	s.wantConverged(-1) // nobody there
	s.starts("x", 1)
	s.holds("x", 2)
	s.wantConverged(2)
	s.Add("y", s.scope)
	s.wantConverged(-1)
	s.starts("y", 3)
	s.holds("y", 4)
	s.wantConverged(4)
	s.Add("y", s.scope) // replaced by one that holds nothing
	s.wantConverged(-1)
	if got, want := s.Counts(), (Counts{Sidecars: 2, Complete: 1, Certified: 1, Converged: 1}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}

func TestUncertified(t *testing.T) {
	s := begin(t)
	s.Add("x", s.Scope(nil))
	s.FirstRequest("x", second(1))
	s.wantComplete("x@1") // nothing wanted, nothing to wait for
	s.wantConverged(-1)
	s.Certified("x", second(2))
	s.wantConverged(2)
	s.Certified("x", second(3)) // renewed
	s.wantConverged(2)
}

func TestMissing(t *testing.T) {
	s := begin(t)
	s.lists(1, 1, 2)
	s.Add("a", s.scope)
	for _, id := range []string{"b", "c", "d", "e", "f"} {
		s.starts(id, 2)
	}
	s.holds("c", 3, 1, -2)
	s.holds("d", 3, 1, 2, 3)
	s.holds("e", 3, 1, 2)
	s.Update("f", Update{AckedAt: second(3), Set: []Resource{
		{edsKey, &Content{Endpoints: eps(1, 2)}}, {rdsKey, &Content{Members: []string{"a"}}}}})
	want := []string{
		"a: no certificate; and 3 more resources",
		"b: EDS outbound|80||a is not held",
		"c: EDS outbound|80||a holds 10.0.0.2:8080 as unhealthy, want healthy (differing from ns/a:http: 1)",
		"d: EDS outbound|80||a holds 10.0.0.3:8080 as healthy, want absent (differing from ns/a:http: 1)",
		"f: RDS 80 lacks a.ns",
	}
	if diff := cmp.Diff(want, s.Missing(10)); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:2], s.Missing(2)); diff != "" {
		t.Errorf("first two (-want +got):\n%s", diff)
	}
}

// Differences are listed by resource: how many sidecars lack it, and how the first of them differs.
func TestDifferences(t *testing.T) {
	s := begin(t)
	if got := s.Differences(); got != nil {
		t.Errorf("nobody: %+v", got)
	}
	s.lists(1, 1, 2)
	s.Add("a", s.scope) // without a certificate, too, which is no resource
	for _, id := range []string{"b", "c", "d"} {
		s.starts(id, 2)
	}
	s.holds("b", 3, 1, -2)
	s.holds("c", 3, 1)
	s.holds("d", 3, 1, 2)
	want := []Difference{
		{Key: cdsKey, Sidecars: 1, Sidecar: "a", Lacks: " is not held", Absent: true},
		{Key: edsKey, Service: svc, Sidecars: 3, Sidecar: "a", Lacks: " is not held", Absent: true},
		{Key: rdsKey, Sidecars: 1, Sidecar: "a", Lacks: " is not held", Absent: true},
	}
	same := cmp.Comparer(func(a, b Difference) bool { return a == b })
	if diff := cmp.Diff(want, s.Differences(), same); diff != "" {
		t.Errorf("with a (-want +got):\n%s", diff)
	}
	s.Remove("a")
	want = []Difference{{
		Key: edsKey, Service: svc, Sidecars: 2, Sidecar: "b", Endpoint: addr(2),
		Lacks: " holds 10.0.0.2:8080 as unhealthy, want healthy (differing from ns/a:http: 1)",
	}}
	if diff := cmp.Diff(want, s.Differences(), same); diff != "" {
		t.Errorf("without a (-want +got):\n%s", diff)
	}
	s.holds("b", 4, 1, 2)
	s.holds("c", 4, 1, 2)
	if got := s.Differences(); got != nil {
		t.Errorf("converged: %+v", got)
	}
}

func TestNames(t *testing.T) {
	got := fmt.Sprint(CDS, " ", EDS, " ", LDS, " ", RDS, " ", ECDS, " ", SDS, " ", TypeOf("other"), " ", Healthy, Unhealthy, Draining, Health(9), edsKey, state(1), absent)
	want := "CDS EDS LDS RDS ECDS SDS other healthy unhealthy draining Health(9) EDS outbound|80||a unhealthy absent"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestConcurrentCallers lets many sidecars, a watch and readers go on at once;
// what comes of it must be what comes of it in order.
func TestConcurrentCallers(t *testing.T) {
	const sidecars, changes = 50, 100
	tracker := New()
	scope := tracker.Scope([]Want{{Key: edsKey, Service: svc}})
	contents := make([]*Content, changes+1)
	for i := range contents {
		contents[i] = &Content{Endpoints: eps(1 + i)}
	}
	var mu sync.Mutex
	var complete []string
	tracker.OnComplete = func(id string, _ time.Time) {
		tracker.Counts() // may call back
		mu.Lock()
		defer mu.Unlock()
		complete = append(complete, id)
	}
	tracker.SetEndpoints(svc, contents[0].Endpoints, second(0))

	var wg sync.WaitGroup
	for n := range sidecars {
		wg.Go(func() {
			id := fmt.Sprint(n)
			tracker.Add(id, scope)
			tracker.FirstRequest(id, second(1))
			for i, c := range contents {
				tracker.Update(id, Update{AckedAt: second(2 + float64(i)), Set: []Resource{{edsKey, c}}})
			}
			tracker.Certified(id, second(3))
		})
	}
	wg.Go(func() {
		for i, c := range contents {
			tracker.SetEndpoints(svc, c.Endpoints, second(1+float64(i)))
			tracker.Missing(3)
		}
	})
	wg.Go(func() { // ends only when a notice comes with the last of all changes
		for range tracker.Changed() {
			if _, ok := tracker.Converged(); ok && tracker.Counts().Sidecars == sidecars {
				return
			}
		}
	})
	wg.Wait()

	if at, ok := tracker.Converged(); !ok || !at.Equal(second(2+changes)) {
		t.Errorf("converged %v at %v, want at %v", ok, at, second(2+changes))
	}
	slices.Sort(complete)
	if len(complete) != sidecars || len(slices.Compact(complete)) != sidecars {
		t.Errorf("complete: %s, want each of %d once", strings.Join(complete, " "), sidecars)
	}
}

// What another process received is known by its digest, not by its pointer.
func TestContentIsKnownByItsDigest(t *testing.T) {
	s := begin(t)
	s.lists(1, 1)
	s.starts("x", 2)
	s.holds("x", 3, 1)
	content := func() *Content { return &Content{Digest: 7, Endpoints: eps(1)} }
	for i := range 3 {
		s.Update("x", Update{AckedAt: second(float64(4 + i)), Set: []Resource{{edsKey, content()}}})
	}
	held := s.sidecars["x"].scope.wants[s.sidecars["x"].scope.index[edsKey.Name][1]].target.matches.byDigest
	if len(held) != 1 || held[7] == nil {
		t.Errorf("contents of one digest are known as %v", held)
	}
	s.wantConverged(3)
}

// A change of either of two trackers comes to the one channel that they have.
func TestChangesBeside(t *testing.T) {
	first := New()
	second := NewBeside(first)
	for name, changed := range map[string]*Tracker{"first": first, "beside": second} {
		changed.Add("x", changed.Scope(nil))
		select {
		case <-first.Changed():
		default:
			t.Errorf("a change of the %s tracker was not received", name)
		}
	}
	if counts := first.Counts(); counts.Sidecars != 1 {
		t.Errorf("the first tracker has %d sidecars, want its own only", counts.Sidecars)
	}
}

// A resource that cannot be sent before a service has an endpoint is not needed to be complete by a
// sidecar that came before it. Convergence needs it.
func TestSince(t *testing.T) {
	s := begin(t)
	s.scope = s.Scope([]Want{{Key: cdsKey, Since: svc}, {Key: edsKey, Service: svc, Since: svc}, {Key: rdsKey, Members: []string{"a"}}})
	s.Add("before", s.scope)
	s.Certified("before", second(1))
	s.FirstRequest("before", second(1))
	s.wantComplete()
	s.Update("before", Update{AckedAt: second(2), Set: []Resource{{rdsKey, &Content{Members: []string{"a"}}}}})
	s.wantComplete("before@2")

	s.lists(3, 1)
	s.Add("after", s.scope)
	s.Certified("after", second(4))
	s.FirstRequest("after", second(4))
	s.Update("after", Update{AckedAt: second(5), Set: []Resource{{rdsKey, &Content{Members: []string{"a"}}}}})
	s.Update("after", Update{AckedAt: second(6), Set: []Resource{{cdsKey, nil}}})
	s.holds("after", 7, 1)
	s.wantComplete("before@2", "after@7")

	if got := s.Counts().Converged; got != 1 {
		t.Errorf("%d have converged, want the one that holds everything", got)
	}
	s.Update("before", Update{AckedAt: second(8), Set: []Resource{{cdsKey, nil}}})
	s.holds("before", 9, 1)
	if at, ok := s.Converged(); !ok || !at.Equal(second(9)) {
		t.Errorf("converged %v at %v, want at 9 s", ok, at.Sub(start))
	}

	s.lists(10) // it has none again, as of a rollout in which every pod is replaced
	s.Add("later", s.scope)
	s.FirstRequest("later", second(11))
	s.Update("later", Update{AckedAt: second(12), Set: []Resource{{rdsKey, &Content{Members: []string{"a"}}}}})
	s.wantComplete("before@2", "after@7", "later@12")
}
