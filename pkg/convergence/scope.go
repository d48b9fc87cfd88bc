package convergence

import (
	"math"
	"slices"
	"strings"
)

// Scope lists the resources that every sidecar of one workload must come to hold. It is
// made by Tracker.Scope, belongs to that Tracker and does not change.
type Scope struct {
	wants []condition
	index map[string][]int // into wants, by the key's name; several may have one name, or one key
}

// compares reports whether the endpoints of a resource are compared.
func (s *Scope) compares(key Key) bool {
	return slices.ContainsFunc(s.index[key.Name], func(i int) bool {
		return s.wants[i].key == key && s.wants[i].target.service != nil
	})
}

// condition is one want of a scope with the target its content must meet.
type condition struct {
	key    Key
	target *target
	since  *service // nil if the resource is needed always: see Want.Since
}

// target holds the requirements that a resource's content must meet. Wants of all scopes
// with the same requirements share one target, so that each content is judged once for
// all of their sidecars.
type target struct {
	members []string // sorted
	service *service // nil if endpoints are not compared
	matches verdicts // of the contents that some sidecar holds
}

// verdict compares one content with one target, and lists the slots that hold that
// content.
type verdict struct {
	target  *target
	content *Content
	newest  version // that the content is at least; never if it lacks a member
	current bool    // whether it is exactly what is expected now
	holders []*slot
}

// verdicts holds verdicts by their contents: by digest where the content has one, so that
// it does not matter which process read it, and by pointer otherwise.
type verdicts struct {
	byDigest  map[Digest]*verdict
	byPointer map[*Content]*verdict
}

func (vs *verdicts) of(c *Content) *verdict {
	if c.Digest != 0 {
		return vs.byDigest[c.Digest]
	}
	return vs.byPointer[c]
}

func (vs *verdicts) add(v *verdict) {
	if digest := v.content.Digest; digest != 0 {
		if vs.byDigest == nil {
			vs.byDigest = make(map[Digest]*verdict)
		}
		vs.byDigest[digest] = v
		return
	}
	if vs.byPointer == nil {
		vs.byPointer = make(map[*Content]*verdict)
	}
	vs.byPointer[v.content] = v
}

func (vs *verdicts) remove(v *verdict) {
	if v.content.Digest != 0 {
		delete(vs.byDigest, v.content.Digest)
	} else {
		delete(vs.byPointer, v.content)
	}
}

// all calls do with every verdict, in no order.
func (vs *verdicts) all(do func(*verdict)) {
	for _, v := range vs.byDigest {
		do(v)
	}
	for _, v := range vs.byPointer {
		do(v)
	}
}

// noContent is the content of a resource of which only the presence matters.
var noContent = new(Content)

func newTarget(members []string, s *service) *target {
	tg := &target{members: members, service: s}
	if s != nil {
		s.targets = append(s.targets, tg)
	}
	return tg
}

// verdict returns the verdict on a content. It makes one for a new content.
func (tg *target) verdict(c *Content) *verdict {
	v := tg.matches.of(c)
	if v == nil {
		v = &verdict{target: tg, content: c}
		v.judge()
		tg.matches.add(v)
	}
	return v
}

// newest returns the newest version of the target for which a content is at least as new.
// A target without a service has only version 0.
func (tg *target) newest(c *Content) version {
	if firstMissing(tg.members, c.Members) != "" {
		return never
	}
	if tg.service == nil {
		return 0
	}
	return tg.service.newest(c.Endpoints)
}

// judge updates the verdict to the target's current version.
func (v *verdict) judge() {
	v.newest = v.target.newest(v.content)
	// A content whose every endpoint is in its current state is the current
	// version: newest counts endpoints that are missing too.
	v.current = v.newest == v.target.now()
}

// standing says how far a slot meets its want.
type standing struct {
	current bool // it holds exactly what is expected now
	enough  bool // it holds all it needs to be complete, as far as is known: a control plane may be ahead of our watch
}

// standing returns the standing of a slot whose sidecar needs at least the version want.
// A nil verdict means that the slot holds nothing.
func (v *verdict) standing(want version) standing {
	if v == nil {
		return standing{enough: want == nothing}
	}
	return standing{v.current, v.newest >= want}
}

// now returns the target's current version.
func (tg *target) now() version {
	if tg.service == nil {
		return 0
	}
	return tg.service.now
}

// changed returns when the target's current version was seen.
func (tg *target) changed() stamp {
	if tg.service == nil {
		return math.MinInt64
	}
	return tg.service.changed()
}

// attach notes that a slot holds the content.
func (v *verdict) attach(sl *slot) {
	sl.held, sl.place = v, int32(len(v.holders))
	v.holders = append(v.holders, sl)
}

// detach undoes attach, and removes a verdict that no slot needs any more.
func (v *verdict) detach(sl *slot) {
	last := v.holders[len(v.holders)-1]
	v.holders[sl.place], last.place = last, sl.place
	v.holders = v.holders[:len(v.holders)-1]
	sl.held = nil
	if len(v.holders) == 0 {
		v.target.matches.remove(v)
	}
}

// firstMissing returns the first string of want that is not in have, or "".
// Both are sorted.
func firstMissing(want, have []string) string {
	for _, w := range want {
		for len(have) > 0 && have[0] < w {
			have = have[1:]
		}
		if len(have) == 0 || have[0] != w {
			return w
		}
	}
	return ""
}

// targetKey identifies targets with equal requirements. Neither a service port nor a
// domain contains the separator.
func targetKey(service string, members []string) string {
	return service + "\x00" + strings.Join(members, "\x00")
}

// sorted returns a sorted copy without duplicates.
func sorted(members []string) []string {
	s := slices.Clone(members)
	slices.Sort(s)
	return slices.Compact(s)
}
