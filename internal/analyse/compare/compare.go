package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// ErrNotComparable is in the error of Compare if the two sides differ in more than the
// control plane. Options.Force compares them nevertheless.
var ErrNotComparable = errors.New("not comparable")

const (
	// alpha is the probability that any figure in a comparison of like with like is
	// reported as different.
	alpha = 0.05
	// confidence is the level of each single interval.
	confidence = 0.95
	// relative is the best relative precision of a figure: histograms keep three digits.
	relative = 1e-3
)

// Options change what Compare does by default.
type Options struct {
	// A and B are the names of the sides in the result, such as their folders; "" means A
	// and B.
	A, B string
	// Force compares runs that are not comparable, and leaves out those without a
	// counterpart; the result says so. False refuses such runs.
	Force bool
	// Figures are names, or beginnings of names up to a dot, of the figures to compare:
	// fewer figures are a smaller family, in which smaller differences are significant.
	// None means all.
	Figures []string
	// Bounds limit the figures of B; see Bound.
	Bounds []Bound
	// EqualWithin is the margin, above 0, by which figures may differ and still count as
	// equal: 0.1 is 10 %. 0 = equivalence is not tested.
	EqualWithin float64
	// Planes are the control planes that may be compared with each other; nil means that
	// runs of two control planes are compared only with Force, as if figures meant the
	// same with both.
	Planes []Plane
}

// Result is the result of Compare.
type Result struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"` // "Comparison"
	A          string   `json:"a"`    // what the sides are called
	B          string   `json:"b"`
	Alpha      float64  `json:"alpha"`
	Tests      int      `json:"tests"`             // figures tested: the family that Holm's correction is for
	Remarks    []string `json:"remarks,omitempty"` // caveats about the comparison as a whole
	Groups     []Group  `json:"groups"`
	Bounds     []Judged `json:"bounds,omitempty"`
	// EqualWithin is the margin of the figures' equivalences; nil = they were not asked for.
	EqualWithin *float64  `json:"equalWithin,omitempty"`
	Warnings    []Warning `json:"warnings,omitempty"` // of the records; figures name them by their place here, from 1
}

// Group compares the runs of both sides of one size, mesh and machine.
type Group struct {
	Label   string            `json:"label"`
	Pods    int               `json:"pods"`
	Knobs   scenario.Settings `json:"knobs"`
	A       Side              `json:"a"`
	B       Side              `json:"b"`
	Modes   *Modes            `json:"modes,omitempty"`   // of two control planes, in place of Knobs
	Differs []Differing       `json:"differs,omitempty"` // what is compared: version and settings of the control plane
	Forced  []Differing       `json:"forced,omitempty"`  // what makes the sides not comparable
	// Order is the order of the compared runs in time, as in ABBAABBA; "" = not known.
	// Interleaved reports that the sides alternated, so that drift affects both equally.
	Order       string   `json:"order,omitempty"`
	Interleaved bool     `json:"interleaved"`
	Figures     []Figure `json:"figures"`
	// Meanings explains the figures with the verdict OtherMeaning, when two control
	// planes are compared.
	Meanings []Meaning `json:"meanings,omitempty"`
}

// Side lists one side's runs in a Group.
type Side struct {
	Used   []string `json:"used"`             // folders of the runs whose figures are compared
	Unused []Unused `json:"unused,omitempty"` // runs that did not complete: their figures are not those of a whole run
}

// Unused is a run that is not compared.
type Unused struct {
	Run    string        `json:"run"` // its folder
	Status record.Status `json:"status"`
	Reason string        `json:"reason,omitempty"`
}

// Differing is a property in which two runs differ.
type Differing struct {
	What string `json:"what"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Verdict is the result of comparing a figure.
type Verdict string

// The verdicts. Only Higher and Lower report that B differs.
const (
	Higher     Verdict = "higher"
	Lower      Verdict = "lower"
	CannotTell Verdict = "~"
	Same       Verdict = "same"            // in every run, to the last digit
	TooFew     Verdict = "too few repeats" // no difference would be significant, however large
	WithLoss   Verdict = "lost"            // among the lost observations of a run: it is only known to be large
	Unmeasured Verdict = "not measured"    // by one side
	// TooFewChanges is the verdict for a quantile of pushes in a run with too few
	// changes.
	TooFewChanges Verdict = "unknown, below 100 changes"
)

// Figure is one figure of both sides.
type Figure struct {
	Path    string  `json:"path"` // in the record
	Name    string  `json:"name"` // short, see Name
	Unit    Unit    `json:"unit"`
	A       Sample  `json:"a"`
	B       Sample  `json:"b"`
	Verdict Verdict `json:"verdict"`
	// The difference of the means, as a share of A's if Ratio, else in the unit; and its
	// 95 % interval, for this figure only. Both are absent without a mean on both sides,
	// and the interval also with too few runs.
	Ratio      bool     `json:"ratio"`
	Difference *float64 `json:"difference,omitempty"`
	Low        *float64 `json:"low,omitempty"`
	High       *float64 `json:"high,omitempty"`
	// P is Welch's p-value, for this figure only; Holm is corrected for the number of
	// tests. Absent if the figure was not tested.
	P        *float64 `json:"p,omitempty"`
	Holm     *float64 `json:"holm,omitempty"`
	Warnings []int    `json:"warnings,omitempty"` // places in Result.Warnings, from 1
	// Equivalence is the result of comparing the interval with Result.EqualWithin; "" = not asked for.
	Equivalence Equivalence `json:"equivalence,omitempty"`
}

// Sample describes a figure of the runs of one side: their number, mean, minimum and
// maximum. The mean is the geometric one if Figure.Ratio, so that the difference is that
// of the means.
type Sample struct {
	N    int      `json:"n"`
	Lost int      `json:"lost,omitempty"` // runs in which the figure is among the lost observations; not in N
	Few  int      `json:"few,omitempty"`  // runs that made too few changes for it; not in N
	Mean *float64 `json:"mean,omitempty"`
	Min  *float64 `json:"min,omitempty"`
	Max  *float64 `json:"max,omitempty"`

	values []float64
}

// Compare compares the runs of A with those of B.
//
// If each side has one data plane, and they differ, only figures that mean the same in
// both are compared. Runs of two control planes are compared with Options.Planes: figures
// that mean the same with both are tested, and the others listed.
//
// The error is ErrNotComparable when they differ in more than the control plane and
// Options.Force is not set; other errors report that a side holds runs of two control
// planes, or that nothing measured has a name that Options asks for.
func Compare(a, b []record.Run, o Options) (*Result, error) {
	groupsA, unknownA, err := gather("A", a)
	if err != nil {
		return nil, err
	}
	groupsB, unknownB, err := gather("B", b)
	if err != nil {
		return nil, err
	}
	rules, err := rulesFor(a, b, o)
	if err != nil {
		return nil, err
	}
	pairs, forced, onlyA, onlyB := rules.match(groupsA, groupsB)
	if err := refusal(rules.conditions, forced, onlyA, onlyB); err != nil && !o.Force {
		return nil, err
	}
	pairs = append(pairs, forced...)
	if len(pairs) == 0 {
		return nil, fmt.Errorf("%w: no run of A has a counterpart in B", ErrNotComparable)
	}
	result := &Result{APIVersion: record.APIVersion, Kind: "Comparison", A: cmp.Or(o.A, "A"), B: cmp.Or(o.B, "B"), Alpha: alpha}
	for _, p := range pairs {
		result.Groups = append(result.Groups, result.group(p, rules))
	}
	result.remark(pairs, rules, onlyA, onlyB, append(unknownA, unknownB...))
	if err := checkNames(result.Groups, o); err != nil {
		return nil, err
	}
	result.Bounds = judge(result.Groups, o.Bounds)
	var all [][]Figure
	for i := range result.Groups {
		c := &result.Groups[i]
		c.Figures = chosen(c.Figures, o.Figures)
		c.Meanings = rules.across.differing(c.Figures)
		all = append(all, c.Figures)
	}
	result.Tests = test(all...)
	result.equate(o.EqualWithin)
	return result, nil
}

// group pairs the figures of a pair, without testing them.
func (r *Result) group(p pair, rules rules) Group {
	c := Group{
		Label: p.label(), Pods: p.a.first.PodCount(), Knobs: p.a.first.Environment.Knobs,
		A: p.a.side(), B: p.b.side(), Modes: rules.across.modes(p),
		Differs: rules.differs(p.a.first, p.b.first),
		Forced:  differences(rules.conditions, p.a.first, p.b.first),
		Order:   order(p.a.used, p.b.used),
	}
	c.Interleaved = interleaved(c.Order)
	at := map[string]int{}
	take := func(runs []*record.Run, ofA bool, of func(*Figure) *Sample) {
		for _, run := range runs {
			after := 0 // a figure that A lacks is inserted at its place in B
			for _, v := range rules.across.figures(run, ofA) {
				if !rules.compares(v.Path) {
					continue
				}
				i, known := at[v.Path]
				if !known {
					i = after
					c.Figures = slices.Insert(c.Figures, i, Figure{Path: v.Path, Name: Name(v.Path), Unit: Unit(v.Figure.Unit)})
					for j := i; j < len(c.Figures); j++ {
						at[c.Figures[j].Path] = j
					}
				}
				after = i + 1
				of(&c.Figures[i]).take(v)
			}
		}
	}
	take(p.a.used, true, func(f *Figure) *Sample { return &f.A })
	take(p.b.used, false, func(f *Figure) *Sample { return &f.B })
	marks := r.warnings(p)
	for i := range c.Figures {
		f := &c.Figures[i]
		f.describe()
		if _, other := rules.across.otherMeaning(f.Path); other && f.Verdict != Unmeasured {
			f.Verdict, f.Difference, f.Low, f.High, f.P = OtherMeaning, nil, nil, nil, nil
		}
		for _, path := range rules.across.partsOf(f.Path) {
			f.Warnings = append(f.Warnings, marks(path)...)
		}
		slices.Sort(f.Warnings)
		f.Warnings = slices.Compact(f.Warnings)
	}
	return c
}

func (r *repeats) side() Side {
	s := Side{Used: []string{}}
	for _, run := range r.used {
		s.Used = append(s.Used, place(run))
	}
	for _, run := range r.unused {
		s.Unused = append(s.Unused, Unused{Run: place(run), Status: run.Status, Reason: run.Reason})
	}
	return s
}

// place returns where to find a run: its folder, or its name if it was not read from a
// folder.
func place(run *record.Run) string {
	if run.Dir == "" {
		return run.Name
	}
	return run.Dir
}

func (s *Sample) take(v record.Value) {
	switch {
	case v.Lost:
		s.Lost++
	case v.Withheld:
		s.Few++
	default:
		s.N++
		s.values = append(s.values, *v.Value)
	}
}

// describe sets everything that needs no test.
func (f *Figure) describe() {
	both := slices.Concat(f.A.values, f.B.values)
	f.Ratio = len(both) > 0 && slices.Min(both) > 0
	f.A.describe(f.Ratio)
	f.B.describe(f.Ratio)
	switch {
	case f.A.Lost+f.B.Lost > 0:
		f.Verdict = WithLoss
	case f.A.Few+f.B.Few > 0:
		f.Verdict = TooFewChanges
	case f.A.N == 0 || f.B.N == 0:
		f.Verdict = Unmeasured
	case slices.Min(both) == slices.Max(both):
		f.Verdict = Same
	case stats.SmallestP(f.A.N, f.B.N) > alpha:
		f.Verdict = TooFew
	}
	if f.A.N == 0 || f.B.N == 0 {
		return
	}
	a, b := f.scaled()
	f.Difference = new(f.printed(stat.Mean(b, nil) - stat.Mean(a, nil)))
	if f.Verdict != "" {
		return
	}
	d, err := stats.Welch(a, b, f.resolution(), confidence)
	if err != nil { // fewer than two values are too few above
		f.Verdict = TooFew
		return
	}
	f.Low, f.High, f.P = new(f.printed(d.Low)), new(f.printed(d.High)), new(d.P)
}

func (s *Sample) describe(geometric bool) {
	if s.N == 0 {
		return
	}
	mean := stat.Mean(s.values, nil)
	if geometric {
		mean = stat.GeometricMean(s.values, nil)
	}
	s.Mean, s.Min, s.Max = &mean, new(slices.Min(s.values)), new(slices.Max(s.values))
}

// scaled returns the values as they are tested: logarithms, if Ratio.
func (f *Figure) scaled() (a, b []float64) {
	if !f.Ratio {
		return f.A.values, f.B.values
	}
	logs := func(values []float64) []float64 {
		all := make([]float64, len(values))
		for i, v := range values {
			all[i] = math.Log(v)
		}
		return all
	}
	return logs(f.A.values), logs(f.B.values)
}

// printed converts a difference of scaled values to the printed scale.
func (f *Figure) printed(d float64) float64 {
	if f.Ratio {
		return math.Expm1(d)
	}
	return d
}

// resolution of the scaled values.
func (f *Figure) resolution() float64 {
	if !f.Ratio {
		return f.Unit.resolution()
	}
	return max(relative, f.Unit.resolution()/min(*f.A.Mean, *f.B.Mean))
}

// test corrects the p-values of all figures of several Groups for their number, and sets
// the verdicts. It returns the number of tested figures.
func test(groups ...[]Figure) int {
	var tested []*Figure
	var p []float64
	for _, figures := range groups {
		for i := range figures {
			if f := &figures[i]; f.P != nil {
				tested, p = append(tested, f), append(p, *f.P)
			}
		}
	}
	for i, corrected := range stats.Holm(p) {
		f := tested[i]
		f.Holm = new(corrected)
		switch {
		case corrected > alpha:
			f.Verdict = CannotTell
		case *f.Difference > 0:
			f.Verdict = Higher
		default:
			f.Verdict = Lower
		}
	}
	return len(tested)
}
