package record

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Figure is one kind of number in a record of a run. The catalogue of all is Figures:
// tables, comparisons, plans and the documents take paths, units and labels from it.
// A new figure is added to its list there, and to the types of a record.
type Figure struct {
	// Path is where it is in the JSON, as in latencies.podReady.p99. Words in capitals
	// stand for names: PHASE, PROGRAM, KIND (of change), TYPE (of resource), FAULT, STAGE (of an upgrade).
	Path   string
	Unit   Unit
	Phase  PhaseName // that it is of; "" for the phase in Path, or the whole run
	Label  string    // for people; what it is of comes before a colon
	Counts string    // what one observation is
	Better Better

	// Definition states what is measured, in whole sentences; docs/reference/figures.md prints it. Of a
	// latency's figure, such as p99, it states which part of the distribution that is.
	Definition string
	From, To   string // the events between which each observation of a latency lies
	Note       string // what else there is to know of the latency; "" = nothing
	Source     string // where the numbers come from; "" = scaler counts them
	// Scope states of which programs, proxies or pods it is, where it stands at several places.
	Scope string

	// NotCompared is set where runs are not compared by it: it is given, one
	// observation, or contained in others.
	NotCompared bool

	// timed is the path that a warning names where programs that wait, for processors or for their watches, make the figure
	// uncertain: its own, or one above; "" = they do not. See Run.Reach.
	timed string
	list  list
}

// Between states the events between which each observation of a latency lies; "" for a figure of another kind.
func (f Figure) Between() string {
	if f.From == "" {
		return ""
	}
	return "From: " + f.From + ". To: " + f.To + "."
}

// Unit is what a figure is measured in.
type Unit string

// The units of figures, all of them base units.
const (
	UnitSeconds        Unit = "s"
	UnitBytes          Unit = "B"
	UnitCores          Unit = "cores"
	UnitPerSecond      Unit = "/s"
	UnitBytesPerSecond Unit = "B/s"
	UnitShare          Unit = "share" // 0 to 1
	UnitCount          Unit = "count"
)

// Better states which way a figure gets better.
type Better string

// What is better. Neither is of figures that state what was done, not how well.
const (
	BetterLower   Better = "lower"
	BetterHigher  Better = "higher"
	BetterNeither Better = "neither"
)

// Value is a figure of one run.
type Value struct {
	Figure Figure   // with names for the words in capitals of its label
	Path   string   // in the record, with names; those of faults are NAME@PHASE
	Value  *float64 // nil if Lost or Withheld
	Lost   bool     // it lies among what was lost: it is above all that came
	// Withheld reports that too few changes were made for it; see ChangesForP99.
	Withheld bool
}

// FigureOf is a figure of a T, such as a Usage; its path is the one below the T.
type FigureOf[T any] struct {
	Figure
	Of   func(*T) *float64 // nil = not measured
	lost func(*T) bool     // whether it lies among what was lost, if it is nil
}

// Distribution is a latency by its place in the record.
type Distribution struct {
	Path     string // below the Latencies, as in push.route
	Label    string
	Counts   string    // what one observation is
	Phase    PhaseName // that it is of
	From, To string    // the events between which each observation lies
	Note     string    // what else there is to know of it; "" = nothing
	Latency  *Latency  // nil if it was not measured
	// WithheldP99 reports that too few changes were made for p99 and beyond.
	WithheldP99 bool
}

// Figures are all figures that a run may have, in the order of Values.
func Figures() []Figure {
	var all []Figure
	for _, n := range runFigures() {
		all = append(all, n.figures...)
	}
	return all
}

// FigureAt is the figure at a path of a record, in which names stand for the words in
// capitals; none of a fault whose name has a dot.
func FigureAt(path string) (Figure, bool) {
	names := strings.Split(path, ".")
	for _, n := range runFigures() {
		if !Within(n.figures[0].Path, names[0]) {
			continue
		}
		for _, f := range n.figures {
			if slices.EqualFunc(strings.Split(f.Path, "."), names, stands) {
				return f, true
			}
		}
	}
	return Figure{}, false
}

// stands reports whether a word of a figure's path stands for a name.
func stands(word, name string) bool {
	switch word {
	case "PHASE":
		return slices.Contains(FigurePhases, PhaseName(name))
	case "KIND":
		return slices.Contains(ChangeKinds, ChangeKind(name))
	case "PROGRAM", "TYPE", "FAULT", "STAGE":
		return true
	}
	return word == name
}

// Values are the figures of the run that were measured, in the order in which they
// are shown. The control plane's own metrics are not among them: their meaning
// depends on its version.
func (r *Run) Values() []Value {
	var all []Value
	for _, n := range runFigures() {
		n.values("", "", r, func(v Value) {
			if v.Figure.Phase == "" {
				v.Figure.Phase = phaseOf(v.Path)
			}
			all = append(all, v)
		})
	}
	return all
}

// Value is the figure at a path of the record; nil if it was not measured, or lies
// among what was lost.
func (r *Run) Value(path string) *float64 {
	var found *float64
	take := func(v Value) { found = v.Value }
	for _, n := range runFigures() {
		n.values(path, "", r, take)
	}
	return found
}

// node is a part of the catalogue: figures of a T, with paths below it, and how they
// are read from one.
type node[T any] struct {
	figures []Figure
	values  func(want, path string, t *T, add func(Value)) // want: the only path to read; "" = all
}

// leads reports whether a path is wanted, or is above one that is.
func leads(want, path string) bool { return want == "" || path == "" || Within(want, path) }

// list names figures that stand at several places.
type list string

const (
	usageList   list = "usage"
	latencyList list = "latency"
)

// place is where figures stand: what comes before their paths and labels.
type place struct {
	path, label    string
	counts         string
	phase          PhaseName
	from, to, note string // of a latency there
	scope          string // of figures that do not state their own
	timed          timing
	notCompared    bool
	list           list
}

// timing states how figures at a place are timed.
type timing int

const (
	timedEach  timing = iota // as each states
	timedWhole               // a warning names the place
	timedApart               // its warnings name their paths themselves; see Run.waited
)

// of is a figure at the place.
func (p place) of(f Figure) Figure {
	f.Path = join(p.path, f.Path)
	switch {
	case p.timed == timedWhole:
		f.timed = p.path
	case p.timed == timedApart:
		f.timed = ""
	case f.timed != "":
		f.timed = join(p.path, f.timed)
	}
	f.Label = p.label + f.Label
	if p.counts != "" {
		f.Counts = p.counts
	}
	if f.Phase == "" {
		f.Phase = p.phase
	}
	f.From, f.To, f.Note = cmp.Or(f.From, p.from), cmp.Or(f.To, p.to), cmp.Or(f.Note, p.note)
	f.Scope = cmp.Or(f.Scope, p.scope)
	f.NotCompared = f.NotCompared || p.notCompared
	if p.list != "" {
		f.list = p.list
	}
	return f
}

func join(path, below string) string {
	if path == "" || below == "" {
		return path + below
	}
	return path + "." + below
}

// leaves are figures of a T as nodes.
func leaves[T any](figures []FigureOf[T]) []node[T] {
	var all []node[T]
	for _, f := range figures {
		all = append(all, node[T]{[]Figure{f.Figure}, func(want, path string, t *T, add func(Value)) {
			path = join(path, f.Path)
			if want != "" && want != path {
				return
			}
			v := Value{Figure: f.Figure, Path: path, Value: f.Of(t)}
			v.Lost = v.Value == nil && f.lost != nil && f.lost(t)
			if v.Value != nil || v.Lost {
				add(v)
			}
		}})
	}
	return all
}

// at puts the figures of a U at a place in a T; of nil there are none.
func at[T, U any](p place, of func(*T) *U, below []node[U]) node[T] {
	return each(p, "", func(t *T) []named[U] {
		if u := of(t); u != nil {
			return []named[U]{{"", u}}
		}
		return nil
	}, below)
}

// named is one of several, such as a program of the cluster.
type named[T any] struct {
	name string
	of   *T
}

// each puts the figures of every U at a place in a T, in whose path a word stands for
// their names.
func each[T, U any](p place, word string, of func(*T) []named[U], below []node[U]) node[T] {
	var n node[T]
	for _, b := range below {
		for _, f := range b.figures {
			n.figures = append(n.figures, p.of(f))
		}
	}
	before, _, _ := strings.Cut(p.path, "."+word) // what is the same for all
	n.values = func(want, path string, t *T, add func(Value)) {
		if word != "" && strings.Contains(p.path, "."+word) && !leads(want, join(path, before)) {
			return
		}
		for _, u := range of(t) {
			label, name := p.label, p.path
			if word != "" {
				label = strings.ReplaceAll(p.label, word, u.name)
				name = strings.ReplaceAll(p.path, word, u.name)
			}
			at := join(path, name)
			if !leads(want, at) {
				continue
			}
			for _, b := range below {
				b.values(want, at, u.of, func(v Value) {
					here := p
					here.label = label
					v.Figure = here.of(v.Figure)
					add(v)
				})
			}
		}
	}
	return n
}

// entries are those of a map, sorted by name.
func entries[K ~string, V any](m map[K]V) []named[V] {
	var all []named[V]
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, named[V]{string(name), new(m[name])})
	}
	return all
}

// phased are the phases of one that has them; see ByPhase.At.
func phased[T any](by *ByPhase[*T]) []named[T] {
	var all []named[T]
	if by == nil {
		return nil
	}
	for _, phase := range FigurePhases {
		if u := *by.At(phase); u != nil {
			all = append(all, named[T]{string(phase), u})
		}
	}
	return all
}

// FigurePhases are the phases that have figures, in order of time. The baseline is one of
// them: a control plane that needs more while it has nothing to do is another one.
var FigurePhases = []PhaseName{PhaseBaseline, PhaseRollout, PhaseSteady, PhaseProbe, PhaseChange, PhaseCycle, PhaseStorm, PhaseChurn}

// whole is a count as a figure's value.
func whole[N int | int64](n *N) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}
