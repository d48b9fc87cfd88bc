package convergence

// Miss declares that the responses to these sidecars are not observed for some time: each
// holds nothing from now on, and starts anew. Changes that are followed to them, now or
// before they are complete again, are lost, and so are those that would have been
// Delivered meanwhile: see Missed. Ids that are not registered are ignored. Versions of
// FollowVersions do not concern them any more.
func (t *Tracker) Miss(ids ...string) {
	t.apply(func() {
		for _, id := range ids {
			old := t.sidecars[id]
			if old == nil {
				continue
			}
			s := newSidecar(id, old.scope)
			s.missing, s.before = true, map[*slot]version{}
			for i := range s.slots {
				if was, had := old.before[&old.slots[i]]; had {
					s.before[&s.slots[i]] = was
				} else if old.slots[i].held != nil {
					s.before[&s.slots[i]] = old.slots[i].delivered
				}
			}
			t.add(s)
			for _, f := range t.following {
				f.miss(id)
			}
		}
	})
}

// missVersions counts the versions of a service that a sidecar received unobserved.
func (t *Tracker) missVersions(svc *service, from, to version) {
	if t.Missed == nil {
		return
	}
	for v := from; v < to; v++ { // version v+1
		for kind, n := range svc.changes[v] {
			if n > 0 {
				t.Missed(Kind(kind), int(n))
			}
		}
	}
}

// miss stops waiting for a sidecar, because its responses are not observed.
func (f *Following) miss(id string) {
	if f.pending[id] {
		delete(f.pending, id)
		f.missed[id] = true
		f.finish()
	}
}
