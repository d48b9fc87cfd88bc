package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// conditions are the properties in which runs must be alike to be compared. The control plane, which
// is what is compared, and the version of scaler are not among them.
var conditions = ofKind(scenario.Size, scenario.Condition)

// subjects are the conditions that may differ between the sides in addition to settings: the subject of the comparison.
var subjects = ofKind(scenario.Subject)

// ofKind returns the conditions of these kinds.
func ofKind(kinds ...scenario.Comparability) []record.Condition {
	return slices.DeleteFunc(slices.Clone(record.Conditions), func(c record.Condition) bool { return !slices.Contains(kinds, c.Kind()) })
}

// sizeAndKnobs is the number of conditions, from the first, that name a group to a reader.
const sizeAndKnobs = 5

// repeats is a group of runs of one side that are alike in all conditions.
type repeats struct {
	first  *record.Run   // represents all of them; completed, if one did
	used   []*record.Run // completed, in order of time
	unused []*record.Run // the others
}

func (r *repeats) values(of []record.Condition) []string {
	var all []string
	for _, c := range of {
		all = append(all, c.Of(r.first))
	}
	return all
}

// label names the group to a reader, by its size and settings.
func (r *repeats) label() string {
	label := fmt.Sprintf("%d pods, %d services, %s", r.first.PodCount(), r.first.ServiceCount(), r.first.Environment.Knobs.Text())
	if profile := r.first.Parts.String(); profile != "" {
		label += ", " + profile
	}
	return label
}

// gather groups the runs of a side by their conditions, in order of size. Runs that were
// killed before their record had their properties are returned separately.
//
// The error reports that a group has runs of two control planes, which are no repeats of
// each other.
func gather(side string, runs []record.Run) (groups []*repeats, unknown []*record.Run, err error) {
	byKey := map[string]*repeats{}
	for i := range runs {
		run := &runs[i]
		if run.PodCount() == 0 {
			unknown = append(unknown, run)
			continue
		}
		one := &repeats{first: run}
		key := strings.Join(one.values(conditions), "\n")
		group := byKey[key]
		if group == nil {
			group = one
			byKey[key] = group
			groups = append(groups, group)
		}
		if run.Status != record.StatusCompleted {
			group.unused = append(group.unused, run)
			continue
		}
		if len(group.used) == 0 {
			group.first = run
		}
		group.used = append(group.used, run)
		if d := compared(group.first, run); d != nil {
			return nil, nil, fmt.Errorf("%s holds runs of two control planes for %s: %s %q in %s, %q in %s: name a folder that holds one of them",
				side, group.label(), d[0].What, d[0].A, place(group.first), d[0].B, place(run))
		}
	}
	for _, group := range groups {
		slices.SortStableFunc(group.used, func(a, b *record.Run) int { return a.Started.Compare(b.Started) })
	}
	slices.SortStableFunc(groups, func(a, b *repeats) int {
		if a.first.PodCount() != b.first.PodCount() {
			return a.first.PodCount() - b.first.PodCount()
		}
		return strings.Compare(a.label(), b.label())
	})
	return groups, unknown, nil
}

// differences lists the conditions in which two runs differ.
func differences(of []record.Condition, a, b *record.Run) (all []Differing) {
	for _, c := range of {
		if inA, inB := c.Of(a), c.Of(b); inA != inB && inA != "" && inB != "" {
			all = append(all, Differing{What: c.Name, A: inA, B: inB})
		}
	}
	return all
}

// compared lists in which subjects and settings the control planes of two runs
// differ.
func compared(a, b *record.Run) []Differing {
	all := differences(subjects, a, b)
	inA, inB := a.Environment.ControlPlane.Settings, b.Environment.ControlPlane.Settings
	names := slices.Concat(slices.Collect(maps.Keys(inA)), slices.Collect(maps.Keys(inB)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		value := func(settings map[string]string) string {
			if v, set := settings[name]; set {
				return v
			}
			return "not set"
		}
		if x, y := value(inA), value(inB); x != y {
			all = append(all, Differing{What: name, A: x, B: y})
		}
	}
	return all
}

// pair is a group of runs from each side.
type pair struct {
	a, b *repeats
	name string // for a reader; "" = the label of a
}

// label names the pair to a reader.
func (p pair) label() string { return cmp.Or(p.name, p.a.label()) }

// matchBy finds for each group of A the group of B that is alike in these conditions.
func matchBy(of []record.Condition, a, b []*repeats) (pairs []pair, onlyA, onlyB []*repeats) {
	onlyB = slices.Clone(b)
	for _, one := range a {
		at := slices.IndexFunc(onlyB, func(other *repeats) bool { return slices.Equal(one.values(of), other.values(of)) })
		if at < 0 {
			onlyA = append(onlyA, one)
			continue
		}
		pairs = append(pairs, pair{a: one, b: onlyB[at]})
		onlyB = slices.Delete(onlyB, at, at+1)
	}
	return pairs, onlyA, onlyB
}

// refusal returns an error that says in one line why groups cannot be compared; nil if
// they can.
func refusal(conditions []record.Condition, forced []pair, onlyA, onlyB []*repeats) error {
	var reasons []string
	for _, p := range forced {
		var parts []string
		for _, d := range differences(conditions, p.a.first, p.b.first) {
			parts = append(parts, fmt.Sprintf("%s %s in A, %s in B", d.What, d.A, d.B))
		}
		reasons = append(reasons, strings.Join(parts, ", "))
	}
	slices.Sort(reasons)
	reasons = slices.Compact(reasons)
	for _, group := range onlyA {
		reasons = append(reasons, group.label()+": only in A")
	}
	for _, group := range onlyB {
		reasons = append(reasons, group.label()+": only in B")
	}
	if reasons == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNotComparable, strings.Join(reasons, "; "))
}
