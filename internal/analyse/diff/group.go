package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// difference is one of a resource between both sides, as a group has it.
type difference struct {
	key      groupKey
	resource string
	elements []string
	bytes    int
}

// groupKey has the properties that are equal for all differences of one group.
type groupKey struct {
	effect   Effect
	kind     string
	class    string
	op       Op
	path     string
	from, to string
	// whole is the name of a resource or an element that only one side has: such groups are joined when
	// all their sidecars are the same.
	whole string
}

// gathered is a group while it grows.
type gathered struct {
	resources, elements map[string]bool
	batches             map[int]bool // that have the difference, by their indices
	bytes               int64
}

// batch are sidecars of a workload that hold the same on either side.
type batch struct {
	of       workloadName
	sidecars int
}

// profiles compares what a batch of sidecars holds with what it held.
func (c *comparison) profiles(of batch, before, after *profile) {
	var gone, come []*resource
	var all []difference
	i, j := 0, 0
	for i < len(before.held) || j < len(after.held) {
		var order int
		switch {
		case i == len(before.held):
			order = 1
		case j == len(after.held):
			order = -1
		default:
			a, b := before.held[i], after.held[j]
			order = cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name))
		}
		switch {
		case order < 0:
			gone = append(gone, before.held[i])
			i++
		case order > 0:
			come = append(come, after.held[j])
			j++
		default:
			all = append(all, c.pair(before.held[i], after.held[j])...)
			i, j = i+1, j+1
		}
	}
	all = append(all, whole(gone, come)...)
	c.gather(of, all)
}

// pair compares two resources of one name, once.
func (c *comparison) pair(a, b *resource) []difference {
	if a.id == b.id {
		return nil
	}
	key := [2]int{a.id, b.id}
	all, done := c.pairs[key]
	if done {
		return all
	}
	own := ownNames(b.name)
	for _, ch := range changesOf(a.root, b.root) {
		d := difference{resource: b.name, elements: ch.keys, bytes: sizeOf(ch.to) - sizeOf(ch.from), key: groupKey{
			effect: effectOf(b.kind, ch, b.root), kind: b.kind, class: classOf(b.kind, b.name), op: ch.op, path: ch.path,
		}}
		d.key.from, d.key.to = valueText(ch.from, own), valueText(ch.to, own)
		if strings.HasSuffix(ch.path, "[*]") && len(ch.keys) > 0 && (ch.op == Added || ch.op == Removed) {
			d.key.whole = b.name + " " + strings.Join(ch.keys, " ")
		}
		all = append(all, d)
	}
	c.pairs[key] = all
	return all
}

// sizeOf returns the approximate encoded size of a field, in bytes: its value, tag and length.
func sizeOf(n *node) int {
	if n == nil {
		return 0
	}
	return n.size + 2
}

// valueText returns a value without the names of the resource that it is in, so that the same difference of many
// resources is one.
func valueText(n *node, own *strings.Replacer) string {
	if n == nil {
		return ""
	}
	return own.Replace(n.String())
}

// ownNames replace a resource's name and the host and port in it.
func ownNames(name string) *strings.Replacer {
	replace := []string{name, "{name}"}
	if parts := strings.Split(name, "|"); len(parts) == 4 && parts[3] != "" {
		replace = append(replace, strings.Join(append([]string{parts[0], parts[1], parts[2]}, parts[3]), "_."), "{name}", parts[3], "{host}")
	} else if at := strings.LastIndexByte(name, '/'); at >= 0 && at < len(name)-1 {
		replace = append(replace, name[at+1:], "{object}") // of an extension: extensions.istio.io/wasmplugin/NAMESPACE.NAME
	}
	return strings.NewReplacer(replace...)
}

// whole returns the differences of resources that are on one side alone. One that has the same content as one on the
// other side was renamed.
func whole(gone, come []*resource) (all []difference) {
	left := map[string][]*resource{}
	content := func(r *resource) string { return r.kind + " " + ownNames(r.name).Replace(r.root.String()) }
	if len(gone) > 0 && len(come) > 0 {
		for _, r := range come {
			left[content(r)] = append(left[content(r)], r)
		}
	}
	renamed := map[*resource]bool{}
	add := func(effect Effect, op Op, r *resource, from, to string, bytes int) {
		if r.kind == authorizationType {
			effect = PoliciesChecked
		}
		all = append(all, difference{resource: r.name, bytes: bytes, key: groupKey{
			effect: effect, kind: r.kind, class: classOf(r.kind, r.name), op: op, from: from, to: to, whole: r.name,
		}})
	}
	for _, r := range gone {
		if same := left[content(r)]; len(same) > 0 {
			renamed[same[0]] = true
			left[content(r)] = same[1:]
			add(ResourceRemoved, Renamed, same[0], r.name, same[0].name, same[0].size-r.size)
			continue
		}
		add(ResourceRemoved, Removed, r, "", "", -r.size)
	}
	for _, r := range come {
		if !renamed[r] {
			add(ResourceAdded, Added, r, "", "", r.size)
		}
	}
	return all
}

// gather adds the differences of a batch.
func (c *comparison) gather(of batch, all []difference) {
	number := len(c.batches)
	c.batches = append(c.batches, of)
	for _, d := range all {
		g := c.groups[d.key]
		if g == nil {
			g = &gathered{resources: map[string]bool{}, elements: map[string]bool{}, batches: map[int]bool{}}
			c.groups[d.key] = g
			c.keys = append(c.keys, d.key)
		}
		g.resources[d.resource] = true
		if len(d.elements) > 0 {
			g.elements[strings.Join(d.elements, " / ")] = true
		}
		g.bytes += int64(of.sidecars * d.bytes)
		g.batches[number] = true
	}
}

// join adds what another group gathered.
func (g *gathered) join(o *gathered) {
	maps.Copy(g.resources, o.resources)
	maps.Copy(g.elements, o.elements)
	maps.Copy(g.batches, o.batches)
	g.bytes += o.bytes
}

// variants is the largest number of values of one field that are listed one by one. More are one group.
const variants = 3

// conclude makes the groups of the result.
func (c *comparison) conclude() {
	byField := map[groupKey]int{}
	for _, key := range c.keys {
		byField[key.field()]++
	}
	merged := map[groupKey]*gathered{}
	values := map[groupKey][]Value{}
	var keys []groupKey
	for _, key := range c.keys {
		g := c.groups[key]
		field := key
		switch {
		case key.op == Renamed:
		case key.whole != "":
			field = key.field()
			field.whole = fmt.Sprint(slices.Sorted(maps.Keys(g.batches))) // joined with the others that the same sidecars have
		case byField[key.field()] > variants:
			field = key.field()
		}
		if merged[field] == nil {
			merged[field] = g
			keys = append(keys, field)
		} else {
			merged[field].join(g)
		}
		if key.from != "" || key.to != "" {
			values[field] = append(values[field], Value{key.from, key.to})
		}
	}
	for _, key := range keys {
		c.result.Groups = append(c.result.Groups, c.group(key, merged[key], values[key]))
	}
	slices.SortStableFunc(c.result.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Effect.rank(), b.Effect.rank()), cmp.Compare(b.Sidecars, a.Sidecars), cmp.Compare(len(b.Resources), len(a.Resources)),
			strings.Compare(a.Type, b.Type), strings.Compare(a.Class, b.Class), strings.Compare(a.Path, b.Path), strings.Compare(string(a.Op), string(b.Op)))
	})
	for _, e := range Effects {
		c.effect(EffectCount{Effect: e.Effect, What: e.What, Source: e.Source}, merged)
	}
	c.result.Opaque = sorted(c.opaque)
}

// field returns the key without what differs between the values of one field.
func (k groupKey) field() groupKey {
	k.from, k.to = "", ""
	return k
}

func (c *comparison) group(key groupKey, g *gathered, values []Value) Group {
	sidecars, workloads := c.affected(g.batches)
	return Group{
		Effect: key.effect, Type: key.kind, Class: key.class, Op: key.op, Path: key.path, Values: values,
		Resources: sorted(g.resources), OfResources: max(c.classes[key.kind+" "+key.class], len(g.resources)), Elements: sorted(g.elements),
		Sidecars: sidecars, OfSidecars: c.result.Sidecars, Workloads: workloads, Bytes: g.bytes,
		Meaning: meaningOf(key, values),
	}
}

// effect counts the groups and the sidecars that have an effect.
func (c *comparison) effect(e EffectCount, merged map[groupKey]*gathered) {
	batches := map[int]bool{}
	for key, g := range merged {
		if key.effect == e.Effect {
			e.Groups++
			maps.Copy(batches, g.batches)
		}
	}
	if e.Groups > 0 {
		e.Sidecars, _ = c.affected(batches)
		c.result.Effects = append(c.result.Effects, e)
	}
}

// affected returns the sidecars of batches, and their workloads, sorted.
func (c *comparison) affected(batches map[int]bool) (sidecars int, workloads []Workload) {
	by := map[workloadName]int{}
	for number := range batches {
		b := c.batches[number]
		by[b.of] += b.sidecars
		sidecars += b.sidecars
	}
	for w, n := range by {
		workloads = append(workloads, Workload{w.namespace, w.name, n, c.totals[w]})
	}
	slices.SortFunc(workloads, func(a, b Workload) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return sidecars, workloads
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
