package diff

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Op is the kind of change of a field or a resource.
type Op string

// The kinds of difference.
const (
	Removed Op = "removed"
	Added   Op = "added"
	Changed Op = "changed"
	Moved   Op = "moved"   // a list has its elements in another order, which has a meaning
	Renamed Op = "renamed" // a resource or an element with the same content has another name
)

// change is one difference between two nodes.
type change struct {
	path     string   // [*] stands for an element that is data, as a virtual host is
	keys     []string // of these elements, in their order
	op       Op
	from, to *node
}

// changesOf compares two nodes field by field.
func changesOf(a, b *node) []change {
	c := &comparer{}
	c.compare(a, b)
	return c.all
}

type comparer struct {
	path []string
	keys []string
	all  []change
}

func (c *comparer) add(op Op, from, to *node) {
	c.all = append(c.all, change{path: strings.TrimPrefix(strings.Join(c.path, ""), "."), keys: slices.Clone(c.keys), op: op, from: from, to: to})
}

// under does something one step further down. key is "" where the step is no element that is data.
func (c *comparer) under(step, key string, do func()) {
	c.path = append(c.path, step)
	if key != "" {
		c.keys = append(c.keys, key)
	}
	do()
	c.path = c.path[:len(c.path)-1]
	if key != "" {
		c.keys = c.keys[:len(c.keys)-1]
	}
}

func (c *comparer) compare(a, b *node) {
	switch {
	case a == nil && b == nil || a != nil && b != nil && a.sum == b.sum:
	case a == nil:
		c.add(Added, nil, b)
	case b == nil:
		c.add(Removed, a, nil)
	case a.kind != b.kind || a.typ != b.typ || a.kind >= word:
		c.add(Changed, a, b)
	case a.kind == list:
		c.lists(a, b)
	default:
		c.fields(a, b)
	}
}

// fields compares messages and maps.
func (c *comparer) fields(a, b *node) {
	each := func(name string, x, y *node) {
		step, key := "."+name, ""
		if a.kind == mapping {
			step, key = "[*]", name
			if strings.HasPrefix(name, "envoy.") || strings.HasPrefix(name, "istio") {
				step, key = "["+name+"]", "" // names a kind of extension
			}
		}
		c.under(step, key, func() { c.compare(x, y) })
	}
	var same map[string]string
	if a.kind == mapping {
		gone, come := named{}, named{}
		for _, f := range a.fields {
			if b.get(f.name) == nil {
				gone[f.name] = f.value
			}
		}
		for _, f := range b.fields {
			if a.get(f.name) == nil {
				come[f.name] = f.value
			}
		}
		same = c.renamed(gone, come)
	}
	for _, f := range a.fields {
		if same[f.name] == "" {
			each(f.name, f.value, b.get(f.name))
		}
	}
	for _, f := range b.fields {
		if a.get(f.name) == nil && same[f.name] == "" {
			each(f.name, nil, f.value)
		}
	}
}

// named are elements by their names.
type named map[string]*node

// renamed adds a difference for each element of one side that the other one has under another name. It returns the other
// name of each, of both sides.
func (c *comparer) renamed(gone, come named) map[string]string {
	if len(gone) == 0 || len(come) == 0 {
		return nil
	}
	content := func(name string, n *node) string { return strings.ReplaceAll(n.String(), name, "{name}") }
	left := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(come)) {
		if n := come[name]; n.kind < word {
			left[content(name, n)] = append(left[content(name, n)], name)
		}
	}
	same := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		n := gone[name]
		if n.kind >= word {
			continue
		}
		if others := left[content(name, n)]; len(others) > 0 {
			same[name], same[others[0]] = others[0], name
			left[content(name, n)] = others[1:]
			c.under("[*]", "", func() { c.add(Renamed, leaf(word, name, len(name)), leaf(word, others[0], len(others[0]))) })
		}
	}
	return same
}

// kinds are the messages in lists whose names are those of extensions, and not of data.
var kinds = map[string]bool{
	"envoy.config.listener.v3.Filter":                                                                 true,
	"envoy.config.listener.v3.ListenerFilter":                                                         true,
	"envoy.config.accesslog.v3.AccessLog":                                                             true,
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter":                          true,
	"envoy.config.route.v3.RetryPolicy.RetryHostPredicate":                                            true,
	"envoy.config.core.v3.TypedExtensionConfig":                                                       true,
	"envoy.config.cluster.v3.Cluster.TransportSocketMatch":                                            true,
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.UpgradeConfig": true,
}

// keyOf returns the text that identifies an element of a list; "" = it has none.
func keyOf(n *node) string {
	if n.kind == word {
		return n.text
	}
	if name := n.get("name"); name != nil && name.kind == word {
		return name.text
	}
	switch n.typ {
	case "envoy.config.endpoint.v3.LocalityLbEndpoints":
		if l := n.get("locality"); l != nil {
			return l.String()
		}
		return "no locality"
	case "envoy.config.endpoint.v3.LbEndpoint":
		if e := n.get("endpoint"); e != nil && e.get("address") != nil {
			return e.get("address").String()
		}
	case "envoy.config.core.v3.HeaderValueOption":
		if k := n.get("header").get("key"); k != nil {
			return k.text
		}
	}
	return ""
}

// element compares two elements of lists, or states that one of them is not there.
func (c *comparer) element(a, b *node) {
	of := a
	if of == nil {
		of = b
	}
	key := keyOf(of)
	switch {
	case key == "" || of.kind == word:
		c.under("[*]", "", func() { c.compare(a, b) })
	case kinds[string(of.typ)]:
		c.under("["+key+"]", "", func() { c.compare(a, b) })
	default:
		c.under("[*]", key, func() { c.compare(a, b) })
	}
}

// lists compares lists: elements with a key with the one of the same key, and the others in their order, so that
// one that was inserted is one difference.
func (c *comparer) lists(a, b *node) {
	before, after, ok := byKey(a, b)
	switch {
	case ok:
	case a.set && b.set:
		c.sets(a.items, b.items)
		return
	default:
		c.sequence(a.items, b.items)
		return
	}
	// What is identified otherwise, as endpoints are by their addresses, is another one.
	gone, come := maps.Clone(before), maps.Clone(after)
	maps.DeleteFunc(gone, func(key string, n *node) bool { return after[key] != nil || n.get("name") == nil })
	maps.DeleteFunc(come, func(key string, n *node) bool { return before[key] != nil || n.get("name") == nil })
	same := c.renamed(gone, come)
	var kept [2][]string
	for _, x := range a.items {
		key := keyOf(x)
		if other := same[key]; other != "" {
			kept[0] = append(kept[0], other)
			continue
		}
		y := after[key]
		c.element(x, y)
		if y != nil {
			kept[0] = append(kept[0], key)
		}
	}
	for _, y := range b.items {
		switch key := keyOf(y); {
		case before[key] != nil || same[key] != "":
			kept[1] = append(kept[1], key)
		default:
			c.element(nil, y)
		}
	}
	if !slices.Equal(kept[0], kept[1]) && !a.set && !b.set {
		c.add(Moved, words(kept[0]), words(kept[1]))
	}
}

func words(all []string) *node {
	n := &node{kind: list}
	for _, text := range all {
		n.items = append(n.items, leaf(word, text, len(text)))
	}
	return n.hashed()
}

// byKey returns the elements of two lists by their keys; not ok if one has none, or two have the same.
func byKey(a, b *node) (before, after map[string]*node, ok bool) {
	index := func(n *node) map[string]*node {
		all := make(map[string]*node, len(n.items))
		for _, item := range n.items {
			if key := keyOf(item); key != "" && all[key] == nil {
				all[key] = item
			}
		}
		return all
	}
	before, after = index(a), index(b)
	return before, after, len(before) == len(a.items) && len(after) == len(b.items)
}

// sets compares elements whose order has no meaning and whose keys are not unique, as those of the filter chains of
// an inbound listener: what is equal on both sides stays, and of the rest those of one key are compared that differ least.
func (c *comparer) sets(a, b []*node) {
	gone, come, keys := rest(a, b)
	for _, key := range keys {
		for _, p := range closest(gone[key], come[key]) {
			c.element(p[0], p[1])
		}
	}
}

// rest returns the elements of two sets that are not in the other one, by their keys.
func rest(a, b []*node) (gone, come map[string][]*node, keys []string) {
	left := map[uint64]int{}
	for _, y := range b {
		left[y.sum]++
	}
	sides := [2]map[string][]*node{{}, {}}
	add := func(side int, n *node) {
		key := keyOf(n)
		if sides[0][key] == nil && sides[1][key] == nil {
			keys = append(keys, key)
		}
		sides[side][key] = append(sides[side][key], n)
	}
	for _, x := range a {
		if left[x.sum] > 0 {
			left[x.sum]--
			continue
		}
		add(0, x)
	}
	for _, y := range b {
		if left[y.sum] > 0 {
			left[y.sum]--
			add(1, y)
		}
	}
	return sides[0], sides[1], keys
}

// maxPairs bounds the pairs of elements of which the closest are looked for.
const maxPairs = 400

// closest pairs elements so that those that differ least are together; the others have nil.
func closest(a, b []*node) (pairs [][2]*node) {
	type candidate struct{ i, j, distance int }
	var all []candidate
	for i, x := range a {
		for j, y := range b {
			distance := 0
			if len(a)*len(b) > 1 && len(a)*len(b) <= maxPairs {
				distance = len(changesOf(x, y))
			}
			all = append(all, candidate{i, j, distance})
		}
	}
	slices.SortStableFunc(all, func(x, y candidate) int { return cmp.Compare(x.distance, y.distance) })
	left, right := slices.Clone(a), slices.Clone(b)
	for _, p := range all {
		if left[p.i] != nil && right[p.j] != nil {
			pairs = append(pairs, [2]*node{left[p.i], right[p.j]})
			left[p.i], right[p.j] = nil, nil
		}
	}
	for _, x := range left {
		if x != nil {
			pairs = append(pairs, [2]*node{x, nil})
		}
	}
	for _, y := range right {
		if y != nil {
			pairs = append(pairs, [2]*node{nil, y})
		}
	}
	return pairs
}

// maxTable bounds the work of aligning two lists by their contents.
const maxTable = 1 << 22

// sequence compares elements without keys: those that are equal stay, and what is between two of these is
// compared in order.
func (c *comparer) sequence(a, b []*node) {
	for len(a) > 0 && len(b) > 0 && a[0].sum == b[0].sum {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1].sum == b[len(b)-1].sum {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var i, j int
	for _, m := range append(common(len(a), len(b), func(i, j int) bool { return a[i].sum == b[j].sum }), [2]int{len(a), len(b)}) {
		for i < m[0] || j < m[1] {
			var x, y *node
			if i < m[0] {
				x = a[i]
				i++
			}
			if j < m[1] {
				y = b[j]
				j++
			}
			c.element(x, y)
		}
		i, j = m[0]+1, m[1]+1
	}
}

// common returns a longest common subsequence of lists of n and m elements: pairs of indices of equal ones. Of lists that are
// too long it is empty.
func common(n, m int, equal func(i, j int) bool) (pairs [][2]int) {
	if n*m > maxTable {
		return nil
	}
	length := make([][]int32, n+1)
	for i := range length {
		length[i] = make([]int32, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if equal(i, j) {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case equal(i, j):
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}
