package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// A condition is something in which runs must be alike to be compared: all but
// the control plane, which is what is compared, and scaler itself.
type condition struct {
	name string
	of   func(*record.Run) string
}

// podsPerNodeText is for how many pods there is a node that has a proxy.
func podsPerNodeText(r *record.Run) string {
	if r.Spec.PodsPerNode == 0 {
		return "not set"
	}
	return strconv.Itoa(r.Spec.PodsPerNode)
}

// The conditions are in three groups: those of a run's size and mesh, which tell
// one cell from another on the same side; how long it was watched; and where.
var conditions = []condition{
	{"pods", func(r *record.Run) string { return strconv.Itoa(r.Spec.Pods) }},
	{"services", func(r *record.Run) string { return strconv.Itoa(r.Spec.Services) }},
	{"namespaces", func(r *record.Run) string { return strconv.Itoa(r.Spec.Namespaces) }},
	{dataplaneName, func(r *record.Run) string { return r.Dataplane() }},
	{knobsName, func(r *record.Run) string { return knobsText(r.Environment.Knobs) }},
	{podsPerNodeName, func(r *record.Run) string { return podsPerNodeText(r) }},
	{"profile", func(r *record.Run) string { return orNone(r.Spec.ProfileText()) }},
	{"topology", func(r *record.Run) string { return r.Topology() }},
	{"seed", func(r *record.Run) string { return strconv.FormatUint(r.Spec.Seed, 10) }},
	{"burst", func(r *record.Run) string { return r.Spec.Burst }},
	{"dilation", func(r *record.Run) string { return strconv.FormatFloat(max(1, r.Spec.Dilation), 'g', -1, 64) }},
	{"phases in real time", func(r *record.Run) string { return orNone(r.Environment.Dilation.RealTimeText()) }},
	{xdsName, func(r *record.Run) string { return r.Spec.XDS }},
	{"start delay", func(r *record.Run) string { return orNone(r.Spec.StartDelay) }},
	{"certificate lifetime", func(r *record.Run) string { return orNone(r.Spec.CertificateLifetime) }},
	{"change", func(r *record.Run) string { return orNone(r.Spec.Change) }},
	{"churn", func(r *record.Run) string { return orNone(r.Spec.Churn) }},
	{"faults", func(r *record.Run) string { return orNone(strings.Join(r.Spec.Faults, " ")) }},
	{"upgrade", func(r *record.Run) string { return orNone(r.Spec.Upgrade) }},
	{"real sidecars", func(r *record.Run) string { return strconv.Itoa(r.RealSidecars()) }},
	{"certificate storm", func(r *record.Run) string {
		if r.CertificateStorm() {
			return "in the end"
		}
		return "none"
	}},

	{"baseline", func(r *record.Run) string { return secondsText(r.Spec.BaselineSeconds) }},
	{"settle", func(r *record.Run) string { return secondsText(r.Spec.SettleSeconds) }},
	{"steady", func(r *record.Run) string { return secondsText(r.Spec.SteadySeconds) }},
	{"probes", func(r *record.Run) string { return strconv.Itoa(r.Spec.Probes) }},
	{"cycle", func(r *record.Run) string { return secondsText(r.Spec.CycleSeconds) }},
	{"change duration", func(r *record.Run) string { return secondsText(r.Spec.ChangeSeconds) }},

	{"CPUs", func(r *record.Run) string { return strconv.Itoa(r.Environment.CPUs) }},
	{"memory", func(r *record.Run) string { return Bytes.print(float64(r.Environment.MemoryBytes)) }},
	{"kernel", func(r *record.Run) string { return r.Environment.Kernel }},
	{"Kubernetes", func(r *record.Run) string { return r.Environment.Kubernetes }},
	{"KWOK", func(r *record.Run) string { return r.Environment.Kwok }},
	{"priority", func(r *record.Run) string { return priorityText(r.Environment.Priority) }},
}

// sizeAndKnobs is how many of the conditions name a cell to a reader.
const sizeAndKnobs = 5

// Names of conditions that rulesFor knows.
const (
	dataplaneName   = "data plane"
	podsPerNodeName = "pods per node"
	knobsName       = "knobs"
	xdsName         = "xds"
)

// subjects are what may differ between the sides in addition to settings: what is
// compared. "" is not known, and differs from nothing.
var subjects = []condition{
	{"control plane", func(r *record.Run) string {
		c := r.Environment.ControlPlane
		return strings.TrimSpace(c.Name + " " + c.Version)
	}},
	{"program", func(r *record.Run) string { return r.Environment.ControlPlane.Program }},
	{"program's source", programSource},
	{"sidecars' version", func(r *record.Run) string { return r.Environment.ControlPlane.ProxyVersion }},
	{"replicas", func(r *record.Run) string { return strconv.Itoa(r.Environment.ControlPlane.Replicas) }},
	{"GOMAXPROCS", func(r *record.Run) string { return strconv.Itoa(r.Environment.ControlPlane.GOMAXPROCS) }},
	{"processors", func(r *record.Run) string {
		if cpus := r.Environment.ControlPlane.CPUs; len(cpus) > 0 {
			return fmt.Sprintf("%d, bound", len(cpus))
		}
		return "all"
	}},
	{"memory limit", func(r *record.Run) string {
		c := r.Environment.ControlPlane
		switch {
		case c.MemoryLimitBytes == 0:
			return "none"
		case c.MemoryLimitEnforced:
			return fmt.Sprintf("%d MiB, enforced", c.MemoryLimitBytes>>20)
		default:
			return fmt.Sprintf("%d MiB, told", c.MemoryLimitBytes>>20)
		}
	}},
}

// programSource is where the control plane's program is from: a released one and one that
// was built here are compiled with different versions of Go.
func programSource(r *record.Run) string {
	for _, p := range r.Environment.Programs {
		if p.Digest == r.Environment.ControlPlane.Program {
			return p.Source
		}
	}
	return ""
}

// priorityText says by what the control plane ran before scaler, and scaler before the
// cluster.
func priorityText(p *record.Priority) string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("%s %d, %d, %d", p.Mechanism, p.ControlPlane, p.Instrument, p.Cluster)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func secondsText(s float64) string { return strconv.FormatFloat(s, 'g', -1, 64) + " s" }

func knobsText(k record.Knobs) string {
	return fmt.Sprintf("mtls %s, scope %s, authz %s", orNone(k.MTLS), orNone(k.Scope), orNone(k.Authz))
}

// repeats are the runs of one side that are alike in all conditions.
type repeats struct {
	first  *record.Run   // stands for all of them; completed, if one did
	used   []*record.Run // completed, in order of time
	unused []*record.Run // the others
}

func (r *repeats) values(of []condition) []string {
	var all []string
	for _, c := range of {
		all = append(all, c.of(r.first))
	}
	return all
}

// label names the cell to a reader, by its size and knobs.
func (r *repeats) label() string {
	s := r.first.Spec
	label := fmt.Sprintf("%d pods, %d services, %s", s.Pods, s.Services, knobsText(r.first.Environment.Knobs))
	if profile := s.ProfileText(); profile != "" {
		label += ", " + profile
	}
	return label
}

// gather puts the runs of a side into cells, in order of size. Runs of which
// nothing is known but that they began are returned separately: they were killed
// before their record had what they are.
//
// The error reports that a cell holds runs of two control planes, which are no
// repeats of each other.
func gather(side string, runs []record.Run) (cells []*repeats, unknown []*record.Run, err error) {
	byKey := map[string]*repeats{}
	for i := range runs {
		run := &runs[i]
		if run.Spec.Pods == 0 {
			unknown = append(unknown, run)
			continue
		}
		one := &repeats{first: run}
		key := strings.Join(one.values(conditions), "\n")
		cell := byKey[key]
		if cell == nil {
			cell = one
			byKey[key] = cell
			cells = append(cells, cell)
		}
		if run.Status != record.StatusCompleted {
			cell.unused = append(cell.unused, run)
			continue
		}
		if len(cell.used) == 0 {
			cell.first = run
		}
		cell.used = append(cell.used, run)
		if d := compared(cell.first, run); d != nil {
			return nil, nil, fmt.Errorf("%s holds runs of two control planes for %s: %s %q in %s, %q in %s: name a folder that holds one of them",
				side, cell.label(), d[0].What, d[0].A, place(cell.first), d[0].B, place(run))
		}
	}
	for _, cell := range cells {
		slices.SortStableFunc(cell.used, func(a, b *record.Run) int { return a.Started.Compare(b.Started) })
	}
	slices.SortStableFunc(cells, func(a, b *repeats) int {
		if a.first.Spec.Pods != b.first.Spec.Pods {
			return a.first.Spec.Pods - b.first.Spec.Pods
		}
		return strings.Compare(a.label(), b.label())
	})
	return cells, unknown, nil
}

// differences lists in which of these things two runs differ.
func differences(of []condition, a, b *record.Run) (all []Differing) {
	for _, c := range of {
		if inA, inB := c.of(a), c.of(b); inA != inB && inA != "" && inB != "" {
			all = append(all, Differing{What: c.name, A: inA, B: inB})
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

// pair is a cell of each side.
type pair struct {
	a, b *repeats
	cell string // what it is called; see label
}

// label names the pair to a reader.
func (p pair) label() string { return cmp.Or(p.cell, p.a.label()) }

// match finds for each cell of A the one of B that is alike in all conditions.
// What is left over is, as far as it goes, paired with what is alike in size and
// knobs, and at last, if one of each is left, with each other: such pairs are
// forced.
func match(conditions []condition, a, b []*repeats) (alike, forced []pair, onlyA, onlyB []*repeats) {
	alike, onlyA, onlyB = matchBy(conditions, a, b)
	forced, onlyA, onlyB = matchBy(conditions[:sizeAndKnobs], onlyA, onlyB)
	if len(onlyA) == 1 && len(onlyB) == 1 {
		return alike, append(forced, pair{a: onlyA[0], b: onlyB[0]}), nil, nil
	}
	return alike, forced, onlyA, onlyB
}

func matchBy(of []condition, a, b []*repeats) (pairs []pair, onlyA, onlyB []*repeats) {
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

// refusal says in one line why cells cannot be compared; nil when they can.
func refusal(conditions []condition, forced []pair, onlyA, onlyB []*repeats) error {
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
	for _, cell := range onlyA {
		reasons = append(reasons, cell.label()+": only in A")
	}
	for _, cell := range onlyB {
		reasons = append(reasons, cell.label()+": only in B")
	}
	if reasons == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNotComparable, strings.Join(reasons, "; "))
}
