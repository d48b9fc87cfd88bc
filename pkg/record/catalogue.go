package record

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Figure is one kind of number in a record of a run. The catalogue of all is Figures:
// tables, comparisons, plans and the documents take paths, units and labels from it.
// A new figure is added to its list there, and to the types of a record.
type Figure struct {
	// Path is its path in the JSON, as in latencies.podReady.p99. Words in capitals
	// are placeholders: PHASE, PROGRAM, KIND (of change), TYPE (of resource), FAULT, STAGE (of an upgrade).
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
	// quantile reports that it is one of a latency: if it is absent, it may lie among what was lost.
	quantile bool
}

// Of returns the figure in a part of a record, such as a *Usage, below which its path is; nil if it was not measured.
func (f Figure) Of(part any) *float64 { return number(reflect.ValueOf(part), f.Path) }

// Between states the events between which each observation of a latency lies; "" for a figure of another kind.
func (f Figure) Between() string {
	if f.From == "" {
		return ""
	}
	return "From: " + f.From + ". To: " + f.To + "."
}

// Unit is the unit of a figure.
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

// Figures returns all figures that a run may have, in the order of Values.
func Figures() []Figure {
	var all []Figure
	for _, n := range runFigures() {
		all = append(all, n.figures...)
	}
	return all
}

// FigureAt returns the figure at a path of a record, which has names in place of the words in
// capitals; false for a fault whose name has a dot.
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

// stands reports whether a word of a figure's path is the name or a placeholder for it.
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

// Values returns the figures of the run that were measured, in the order in which they
// are shown. The control plane's own metrics are not among them: their meaning
// depends on its version.
func (r *Run) Values() []Value {
	var all []Value
	for _, n := range runFigures() {
		n.values("", "", reflect.ValueOf(r).Elem(), func(v Value) {
			if v.Figure.Phase == "" {
				v.Figure.Phase = phaseOf(v.Path)
			}
			all = append(all, v)
		})
	}
	return all
}

// Value returns the figure at a path of the record; nil if it was not measured, or lies
// among what was lost.
func (r *Run) Value(path string) *float64 {
	var found *float64
	take := func(v Value) { found = v.Value }
	for _, n := range runFigures() {
		n.values(path, "", reflect.ValueOf(r).Elem(), take)
	}
	return found
}

// node is a part of the catalogue: figures with paths below a part of a record, and how their values are read from that.
type node struct {
	figures []Figure
	values  func(want, path string, of reflect.Value, add func(Value)) // want: the only path to read; "" = all
}

// leads reports whether a path is wanted, or is above one that is.
func leads(want, path string) bool { return want == "" || path == "" || Within(want, path) }

// list names figures that stand at several places.
type list string

const (
	usageList   list = "usage"
	latencyList list = "latency"
)

// place is a position of figures in the record: the prefix of their paths and labels.
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

// of returns a figure at the place.
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

// leaves returns a node of figures whose values are read at their own paths.
func leaves(figures []Figure) node {
	return node{figures, func(want, path string, of reflect.Value, add func(Value)) {
		for _, f := range figures {
			at := join(path, f.Path)
			if want != "" && want != at {
				continue
			}
			v := Value{Figure: f, Path: at, Value: number(of, f.Path)}
			if v.Value == nil && f.quantile {
				l := of.Addr().Interface().(*Latency)
				v.Lost = l.Lost > 0 && !l.Unknown()
			}
			if v.Value != nil || v.Lost {
				add(v)
			}
		}
	}}
}

// at places figures below a path. A path that ends with a placeholder, such as PHASE, is expanded to a path for each
// part that the placeholder names.
func at(p place, below ...node) node {
	var n node
	for _, b := range below {
		for _, f := range b.figures {
			n.figures = append(n.figures, p.of(f))
		}
	}
	above, word := p.path, ""
	if last := p.path[strings.LastIndexByte(p.path, '.')+1:]; last == strings.ToUpper(last) {
		above, word = strings.TrimSuffix(strings.TrimSuffix(p.path, last), "."), last
	}
	n.values = func(want, path string, of reflect.Value, add func(Value)) {
		path = join(path, above)
		if !leads(want, path) {
			return
		}
		for _, part := range partsOf(word, field(of, above), of) {
			at := join(path, part.name)
			if !leads(want, at) {
				continue
			}
			here := p
			if word != "" {
				here.label = strings.ReplaceAll(p.label, word, part.name)
			}
			for _, b := range below {
				b.values(want, at, part.of, func(v Value) {
					v.Figure = here.of(v.Figure)
					add(v)
				})
			}
		}
	}
	return n
}

// part is one of several parts of a record, such as a program of the cluster.
type part struct {
	name string
	of   reflect.Value
}

// partsOf returns the parts of v that a placeholder names, in display order; for no placeholder, v itself. v is a field
// of above. Parts that were not measured are left out.
func partsOf(word string, v, above reflect.Value) []part {
	if !v.IsValid() {
		return nil
	}
	var all []part
	add := func(name string, of reflect.Value) {
		if of = measured(of); of.IsValid() {
			all = append(all, part{name, of})
		}
	}
	var names []string // of the entries of a map
	switch word {
	case "":
		add("", v)
	case "PHASE":
		for _, phase := range FigurePhases {
			add(string(phase), field(v, string(phase)))
		}
	case "FAULT": // by name and phase: a place in a list says nothing of one in another run
		for i := range v.Len() {
			f := v.Index(i).Addr().Interface().(*Fault)
			add(f.Name+"@"+string(f.Phase), v.Index(i))
		}
	case "KIND":
		for _, kind := range ChangeKinds {
			names = append(names, string(kind))
		}
	case "STAGE":
		names = above.Addr().Interface().(*Run).UpgradeStages()
	default:
		for _, key := range v.MapKeys() {
			names = append(names, key.String())
		}
		slices.Sort(names)
	}
	for _, name := range names {
		add(name, v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key())))
	}
	return all
}

// number returns the number at a path of JSON names below v; nil if it was not measured. Where v is not the value of a map and the number
// is no count, the result points into the record.
func number(v reflect.Value, path string) *float64 {
	v = field(measured(v), path)
	switch {
	case !v.IsValid():
		return nil
	case v.CanInt():
		return new(float64(v.Int()))
	}
	return v.Addr().Interface().(*float64)
}

// field returns the value at a path of JSON names below v. Fields are found by these names whatever the case. The result is not valid if
// something on the path is absent.
func field(v reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		if !v.IsValid() || path == "" {
			return v
		}
		f, _ := v.Type().FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) })
		if v = v.FieldByIndex(f.Index); v.IsZero() && strings.Contains(f.Tag.Get("json"), ",omit") {
			return reflect.Value{}
		}
		v = measured(v)
	}
	return v
}

// measured follows a pointer, and copies a value of a map, so that the result can be changed. It is not valid if the pointer is nil.
func measured(v reflect.Value) reflect.Value {
	switch {
	case v.Kind() == reflect.Pointer:
		return v.Elem()
	case v.IsValid() && !v.CanAddr(): // of a map
		copied := reflect.New(v.Type()).Elem()
		copied.Set(v)
		return copied
	}
	return v
}

// FigurePhases are the phases that have figures, in order of time. The baseline is one of
// them: a control plane that needs more while it has nothing to do is another one.
var FigurePhases = []PhaseName{PhaseBaseline, PhaseRollout, PhaseSteady, PhaseProbe, PhaseChange, PhaseCycle, PhaseStorm, PhaseChurn}
