package xdsprobe

import (
	"slices"
	"time"
)

// warm reports whether everything of the types that others wait for was answered.
func (st *state) warm() bool {
	for _, k := range st.types.warming {
		if !st.tables[k.index].answered() {
			return false
		}
	}
	return true
}

// begun reports whether all types that are AfterWarming have been subscribed to, on
// any stream.
func (st *state) begun() bool {
	for _, k := range st.types.gated {
		if !st.tables[k.index].begun {
			return false
		}
	}
	return true
}

// secured reports whether any resource that AfterWarming types wait for needs the
// workload's certificate, while that matters.
func (st *state) secured() bool {
	if st.begun() {
		return false
	}
	for _, k := range st.types.warming {
		for _, parent := range k.parents {
			if !parent.AfterWarming && slices.ContainsFunc(st.tables[parent.index].held, func(r *Resource) bool { return r.secured }) {
				return true
			}
		}
	}
	return false
}

// proceed subscribes to AfterWarming types when they are due.
func (st *state) proceed(steps []step) []step {
	if st.begun() || !st.warm() || len(st.unanswered()) > 0 || !st.certified.Load() && st.secured() {
		return steps
	}
	for _, k := range st.types.gated {
		st.tables[k.index].begun = true
		steps = append(steps, step{request: st.first(k)})
	}
	return steps
}

// unanswered returns the types that name what is to be warmed and that had no response on
// this stream, except those whose wait has timed out.
func (st *state) unanswered() (parents []*kind) {
	for _, k := range st.types.warming {
		for _, parent := range k.parents {
			if t := &st.tables[parent.index]; !parent.AfterWarming && t.nonce == "" && !t.overdue {
				parents = append(parents, parent)
			}
		}
	}
	return parents
}

// wait says what a state waits for.
type wait uint8

const (
	forNothing  wait = iota // or a wait without a timeout
	forParents              // the first response of a type that names what is to be warmed
	forChildren             // resources of a Warming type
)

// waitLimit returns the current wait that has a timeout, and its length: until the last
// type, or the last parent, gives up.
func (st *state) waitLimit() (limit time.Duration, what wait) {
	if !st.begun() {
		limit, what = firstLimit(st.unanswered())
	}
	if what != forNothing || st.warm() || st.begun() && len(st.waiting) == 0 {
		return limit, what
	}
	for _, k := range st.types.warming {
		children := &st.tables[k.index]
		for _, parent := range k.parents {
			if parent.AfterWarming {
				continue
			}
			for _, r := range st.tables[parent.index].held {
				for i := range r.names {
					if r.names[i].Type != k.Name || children.has(r.names[i].Name) {
						continue
					}
					if r.wait == 0 {
						return 0, forNothing
					}
					limit = max(limit, r.wait)
				}
			}
		}
	}
	return limit, forChildren
}

// firstLimit is waitLimit for first responses only.
func firstLimit(parents []*kind) (limit time.Duration, what wait) {
	for _, parent := range parents {
		if parent.FetchTimeout == 0 {
			return 0, forNothing
		}
		limit, what = max(limit, parent.FetchTimeout), forParents
	}
	return limit, what
}

// giveUp ends a wait for resources that have not arrived, and returns the requests that
// can be sent now.
func (st *state) giveUp(what wait) []step {
	if what == forParents {
		for _, parent := range st.unanswered() {
			st.tables[parent.index].overdue = true
		}
		return st.proceed(nil)
	}
	for _, k := range st.types.warming {
		t := &st.tables[k.index]
		for _, name := range t.names {
			if !t.has(name) {
				t.setAbsent(name)
			}
		}
	}
	steps := append(st.proceed(nil), st.waiting...)
	st.waiting = nil
	return steps
}

// warmed reports whether a type's ACKs wait for the resources that its resources name.
func (k *kind) warmed() bool {
	return slices.ContainsFunc(k.children, func(c *kind) bool { return c.Warming && !k.AfterWarming })
}
