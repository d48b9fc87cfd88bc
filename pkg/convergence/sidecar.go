package convergence

// sidecar records what one registered sidecar holds, and how much it lacks.
type sidecar struct {
	id    string
	scope *Scope
	slots []slot // one for each want of the scope, in its order

	behind    int // slots that do not hold the current version
	certified bool

	requested   bool
	requestedAt stamp
	complete    bool
	// From the first request until complete:
	lacking int              // slots that do not hold enough
	earlier map[*slot][]held // what slots held before, without a gap, oldest first

	// missing is true from Miss until the sidecar is complete: what it receives meanwhile
	// is no push.
	missing bool
	before  map[*slot]version // delivered by the slots that it had then, until they hold something again
}

// slot records what a sidecar holds for one of its wants. There is one for every sidecar
// and want, so it is kept small.
type slot struct {
	sidecar *sidecar
	held    *verdict // nil if the resource is not held
	place   int32    // in held.holders
	want    version  // the least that the sidecar needs to be complete; nothing: see Want.Since
	acked   stamp    // when the content held was acknowledged
	enough  stamp    // when the first of a row of contents was that are all enough, the one held the last; acked if it is not

	received  stamp   // when the bytes of the content held were there
	delivered version // that has been counted as delivered, see Tracker.Delivered
	pushed    bool    // the content held is not the first one
}

// held is a content that a slot held before, or the last of a series of contents that
// were all enough.
type held struct {
	content *Content
	acked   stamp // the first of the row
}

// Stand says whether one sidecar is complete and converged.
type Stand struct{ Complete, Converged bool }

// StandOf returns the Stand of a sidecar; the zero Stand if it is not registered.
func (t *Tracker) StandOf(id string) Stand {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sidecars[id]
	if s == nil {
		return Stand{}
	}
	return Stand{s.complete, s.converged()}
}

func (s *sidecar) converged() bool { return s.certified && s.behind == 0 }

func (sl *slot) standing() standing { return sl.held.standing(sl.want) }

// add registers a sidecar in place of the one that has its id, if any.
func (t *Tracker) add(s *sidecar) {
	t.remove(s.id)
	t.sidecars[s.id] = s
	t.counts.Sidecars++
}

// remove forgets a sidecar, if it is registered.
func (t *Tracker) remove(id string) {
	s := t.sidecars[id]
	if s == nil {
		return
	}
	delete(t.sidecars, id)
	for _, f := range t.versions {
		f.drop(id)
	}
	t.counts.Sidecars--
	if s.converged() {
		t.counts.Converged--
	}
	if s.certified {
		t.counts.Certified--
	}
	if s.complete {
		t.counts.Complete--
	}
	for i := range s.slots {
		if sl := &s.slots[i]; sl.held != nil {
			sl.held.detach(sl)
		}
	}
}

// newSidecar returns a sidecar that holds nothing and is not registered.
func newSidecar(id string, scope *Scope) *sidecar {
	s := &sidecar{id: id, scope: scope, slots: make([]slot, len(scope.wants)), behind: len(scope.wants)}
	for i := range s.slots {
		s.slots[i].sidecar = s
	}
	return s
}

// request records the versions that a sidecar needs to be complete.
func (t *Tracker) request(s *sidecar, at stamp) {
	s.requested, s.requestedAt = true, at
	s.lacking = len(s.slots)
	s.earlier = make(map[*slot][]held)
	for i := range s.slots {
		sl := &s.slots[i]
		sl.enough = sl.acked
		if svc := s.scope.wants[i].target.service; svc != nil {
			sl.want = svc.versionAt(at)
		}
		if since := s.scope.wants[i].since; since != nil && since.empty(since.versionAt(at)) {
			sl.want = nothing
		}
		s.count(standing{}, sl.standing())
	}
	t.finish(s)
}

// hold makes c the content that the slot holds. Receiving the same content again changes
// nothing: it has been held since its first acknowledgement.
func (t *Tracker) hold(sl *slot, tg *target, c *Content, received, at stamp) {
	if c == nil {
		c = noContent
	}
	s, old := sl.sidecar, sl.held
	if old != nil && old.content.same(c) {
		return
	}
	was := sl.standing()
	if old != nil {
		old.detach(sl)
	}
	tg.verdict(c).attach(sl)
	sl.acked, sl.received, sl.pushed = at, received, old != nil
	t.deliver(sl)
	if !was.enough || !sl.standing().enough {
		if old != nil && s.earlier != nil {
			s.earlier[sl] = append(s.earlier[sl], held{old.content, sl.enough})
		}
		sl.enough = at
	}
	t.note(sl, was)
}

// drop makes the slot hold nothing.
func (t *Tracker) drop(sl *slot) {
	if sl.held == nil {
		return
	}
	was := sl.standing()
	sl.held.detach(sl)
	delete(sl.sidecar.earlier, sl)
	t.note(sl, was)
}

// rejudge updates a verdict to a new version, which was seen at that time, and notifies
// the slots that hold the content if their standing changes.
func (t *Tracker) rejudge(v *verdict, at stamp) {
	was := *v
	v.judge()
	if v.current == was.current && v.newest == was.newest {
		return
	}
	for _, sl := range v.holders {
		t.deliver(sl)
		t.note(sl, was.standing(sl.want))
		t.finish(sl.sidecar)
	}
}

// note counts the change of a slot's standing.
func (t *Tracker) note(sl *slot, was standing) {
	s, is := sl.sidecar, sl.standing()
	switch {
	case is.current && !was.current:
		s.behind--
		if s.converged() {
			t.counts.Converged++
		}
		t.latest = max(t.latest, sl.acked, sl.held.target.changed())
	case !is.current && was.current:
		if s.converged() {
			t.counts.Converged--
		}
		s.behind++
	}
	if s.requested && !s.complete {
		s.count(was, is)
	}
}

// count updates the number of slots that lack something.
func (s *sidecar) count(was, is standing) {
	switch {
	case was.enough && !is.enough:
		s.lacking++
	case !was.enough && is.enough:
		s.lacking--
	}
}

// finish marks a sidecar as complete when it has everything for that.
func (t *Tracker) finish(s *sidecar) {
	if !s.requested || s.complete || s.lacking > 0 {
		return
	}
	at := s.requestedAt
	for i := range s.slots {
		if sl := &s.slots[i]; sl.want > nothing {
			at = max(at, sl.enoughSince())
		}
	}
	s.complete, s.earlier, s.missing = true, nil, false
	t.counts.Complete++
	t.reached = append(t.reached, milestone{s.id, t.base.Add(at)})
}

// enoughSince returns the time since which the slot holds enough, given that it does.
// Contents that could not be judged when they were replaced, because the control plane
// was ahead of this program's watch, are judged again.
func (sl *slot) enoughSince() stamp {
	since := sl.enough
	earlier := sl.sidecar.earlier[sl]
	for i := len(earlier) - 1; i >= 0; i-- {
		if sl.held.target.newest(earlier[i].content) < sl.want {
			break
		}
		since = earlier[i].acked
	}
	return since
}
