package xdsprobe

import (
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/convergence"
)

// table holds the subscriptions and the resources of one type in one client. Its slices
// are sorted by name and kept small, because there are many sidecars.
type table struct {
	// kept over streams
	held    []*Resource
	names   []string // subscribed to by name; a wildcard has none
	absent  []string // of names, those that the server reported not to have
	version string   // of the last response accepted, state of the world only
	begun   bool     // a type that is AfterWarming: it was subscribed to, on any stream
	overdue bool     // its first response was waited for as long as its FetchTimeout

	// of the current stream
	requested bool
	nonce     string // of the last response
}

// answered reports whether the server has answered for every subscribed name.
func (t *table) answered() bool {
	return len(t.held)+len(t.absent) == len(t.names)
}

// has reports whether the server has answered for a name.
func (t *table) has(name string) bool {
	_, ok := find(t.held, name)
	return ok || contains(t.absent, name)
}

// find returns the index at which a name is, or would be, among resources.
func find(resources []*Resource, name string) (int, bool) {
	return slices.BinarySearchFunc(resources, name, func(r *Resource, name string) int {
		return strings.Compare(r.Name, name)
	})
}

// seek is like find for names that come in order: the search continues at index from.
// Nearly always the resources received are the ones held, and the first comparison finds
// them.
func seek(resources []*Resource, from int, name string) (int, bool) {
	if from < len(resources) && resources[from].Name == name {
		return from, true
	}
	i, ok := find(resources[from:], name)
	return from + i, ok
}

// change collects the effects of a response on one or more tables.
type change struct {
	set  []convergence.Resource
	gone []convergence.Key

	// repeats means that a resource was added, changed or removed which names resources
	// of a Resubscribed type.
	repeats bool
}

func (c *change) add(old, r *Resource) {
	if old != nil {
		if old.equal(r) {
			return
		}
		c.repeats = c.repeats || old.repeats
	}
	c.repeats = c.repeats || r.repeats
	c.set = append(c.set, convergence.Resource{Key: r.Key, Content: r.Content})
}

func (c *change) remove(r *Resource) {
	c.repeats = c.repeats || r.repeats
	c.gone = append(c.gone, r.Key)
}

func (c *change) empty() bool { return len(c.set)+len(c.gone) == 0 }

// put adds or replaces resources, which are sorted by name without duplicates.
func (t *table) put(resources []*Resource, c *change) {
	var fresh []*Resource
	next := 0
	for _, r := range resources {
		i, ok := seek(t.held, next, r.Name)
		next = i
		if !ok {
			c.add(nil, r)
			fresh = append(fresh, r)
			continue
		}
		c.add(t.held[i], r)
		t.held[i] = r
		next++
	}
	if len(fresh) == 0 {
		return
	}
	held := make([]*Resource, 0, len(t.held)+len(fresh))
	held = append(append(held, t.held...), fresh...)
	slices.SortFunc(held, byName)
	t.held = held
	t.absent = slices.DeleteFunc(t.absent, func(name string) bool {
		_, ok := find(fresh, name)
		return ok
	})
}

// keep drops all resources except those of these names, which are sorted.
func (t *table) keep(resources []*Resource, c *change) {
	next := 0
	t.drop(func(held *Resource) bool {
		i, ok := seek(resources, next, held.Name)
		next = i
		if ok {
			next++
		}
		return !ok
	}, c)
}

// subscribed returns those of the resources whose names are subscribed to. Both are
// sorted by name. It reuses the slice.
func (t *table) subscribed(resources []*Resource) []*Resource {
	rest := t.names
	return slices.DeleteFunc(resources, func(r *Resource) bool {
		if len(rest) > 0 && rest[0] == r.Name { // nearly always
			rest = rest[1:]
			return false
		}
		i, ok := slices.BinarySearch(rest, r.Name)
		if ok {
			i++
		}
		rest = rest[i:]
		return !ok
	})
}

// drop removes the held resources that match.
func (t *table) drop(match func(*Resource) bool, c *change) {
	t.held = slices.DeleteFunc(t.held, func(r *Resource) bool {
		if !match(r) {
			return false
		}
		c.remove(r)
		return true
	})
}

// subscribe sets the subscribed names, which are sorted without duplicates. Resources
// that are not subscribed to any more are dropped. It returns the differences.
func (t *table) subscribe(names []string, c *change) (added, removed []string) {
	added, removed = minus(names, t.names), minus(t.names, names)
	if len(added)+len(removed) == 0 {
		return nil, nil
	}
	t.names = names
	if len(removed) > 0 {
		lost := func(name string) bool { return contains(removed, name) }
		t.drop(func(r *Resource) bool { return lost(r.Name) }, c)
		t.absent = slices.DeleteFunc(t.absent, lost)
	}
	return added, removed
}

// setAbsent records that the server does not have a subscribed name.
func (t *table) setAbsent(name string) {
	if i, ok := slices.BinarySearch(t.absent, name); !ok && contains(t.names, name) {
		t.absent = slices.Insert(t.absent, i, name)
	}
}

func byName(a, b *Resource) int { return strings.Compare(a.Name, b.Name) }

func contains(sorted []string, name string) bool {
	_, ok := slices.BinarySearch(sorted, name)
	return ok
}

// minus returns the elements of a that are not in b. Both are sorted.
func minus(a, b []string) (rest []string) {
	for _, name := range a {
		for len(b) > 0 && b[0] < name {
			b = b[1:]
		}
		if len(b) == 0 || b[0] != name {
			rest = append(rest, name)
		}
	}
	return rest
}
