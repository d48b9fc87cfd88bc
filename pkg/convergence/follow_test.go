package convergence

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// followed is a tracker with two sidecars that compare one service's endpoints
// and one that does not, each holding what is expected.
type followed struct {
	*Tracker
	at time.Time
}

const probed = "ns/svc:http"

var (
	probedKey = Key{EDS, "outbound|80||svc"}
	addrA     = netip.MustParseAddrPort("10.0.0.1:8080")
	addrB     = netip.MustParseAddrPort("10.0.0.2:8080")
)

func newFollowed() *followed {
	f := &followed{New(), time.Unix(1000, 0)}
	in := f.Scope([]Want{{Key: probedKey, Service: probed}})
	out := f.Scope(nil)
	f.Add("a", in)
	f.Add("b", in)
	f.Add("outside", out)
	f.SetEndpoints(probed, Endpoints{addrA: Healthy}, f.after(0))
	first := &Content{Endpoints: Endpoints{addrA: Healthy}}
	f.receive("a", 1, first)
	f.receive("b", 1, first)
	return f
}

func (f *followed) after(ms int) time.Time { return f.at.Add(time.Duration(ms) * time.Millisecond) }

func (f *followed) receive(id string, ms int, c *Content) {
	f.Update(id, Update{ReceivedAt: f.after(ms), AckedAt: f.after(ms + 1), Set: []Resource{{probedKey, c}}})
}

func isDone(f *Following) bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}

func TestFollowEndpoint(t *testing.T) {
	for name, c := range map[string]struct {
		change Change
		next   Endpoints
	}{
		"added":   {Change{Service: probed, Addr: addrB, Health: Unhealthy}, Endpoints{addrA: Healthy, addrB: Unhealthy}},
		"removed": {Change{Service: probed, Addr: addrA, Absent: true}, Endpoints{}},
		"health":  {Change{Service: probed, Addr: addrA, Health: Unhealthy}, Endpoints{addrA: Unhealthy}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFollowed()
			next := &Content{Endpoints: c.next}
			f.receive("a", 50, next) // the control plane is ahead of our watch
			f.SetEndpoints(probed, c.next, f.after(60))
			following := f.Follow(c.change, []string{"a", "b"})
			if isDone(following) {
				t.Fatal("done before b has it")
			}
			f.receive("b", 100, next)
			if !isDone(following) {
				t.Fatal("not done when all have it")
			}
			f.receive("b", 200, &Content{Endpoints: c.next}) // once more: the first time counts
			reached, lost, strays := following.Stop()
			if len(lost)+len(strays) > 0 || len(reached) != 2 ||
				!reached["a"].Equal(f.after(50)) || !reached["b"].Equal(f.after(100)) {
				t.Errorf("reached %v, lost %v, strays %v", reached, lost, strays)
			}
		})
	}
}

func TestFollowLosesAndFindsStrays(t *testing.T) {
	f := newFollowed()
	next := &Content{Endpoints: Endpoints{addrA: Healthy, addrB: Healthy}}
	f.SetEndpoints(probed, next.Endpoints, f.after(10))
	following := f.Follow(Change{Service: probed, Addr: addrB, Health: Healthy}, []string{"a", "b"})
	f.receive("a", 20, next)
	f.receive("b", 20, &Content{Endpoints: Endpoints{addrA: Healthy, addrB: Unhealthy}}) // not this state
	f.receive("outside", 30, next)
	if isDone(following) {
		t.Error("done without b")
	}
	reached, lost, strays := following.Stop()
	if len(reached) != 1 || !slices.Equal(lost, []string{"b"}) || !slices.Equal(strays, []string{"outside"}) {
		t.Errorf("reached %v, lost %v, strays %v", reached, lost, strays)
	}
}

func TestFollowMarker(t *testing.T) {
	f := newFollowed()
	following := f.Follow(Change{Marker: "m2"}, []string{"a", "b"})
	f.receive("a", 10, &Content{Endpoints: Endpoints{addrA: Healthy}, Markers: []string{"m1"}})
	f.receive("a", 20, &Content{Endpoints: Endpoints{addrA: Healthy}, Markers: []string{"m1", "m2"}})
	f.receive("b", 30, &Content{Endpoints: Endpoints{addrA: Healthy}, Markers: []string{"m2"}})
	if !isDone(following) {
		t.Fatal("not done when all have it")
	}
	f.receive("outside", 40, &Content{Markers: []string{"m2"}})
	reached, lost, strays := following.Stop()
	if len(lost) > 0 || !slices.Equal(strays, []string{"outside"}) || !reached["a"].Equal(f.after(20)) || !reached["b"].Equal(f.after(30)) {
		t.Errorf("reached %v, lost %v, strays %v", reached, lost, strays)
	}
}

func TestFollowNobody(t *testing.T) {
	f := newFollowed()
	following := f.Follow(Change{Marker: "m"}, nil)
	if !isDone(following) {
		t.Error("a change that concerns nobody is not done at once")
	}
	if reached, lost, _ := following.Stop(); len(reached)+len(lost) > 0 {
		t.Errorf("reached %v, lost %v", reached, lost)
	}
}

func TestSubscribers(t *testing.T) {
	f := newFollowed()
	if got := f.Subscribers(probed); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("subscribers are %v, want a and b", got)
	}
}

// TestDelivered counts each change once for each sidecar that held the service
// before, overtaken states with the state that came instead, and nothing for what
// a sidecar held from its start.
func TestDelivered(t *testing.T) {
	f := newFollowed()
	type delivery struct {
		kind  Kind
		n     int
		after time.Duration
	}
	var got []delivery
	f.Tracker.Delivered = func(kind Kind, n int, after time.Duration) {
		got = append(got, delivery{kind, n, after})
	}
	f.SetEndpoints(probed, Endpoints{addrA: Healthy, addrB: Unhealthy}, f.after(10))
	f.SetEndpoints(probed, Endpoints{addrA: Healthy, addrB: Healthy}, f.after(20)) // overtakes
	f.receive("a", 50, &Content{Endpoints: Endpoints{addrA: Healthy, addrB: Healthy}})
	f.receive("b", 25, &Content{Endpoints: Endpoints{addrA: Healthy, addrB: Unhealthy}})
	f.receive("b", 55, &Content{Endpoints: Endpoints{addrB: Healthy}}) // ahead of our watch
	f.SetEndpoints(probed, Endpoints{addrB: Healthy}, f.after(60))
	f.Add("late", f.sidecars["a"].scope)
	f.receive("late", 70, &Content{Endpoints: Endpoints{addrB: Healthy}})
	ms := time.Millisecond
	want := []delivery{
		{EndpointAdded, 1, 40 * ms}, {EndpointHealth, 1, 30 * ms}, // a
		{EndpointAdded, 1, 15 * ms},                                 // b, before it is overtaken
		{EndpointHealth, 1, 35 * ms}, {EndpointRemoved, 1, -5 * ms}, // b, when our watch knows
	}
	if !slices.Equal(got, want) {
		t.Errorf("delivered\n%v, want\n%v", got, want)
	}
}
