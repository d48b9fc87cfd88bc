package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Plane describes one of two control planes that are compared.
type Plane struct {
	Name     string            // as in the records
	Work     string            // what its programs do, helpers included, in a clause; "" = not known
	Helpers  []string          // its programs that records have among those of the cluster
	Meanings map[string]string // of figures, by their paths in record.AcrossControlPlanes, where they differ from the meaning there
}

// means returns the meaning of an entry's figures with this control plane; "" = the same
// with every one.
func (p Plane) means(a record.Across) string {
	if own := p.Meanings[a.Path]; own != "" && a.Means != "" {
		return own
	}
	return a.Means
}

// OtherMeaning is the verdict for a figure that does not mean the same with both control
// planes: it is listed without a difference.
const OtherMeaning Verdict = "other meaning"

// Meaning states what figures mean on each side.
type Meaning struct {
	Path string `json:"path"` // of figures, or what is above them
	A    string `json:"a"`
	B    string `json:"b"`
}

// Modes describes the sides of a Group that compares two control planes.
type Modes struct {
	A Mode `json:"a"`
	B Mode `json:"b"`
}

// Mode describes a mode of a control plane by the meaning of its settings.
type Mode struct {
	ControlPlane string `json:"controlPlane"`   // name and version
	Work         string `json:"work,omitempty"` // of its programs, in a clause
	Name         string `json:"name"`           // of the mode; the knobs, where they were set one by one
	Means        string `json:"means"`
}

// across describes a comparison of two control planes; nil = both sides have the same
// one.
type across struct{ a, b Plane }

// sidesOf returns the control planes of both sides; nil if they are the same, or if a
// side does not state one. The error is ErrNotComparable without Options.Planes and
// Options.Force; otherwise it reports that a side has runs of several control planes, or
// of an unknown one.
func sidesOf(a, b []record.Run, o Options) (*across, error) {
	of, other := planeNames(a), planeNames(b)
	if len(of) == 0 || len(other) == 0 || slices.Equal(of, other) {
		return nil, nil
	}
	if o.Planes == nil {
		if o.Force {
			return nil, nil
		}
		return nil, fmt.Errorf("%w: control plane %s in A, %s in B: --across-control-planes compares the figures that mean the same with both",
			ErrNotComparable, strings.Join(of, " and "), strings.Join(other, " and "))
	}
	var found []Plane
	for i, names := range [][]string{of, other} {
		if len(names) != 1 {
			return nil, fmt.Errorf("%s holds runs of two control planes, %s: want one on each side with --across-control-planes", []string{"A", "B"}[i], strings.Join(names, " and "))
		}
		at := slices.IndexFunc(o.Planes, func(p Plane) bool { return p.Name == names[0] })
		if at < 0 {
			return nil, fmt.Errorf("what figures mean with control plane %q is not known", names[0])
		}
		found = append(found, o.Planes[at])
	}
	return &across{a: found[0], b: found[1]}, nil
}

// planeNames returns the names of the control planes of a side's runs, each once.
func planeNames(runs []record.Run) []string {
	var names []string
	for i := range runs {
		if name := runs[i].Environment.ControlPlane.Name; name != "" && runs[i].PodCount() > 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// otherMeaning returns the meaning of a figure, and whether it differs between the sides.
func (s *across) otherMeaning(path string) (Meaning, bool) {
	if s == nil || record.Within(path, allPrograms) {
		return Meaning{}, false
	}
	entry, known := record.AcrossOf(path)
	a, b := s.a.means(entry), s.b.means(entry)
	return Meaning{Path: entry.Path, A: a, B: b}, !known || a != b
}

// allPrograms is the path of the figures of all programs of a control plane together.
// They are not in the record, which has each program by itself.
const allPrograms = "allPrograms"

// additive are the figures of a program that can be summed over several programs. Peaks
// are not among them, because the programs do not reach them at the same moment.
var additive = []string{"cores.mean", "cpuSeconds", "memoryBytes.mean", "memoryBytes.end", "workingSetBytes.mean", "workingSetBytes.end"}

// together returns the figures of all programs of a run's control plane together, if each
// of them was measured.
func (p Plane) together(r *record.Run) []record.Value {
	var all []record.Value
	for _, phase := range record.FigurePhases {
		for _, name := range additive {
			below := string(phase) + "." + name
			figure, known := record.FigureAt("controlPlane." + below)
			sum := r.Value("controlPlane." + below)
			for _, helper := range p.Helpers {
				if part := r.Value("cluster." + helper + "." + below); part != nil && sum != nil {
					sum = new(*sum + *part)
				} else {
					sum = nil
				}
			}
			if known && sum != nil {
				all = append(all, record.Value{Figure: figure, Path: allPrograms + "." + below, Value: sum})
			}
		}
	}
	return all
}

// partsOf returns the paths in a record of which a figure of all programs is the sum on
// either side; for any other figure the path itself.
func (s *across) partsOf(path string) []string {
	below, ok := strings.CutPrefix(path, allPrograms+".")
	if s == nil || !ok {
		return []string{path}
	}
	parts := []string{"controlPlane." + below}
	for _, helper := range slices.Concat(s.a.Helpers, s.b.Helpers) {
		parts = append(parts, "cluster."+helper+"."+below)
	}
	return parts
}

// figures returns the figures of a run of one side.
func (s *across) figures(r *record.Run, ofA bool) []record.Value {
	switch {
	case s == nil || len(s.a.Helpers)+len(s.b.Helpers) == 0:
		return figures(r)
	case ofA:
		return append(s.a.together(r), figures(r)...)
	default:
		return append(s.b.together(r), figures(r)...)
	}
}

// matchModes returns a function that pairs the groups of two control planes, as matchBy
// does for one. If a side of all, a and b, has only one mode, it is paired with each mode
// of the other; otherwise modes of the same name are paired.
func matchModes(a, b []*repeats) func(of []record.Condition, a, b []*repeats) (pairs []pair, onlyA, onlyB []*repeats) {
	free := len(modeNames(a)) == 1 || len(modeNames(b)) == 1
	return func(of []record.Condition, a, b []*repeats) (pairs []pair, onlyA, onlyB []*repeats) {
		paired := map[*repeats]bool{}
		for _, one := range a {
			for _, other := range b {
				if slices.Equal(one.values(of), other.values(of)) && (free || one.first.Mode() == other.first.Mode()) {
					pairs = append(pairs, pair{a: one, b: other})
					paired[one], paired[other] = true, true
				}
			}
		}
		left := func(r *repeats) bool { return paired[r] }
		return pairs, slices.DeleteFunc(slices.Clone(a), left), slices.DeleteFunc(slices.Clone(b), left)
	}
}

// modesLabel names a pair of two control planes to a reader.
func (p pair) modesLabel() string {
	label := fmt.Sprintf("%d pods, %d services, %s", p.a.first.PodCount(), p.a.first.ServiceCount(), p.a.first.Mode())
	if other := p.b.first.Mode(); other != p.a.first.Mode() {
		label += " in A, " + other + " in B"
	}
	return label
}

func modeNames(groups []*repeats) []string {
	var names []string
	for _, c := range groups {
		if name := c.first.Mode(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// modes describes a pair's sides; nil if both are of one control plane.
func (s *across) modes(p pair) *Modes {
	if s == nil {
		return nil
	}
	of := func(plane Plane, r *record.Run) Mode {
		c := r.Environment.ControlPlane
		return Mode{ControlPlane: strings.TrimSpace(c.Name + " " + c.Version), Work: plane.Work, Name: r.Mode(), Means: knobsMean(r.Environment.Knobs)}
	}
	return &Modes{A: of(s.a, p.a.first), B: of(s.b, p.b.first)}
}

// knobsMean describes in a clause what a mesh with these settings does.
func knobsMean(k scenario.Settings) string {
	words := map[string]string{
		"mtls permissive": "plaintext is accepted", "mtls strict": "plaintext is refused",
		"scope all":                       "each proxy is configured for every service",
		"scope " + scenario.ScopeDeclared: "each proxy is configured for the services that its workload calls",
		"authz none":                      "every call of the mesh is allowed", "authz declared": "only declared calls are allowed",
	}
	var all []string
	for _, knob := range [][2]string{{"mtls", k.MTLS}, {"scope", k.Scope}, {"authz", k.Authz}} {
		text := knob[0] + " " + knob[1]
		if words[text] != "" {
			all = append(all, words[text])
		} else {
			all = append(all, knob[0]+" "+cmp.Or(knob[1], "none"))
		}
	}
	return strings.Join(all, ", ")
}

// differing returns the meanings of the figures that mean something else on either side,
// each once.
func (s *across) differing(figures []Figure) []Meaning {
	var all []Meaning
	for _, f := range figures {
		if m, other := s.otherMeaning(f.Path); other && f.Verdict == OtherMeaning && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

// line states what a side is.
func (m Mode) line(side string) string {
	text := fmt.Sprintf("%s: %s, mode %s: %s", side, m.ControlPlane, m.Name, m.Means)
	if m.Work != "" {
		text += "; programs: " + m.Work
	}
	return text
}
