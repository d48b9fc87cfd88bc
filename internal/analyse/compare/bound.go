package compare

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/scenario"
)

// Bound is a limit for a figure of B, as in rollout.cores>+10%. A test decides whether
// the difference is inside or beyond the bound; see Outcome.
type Bound struct {
	Text    string  // as it was given
	Figure  string  // short name, see Name
	Below   bool    // missed when the figure falls by more than Change; else when it rises
	Change  float64 // above 0 or 0: a share of A's mean, if Percent, else in base units
	Percent bool
	Unit    Unit // that Change was given in; "" with Percent and without a unit
}

// The fields of Options that errors of type *scenario.Error name.
const (
	boundsField  = "bounds"
	figuresField = "figures"
)

// wantBound is the syntax of a bound, for errors of ParseBound.
const wantBound = "FIGURE>+CHANGE or FIGURE<-CHANGE, as in 'rollout.cores>+10%' or 'push.route.p99>+50ms'"

// ParseBound parses a bound: FIGURE>+CHANGE, or FIGURE<-CHANGE. FIGURE is
// a figure's short name or its path in the record. CHANGE is a number with % for a share
// of A's mean; with s, ms, us, B, kB, MB, GB, KiB, MiB or GiB; or without a unit, for
// cores, counts, rates and shares. Spaces around FIGURE and CHANGE are ignored.
func ParseBound(text string) (Bound, error) {
	fail := func(what string) (Bound, error) {
		return Bound{}, scenario.Refuse(boundsField, text, "%s: %s", wantBound, what)
	}
	c, problem := parseExpression(text, "change")
	if problem != "" {
		return fail(problem)
	}
	b := Bound{Text: strings.TrimSpace(text), Figure: Name(c.figure), Below: c.below}
	switch {
	case c.sign == "":
		return fail(fmt.Sprintf("%q is no change", c.amount))
	case b.Below != (c.sign == "-"):
		return fail(fmt.Sprintf("%s goes with %s", c.operator(), map[bool]string{true: "-", false: "+"}[b.Below]))
	}
	switch scale, known := scales[c.unit]; {
	case c.unit == "%":
		b.Change, b.Percent = c.value/100, true
	case known:
		b.Change, b.Unit = c.value*scale.in, scale.unit
	case c.unit == "":
		b.Change = c.value
	default:
		return fail(fmt.Sprintf("%q is no unit", c.unit))
	}
	return b, nil
}

// fits reports whether the bound has the unit of a figure.
func (b Bound) fits(u Unit) bool {
	scaled := u == Seconds || u == Bytes
	return b.Percent || scaled && b.Unit == u || !scaled && b.Unit == ""
}

// checkNames returns an error for a name in Options that no measured figure has, or only
// one in another unit.
func checkNames(groups []Group, o Options) error {
	var all []Figure
	for _, group := range groups {
		all = append(all, group.Figures...)
	}
	for _, b := range o.Bounds {
		at := slices.IndexFunc(all, func(f Figure) bool { return f.Name == b.Figure })
		if at < 0 {
			return scenario.Refuse(boundsField, b.Text, "a figure that the runs measured, which %q is not%s", b.Figure, alike(all, b.Figure))
		}
		if all[at].Verdict == OtherMeaning {
			return scenario.Refuse(boundsField, b.Text, "a figure that means the same with both control planes, as %s does not", b.Figure)
		}
		if !b.fits(all[at].Unit) {
			return scenario.Refuse(boundsField, b.Text, "a change in %%, or in %s", unitsOf(all[at].Unit))
		}
	}
	for _, name := range o.Figures {
		if len(chosen(all, []string{name})) == 0 {
			return scenario.Refuse(figuresField, name, "names of figures that the runs measured, or their beginnings up to a dot%s", alike(all, Name(name)))
		}
	}
	return nil
}

func unitsOf(u Unit) string {
	switch u {
	case Seconds:
		return "s, ms or us"
	case Bytes:
		return "B, KiB, MiB or GiB (or kB, MB, GB)"
	default:
		return string(u) + ", without a unit"
	}
}

// alike lists figures whose names begin like an unknown one.
func alike(all []Figure, name string) string {
	var names []string
	for beginning := name; beginning != "" && names == nil; {
		for _, f := range chosen(all, []string{beginning}) {
			if !slices.Contains(names, f.Name) && len(names) < 8 {
				names = append(names, f.Name)
			}
		}
		at := strings.LastIndexByte(beginning, '.')
		beginning = beginning[:max(at, 0)]
	}
	if names == nil {
		return ""
	}
	return ", as " + strings.Join(names, ", ")
}

// chosen returns the figures that have one of the names, or whose name continues one of
// them after a dot; all, without names.
func chosen(all []Figure, names []string) []Figure {
	if len(names) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(f Figure) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			return f.Name == Name(name) || strings.HasPrefix(f.Name, Name(name)+".") || strings.HasPrefix(f.Path+".", name+".")
		})
	})
}
