package diff

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/output"
)

const (
	shownWorkloads  = 4   // of a group
	shownValue      = 160 // bytes of a value
	shownNames      = 2   // of elements and resources
	shownRejections = 3   // of a page

	listedRejections = 20 // in Markdown, which leaves room for the differences in a comment
)

// Print writes a result in one of output.PageFormats. A table is a page: the groups with the largest consequences.
func Print(w io.Writer, format string, r *Result) error {
	if format == "html" {
		return HTML(w, r)
	}
	return output.PrintAnswer(w, format, "the differences", r, r.answer, r.write)
}

// answer is the result in a page at most.
func (r *Result) answer(width int) string {
	a := output.NewPage(r.headline(), width)
	a.Paragraphs(r.warnings()...)
	if r.Validation != nil {
		lines := output.Wrap(r.Validation.answer()+".", width, "  ")
		for _, one := range r.Validation.listed(shownRejections) {
			lines = append(lines, output.Wrap("- "+one, width, "  ")...)
		}
		a.Block(lines...)
	}
	var effects []string
	for _, e := range r.Effects {
		effects = append(effects, fmt.Sprintf("%s on %d of %d", e.Effect, e.Sidecars, r.Sidecars))
	}
	if len(effects) > 0 {
		a.Paragraphs("Effects: " + strings.Join(effects, ", ") + ".")
	}
	var groups [][]string
	for i, lines := range r.lines(output.Text) {
		var wrapped []string
		for k, line := range lines {
			indent := "   "
			if k == 0 {
				line, indent = fmt.Sprintf("%d. %s", i+1, line), ""
			}
			for m, part := range output.Wrap(line, width-3, "  ") {
				if m > 0 && k == 0 {
					indent = "  "
				}
				wrapped = append(wrapped, indent+part)
			}
		}
		groups = append(groups, wrapped)
	}
	a.FitLines(groups, 1, func(n int) (lines []string) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("and %s more", output.Many(n, "difference")))
		}
		if len(groups) > 0 {
			lines = append(lines, "")
		}
		for _, note := range append(r.notes(), r.leftOut(), "Everything: -o wide; as a code review: -o html.") {
			lines = append(lines, output.Wrap(note, width, "  ")...)
		}
		return lines
	})
	return a.String()
}

// write writes all of the result; as Markdown it is shorter than a comment may be.
func (r *Result) write(d *output.Document) {
	d.Title(r.headline())
	d.Paragraph(r.warnings()...)
	var effects []output.Item
	for _, e := range r.Effects {
		effects = append(effects, output.Item{Text: fmt.Sprintf("%s (%d of %d %s): %s", e.Effect, e.Sidecars, r.Sidecars, r.Proxies(), e.What), Lines: []string{e.Source}})
	}
	d.Items(effects...)
	if v := r.Validation; v != nil {
		most := len(v.Rejected)
		if d.IsMarkdown() {
			most = listedRejections
		}
		d.Items(output.Item{Text: v.answer(), Lines: v.listed(most)})
	}
	var groups []output.Item
	for _, lines := range r.lines(output.Quote) {
		groups = append(groups, output.Item{Text: lines[0], Lines: lines[1:]})
	}
	d.Numbered(groups...)
	d.Comment()
	for _, note := range append(r.notes(), r.leftOut()) {
		d.Paragraph(note)
	}
}

// headline is the result in a sentence or two, with the names of both sides.
func (r *Result) headline() string { return r.sides() + ": " + r.outcome() }

// listed are the first rejected resources, and how many more there are.
func (v *Validation) listed(most int) (all []string) {
	for _, one := range v.Rejected[:min(len(v.Rejected), most)] {
		all = append(all, fmt.Sprintf("%s %s (held by %d of the first side, %d of the second): %s", one.Type, short(one.Name), one.From, one.To, short(one.Reason)))
	}
	if more := len(v.Rejected) - most; more > 0 {
		all = append(all, fmt.Sprintf("%d more (-o wide)", more))
	}
	return all
}

// answer states the result of the validation in a sentence.
func (v *Validation) answer() string {
	verdict := "accepts all of them"
	if len(v.Rejected) > 0 {
		be := "are"
		if v.On() == 1 {
			be = "is"
		}
		verdict = fmt.Sprintf("rejects %d, of which %d %s of the second side", len(v.Rejected), v.On(), be)
	}
	return fmt.Sprintf("Envoy %s validated %s of both sides whole, %d without Istio's own filters, %d not at all, and %s",
		v.Envoy, output.Many(v.Whole, "resource"), v.Cut, v.NotValidated, verdict)
}

// sides are the names of both.
func (r *Result) sides() string { return fmt.Sprintf("%s to %s", r.From.Name, r.To.Name) }

// outcome is the result in a sentence or two.
func (r *Result) outcome() string {
	text := fmt.Sprintf("%d of %d %s change, in %s.", r.Changed, r.Sidecars, r.Proxies(), output.Many(len(r.Groups), "way"))
	if len(r.Groups) == 0 {
		compared := output.Many(r.Sidecars, "sidecar")
		if r.Proxies() != sidecars {
			compared = fmt.Sprintf("%d %s", r.Sidecars, r.Proxies())
		}
		text = fmt.Sprintf("no difference. Compared: %s with %s.", compared, output.Many(r.To.Resources, "resource"))
	}
	var others []string
	for _, kind := range []struct {
		n    int
		noun string
	}{{r.Gateways, "gateway"}, {r.Ztunnels, "ztunnel"}, {r.Waypoints, "waypoint"}} {
		if kind.n > 0 {
			others = append(others, are(kind.n, kind.noun))
		}
	}
	if len(others) > 0 {
		text += fmt.Sprintf(" Of these %d, %s.", r.Sidecars, strings.Join(others, " and "))
	}
	return text
}

const sidecars = "sidecars"

// Proxies returns the noun for the proxies that were compared.
func (r *Result) Proxies() string {
	if r.Ztunnels+r.Waypoints > 0 {
		return "proxies"
	}
	return sidecars
}

// are is a number of things with its verb, as in "5 are gateways".
func are(n int, noun string) string {
	if n == 1 {
		return "1 is a " + noun
	}
	return fmt.Sprintf("%d are %ss", n, noun)
}

// lines are the groups, each in a few lines, with names and values quoted. What several of them mean is said once.
func (r *Result) lines(quote func(string) string) (groups [][]string) {
	said := map[Meaning]int{}
	for i, g := range r.Groups {
		lines := g.lines(quote)
		lines[0] = fmt.Sprintf("[%s] %d of %d %s: %s", g.Effect, g.Sidecars, g.OfSidecars, r.Proxies(), lines[0])
		switch {
		case g.Meaning == nil:
		case said[*g.Meaning] > 0:
			lines = append(lines, fmt.Sprintf("as with %d", said[*g.Meaning]))
		default:
			said[*g.Meaning] = i + 1
			lines = append(lines, g.Meaning.Text, g.Meaning.Source)
		}
		groups = append(groups, append(lines, g.size(r.Proxies())+"; "+quote(workloads(g.Workloads))))
	}
	return groups
}

// lines state the difference in a few lines.
func (g Group) lines(quote func(string) string) (lines []string) {
	what := string(g.Op)
	if g.Path != "" {
		what = quote(g.Path) + " " + what
	}
	if len(g.Values) == 1 {
		what += ": " + g.Values[0].text(quote)
	}
	if g.Path == "" && len(g.Values) == 0 {
		lines = append(lines, quote(g.subject())+" "+what)
	} else {
		lines = append(lines, quote(g.subject())+":", what)
	}
	if len(g.Values) > 1 {
		for _, v := range g.Values[:min(len(g.Values), variants)] {
			lines = append(lines, v.text(quote))
		}
	}
	if more := len(g.Values) - variants; more > 0 {
		lines = append(lines, fmt.Sprintf("and %s more", output.Many(more, "value")))
	}
	if len(g.Elements) > 0 {
		lines = append(lines, "of "+quote(output.FirstOf(g.Elements, shownNames)))
	}
	return lines
}

// subject names the resources that a group is about.
func (g Group) subject() string {
	switch {
	case len(g.Resources) == 1 && strings.HasSuffix(g.Class, g.Resources[0]):
		return g.Class
	case len(g.Resources) == 1:
		return g.Class + " " + g.Resources[0]
	case len(g.Resources) == g.OfResources:
		return fmt.Sprintf("all %d %ss (%s)", g.OfResources, g.Class, output.FirstOf(g.Resources, shownNames))
	default:
		return fmt.Sprintf("%d of %d %ss (%s)", len(g.Resources), g.OfResources, g.Class, output.FirstOf(g.Resources, shownNames))
	}
}

func (v Value) text(quote func(string) string) string {
	switch {
	case v.From == "":
		return quote(short(v.To))
	case v.To == "":
		return quote(short(v.From))
	default:
		return quote(short(v.From)) + " -> " + quote(short(v.To))
	}
}

func short(text string) string {
	if len(text) <= shownValue {
		return text
	}
	return strings.ToValidUTF8(text[:shownValue], "") + fmt.Sprintf("... (%d more)", len(text)-shownValue)
}

// size is by how much the proxies' configuration grows.
func (g Group) size(proxies string) string {
	if g.Bytes == 0 || g.Sidecars == 0 {
		return "same size"
	}
	sign, of := "+", g.Bytes
	if of < 0 {
		sign, of = "-", -of
	}
	each := "sidecar"
	if proxies != sidecars {
		each = "proxy"
	}
	return fmt.Sprintf("%s%s per %s", sign, output.Bytes(float64(of)/float64(g.Sidecars)), each)
}

func workloads(all []Workload) string {
	var texts []string
	for _, w := range all[:min(len(all), shownWorkloads)] {
		texts = append(texts, fmt.Sprintf("%s/%s %d of %d", w.Namespace, w.Name, w.Sidecars, w.Of))
	}
	if more := len(all) - shownWorkloads; more > 0 {
		texts = append(texts, output.Many(more, "workload")+" more")
	}
	return strings.Join(texts, ", ")
}

// warnings state why the result may be wrong.
func (r *Result) warnings() (all []string) {
	for _, side := range []Side{r.From, r.To} {
		if side.NotQuiet {
			all = append(all, fmt.Sprintf("Warning: with %s the control plane had not come to rest when the configuration was kept; phases.settle can be longer.", side.Name))
		}
	}
	return all
}

// notes state how the sides were compared, and what was not.
func (r *Result) notes() (all []string) {
	for _, side := range []struct {
		name      string
		workloads []Workload
	}{{r.From.Name, r.OnlyFrom}, {r.To.Name, r.OnlyTo}} {
		if len(side.workloads) > 0 {
			all = append(all, fmt.Sprintf("Only with %s, and not compared: %s.", side.name, workloads(side.workloads)))
		}
	}
	for i, side := range []Side{r.From, r.To} {
		if len(side.Unasked) == 0 || i > 0 && slices.Equal(side.Unasked, r.From.Unasked) {
			continue
		}
		var kinds []string
		for _, u := range side.Unasked {
			kinds = append(kinds, output.Many(u.Pods, u.Kind))
		}
		all = append(all, fmt.Sprintf("Not compared: %s of the mesh, which a replay does not have.", strings.Join(kinds, " and ")))
	}
	if len(r.Opaque) > 0 {
		all = append(all, fmt.Sprintf("Compared as bytes, since their type is not known: %s.", strings.Join(r.Opaque, ", ")))
	}
	if kept := len(Rules) - len(r.Rules); kept > 0 {
		var names []string
		for _, rule := range Rules {
			if !slices.Contains(r.Rules, rule) {
				names = append(names, rule.Name)
			}
		}
		all = append(all, fmt.Sprintf("Rules that are off: %s.", strings.Join(names, ", ")))
	}
	return all
}

// NeverCompared states what no rule brings back.
const NeverCompared = "certificates and keys (SDS), which each run issues anew"

// leftOut states what was left out of the comparison.
func (r *Result) leftOut() string {
	text := "Left out: " + NeverCompared
	if len(r.Rules) > 0 {
		var names []string
		for _, rule := range r.Rules {
			names = append(names, rule.Name)
		}
		text += "; and by rules, each of which --keep-noise NAME switches off: " + strings.Join(names, ", ")
	}
	return text + "."
}
