package convergence

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// start is the time at which the tests' histories begin.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func addr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 8080)
}

// generator makes random histories of a small mesh: a control plane that may be
// ahead of our watch, behind it, or confused, and sidecars that come and go.
type generator struct {
	*rand.Rand
	services []string
	ids      []string
	scopes   [][]Want
	clock    time.Time
	truth    map[string][]Endpoints // what the API server stored, newest last
	watched  map[string]int         // how much of it our watch saw
	contents map[string]*Content
}

func newGenerator(seed uint64) *generator {
	g := &generator{
		Rand:     rand.New(rand.NewPCG(seed, 1)),
		services: []string{"ns/a:http", "ns/b:http"},
		ids:      []string{"s0", "s1", "s2"},
		clock:    start,
		truth:    make(map[string][]Endpoints),
		watched:  make(map[string]int),
		contents: make(map[string]*Content),
	}
	for _, s := range g.services {
		g.truth[s] = []Endpoints{nil}
	}
	full := []Want{{Key: Key{CDS, "a"}}, {Key: Key{RDS, "80"}, Members: []string{"b", "a"}}}
	for _, s := range g.services {
		full = append(full, Want{Key: Key{EDS, s}, Service: s})
	}
	g.scopes = [][]Want{
		full,
		full[2:3],
		// one key wanted twice, and a want of both kinds
		{{Key: Key{EDS, "ns/a:http"}, Service: "ns/a:http"}, {Key: Key{EDS, "ns/a:http"}, Members: []string{"a"}, Service: "ns/a:http"}},
		nil,
		// resources that cannot be sent at first, one of them by the endpoints of another service
		{{Key: Key{CDS, "a"}, Since: "ns/a:http"}, {Key: Key{EDS, "ns/a:http"}, Service: "ns/a:http", Since: "ns/a:http"}, {Key: Key{EDS, "ns/b:http"}, Service: "ns/b:http", Since: "ns/a:http"}},
	}
	return g
}

// tick returns a time a little after the last, or, rarely, before it: events of
// several goroutines may be reported in another order than they happened.
func (g *generator) tick() time.Time {
	g.clock = g.clock.Add(time.Duration(g.IntN(1000)) * time.Millisecond)
	if g.IntN(10) == 0 {
		return g.clock.Add(-time.Duration(g.IntN(2000)) * time.Millisecond)
	}
	return g.clock
}

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

// next returns the next event.
func (g *generator) next() event {
	id := pick(g, g.ids)
	switch n := g.IntN(100); {
	case n < 12:
		return event{add: &addEvent{id, g.IntN(10) / 2}}
	case n < 15:
		return event{remove: id}
	case n < 25:
		return event{request: id, at: g.tick()}
	case n < 35:
		return event{certified: id, at: g.tick()}
	case n < 55:
		return g.watch()
	default:
		return event{update: &updateEvent{id, g.update()}}
	}
}

// watch lets the API server go on now and then, and our watch follow it.
func (g *generator) watch() event {
	s := pick(g, g.services)
	if g.IntN(2) == 0 {
		g.truth[s] = append(g.truth[s], g.mutate(g.truth[s][len(g.truth[s])-1]))
	}
	if g.watched[s] < len(g.truth[s])-1 {
		g.watched[s]++
	}
	g.clock = g.clock.Add(time.Duration(g.IntN(1000)) * time.Millisecond)
	return event{endpoints: &endpointsEvent{s, g.truth[s][g.watched[s]], g.clock}}
}

// mutate returns endpoints that differ in one or two of three addresses, or do
// not differ.
func (g *generator) mutate(eps Endpoints) Endpoints {
	next := maps.Clone(eps)
	if next == nil {
		next = make(Endpoints)
	}
	for range 1 + g.IntN(2) {
		if a := addr(g.IntN(3)); g.IntN(3) == 0 {
			delete(next, a)
		} else {
			next[a] = Health(g.IntN(3))
		}
	}
	return next
}

func (g *generator) update() Update {
	at := g.tick()
	u := Update{ReceivedAt: at, AckedAt: at.Add(time.Duration(g.IntN(50)) * time.Millisecond)}
	for _, s := range g.services {
		switch n := g.IntN(10); {
		case n == 0:
			u.Removed = append(u.Removed, Key{EDS, s})
		case n < 7:
			u.Set = append(u.Set, Resource{Key{EDS, s}, g.content(g.view(s), []string{"a"})})
		}
	}
	if n := g.IntN(10); n < 6 {
		u.Set = append(u.Set, Resource{Key{CDS, "a"}, g.content(nil, nil)})
	} else if n == 6 {
		u.Removed = append(u.Removed, Key{CDS, "a"}, Key{LDS, "unknown"})
	}
	if g.IntN(3) > 0 {
		members := [][]string{{"a", "b"}, {"a", "b", "c"}, {"a", "b"}, {"b"}}
		u.Set = append(u.Set, Resource{Key{RDS, "80"}, g.content(nil, pick(g, members))})
	}
	return u
}

// view returns what the control plane takes a service for: mostly its newest
// state, sometimes the API server makes another change first, sometimes an old
// state, or one that never was.
func (g *generator) view(s string) Endpoints {
	truth := g.truth[s]
	switch n := g.IntN(10); {
	case n < 5:
		return truth[len(truth)-1]
	case n < 6:
		g.truth[s] = append(truth, g.mutate(truth[len(truth)-1]))
		return g.truth[s][len(truth)]
	case n < 9:
		return pick(g, truth)
	default:
		return g.mutate(pick(g, truth))
	}
}

// content interns contents, most of the time.
func (g *generator) content(eps Endpoints, members []string) *Content {
	text := fmt.Sprint(eps, members) // fmt sorts maps
	c := g.contents[text]
	if c == nil || g.IntN(5) == 0 {
		c = &Content{Endpoints: eps, Members: members}
		g.contents[text] = c
	}
	return c
}

// TestHistories compares the Tracker with the literal definitions after every
// event of thousands of random histories.
func TestHistories(t *testing.T) {
	const histories, length = 4000, 60
	completed, converged := 0, 0
	for seed := range uint64(histories) {
		g := newGenerator(seed)
		tracker, m := New(), newModel(g.scopes)
		got := make(map[string]time.Time)
		tracker.OnComplete = func(id string, at time.Time) { got[id] = at }
		var scopes []*Scope
		for _, wants := range g.scopes {
			scopes = append(scopes, tracker.Scope(wants))
		}
		for i := range length {
			clear(got)
			e := g.next()
			e.apply(tracker, scopes)
			want := m.add(e)
			completed += len(want)
			if m.counts().converged() {
				converged++
			}
			if err := compare(tracker, m, got, want); err != nil {
				t.Fatalf("history %d, event %d (%s): %v", seed, i, describe(e), err)
			}
		}
		for _, id := range g.ids {
			tracker.Remove(id)
		}
		for key, tg := range tracker.targets {
			if left := len(tg.matches.byDigest) + len(tg.matches.byPointer); left > 0 {
				t.Fatalf("history %d: %d contents of target %q kept without a holder", seed, left, key)
			}
		}
	}
	if completed < histories || converged < histories {
		t.Errorf("only %d completions and %d converged moments: the histories test too little", completed, converged)
	}
}

func compare(tracker *Tracker, m *model, got, want map[string]time.Time) error {
	if !maps.EqualFunc(want, got, time.Time.Equal) {
		return fmt.Errorf("completed (-want +got):\n%s", cmp.Diff(want, got))
	}
	counts := m.counts()
	if counts != tracker.Counts() {
		return fmt.Errorf("counts (-want +got):\n%s", cmp.Diff(counts, tracker.Counts()))
	}
	at, ok := tracker.Converged()
	if ok != counts.converged() || ok && !at.Equal(m.latest) {
		return fmt.Errorf("converged %v at %v, want %v at %v", ok, at, counts.converged(), m.latest)
	}
	if lines := tracker.Missing(100); len(lines) != counts.Sidecars-counts.Converged {
		return fmt.Errorf("explained %q, want %d lines", lines, counts.Sidecars-counts.Converged)
	}
	if len(tracker.changed) == 0 && len(want) > 0 {
		return fmt.Errorf("no notice of a completion")
	}
	select {
	case <-tracker.Changed():
	default:
	}
	return nil
}

func describe(e event) string {
	switch {
	case e.endpoints != nil:
		return fmt.Sprintf("endpoints of %s are %v", e.endpoints.service, e.endpoints.eps)
	case e.update != nil:
		return fmt.Sprintf("update of %s at %s: %d set, removed %v", e.update.id, e.update.AckedAt.Sub(start), len(e.update.Set), e.update.Removed)
	case e.add != nil:
		return fmt.Sprintf("add %s with scope %d", e.add.id, e.add.scope)
	default:
		return fmt.Sprintf("remove %q, request %q, certified %q", e.remove, e.request, e.certified)
	}
}

// TestGeneratorIsSeeded makes sure that a failing history can be run again.
func TestGeneratorIsSeeded(t *testing.T) {
	var a, b []string
	ga, gb := newGenerator(7), newGenerator(7)
	for range 50 {
		a, b = append(a, describe(ga.next())), append(b, describe(gb.next()))
	}
	if !slices.Equal(a, b) {
		t.Error("one seed gives two histories")
	}
}
