package diff

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/output"
)

const (
	shownGroups    = 8   // on a terminal
	shownWorkloads = 4   // of a group
	shownValue     = 160 // bytes of a value
	shownNames     = 2   // of elements and resources
	markdownGroups = 60  // keeps a comment below 60,000 characters
)

// Print writes a result in one of output.PageFormats. A table is a page: the groups with the largest consequences.
func Print(w io.Writer, format string, r *Result) error {
	if format == "html" {
		return HTML(w, r)
	}
	return output.Print(w, format, "the differences", r, func(markdown bool) string {
		if markdown {
			return r.page(markdownGroups, true)
		}
		return r.page(shownGroups, false)
	})
}

// page is the result as text.
func (r *Result) page(most int, markdown bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", output.Text(r.sides()), r.outcome())
	for _, e := range r.Effects {
		what := e.What
		if markdown {
			what = fmt.Sprintf("[%s](%s)", e.What, e.Source)
		}
		fmt.Fprintf(&b, "%s%s (%d of %d %s): %s\n", bullet(markdown), e.Effect, e.Sidecars, r.Sidecars, r.Proxies(), wrapped(what, "    ", markdown))
	}
	b.WriteString(r.Validation.text(markdown))
	for i, g := range r.Groups {
		if i == most {
			fmt.Fprintf(&b, "\n%s more; -o json has all.\n", output.Many(len(r.Groups)-most, "difference"))
			break
		}
		b.WriteString("\n" + g.text(i+1, r.Proxies(), markdown))
	}
	for _, note := range append(r.warnings(), r.notes()...) {
		fmt.Fprintf(&b, "\n%s\n", output.Text(note))
	}
	return b.String()
}

// shownRejections are as many as a page lists.
const shownRejections = 5

// text is what an Envoy said, in a few lines; "" where none was asked.
func (v *Validation) text(markdown bool) string {
	if v == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", bullet(markdown), output.Text(v.answer()))
	for _, one := range v.Rejected[:min(len(v.Rejected), shownRejections)] {
		fmt.Fprintf(&b, "  %s%s %s (held by %d of the first side, %d of the second): %s\n", bullet(markdown), one.Type, output.Text(one.Name), one.From, one.To, output.Text(short(one.Reason)))
	}
	if more := len(v.Rejected) - shownRejections; more > 0 {
		fmt.Fprintf(&b, "  %s%d more; -o json has all\n", bullet(markdown), more)
	}
	return b.String()
}

// answer is what an Envoy said, in a sentence.
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

func bullet(markdown bool) string {
	if markdown {
		return "- "
	}
	return "  "
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

// text is a group in a few lines.
func (g Group) text(number int, proxies string, markdown bool) string {
	quote := func(text string) string {
		if markdown {
			return "`" + strings.ReplaceAll(output.Text(text), "`", "'") + "`"
		}
		return output.Text(text)
	}
	what := string(g.Op)
	if g.Path != "" {
		what = quote(g.Path) + " " + what
	}
	var lines []string
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
	if g.Meaning != nil {
		lines = append(lines, wrapped(g.Meaning.Text, "   ", markdown), g.Meaning.Source)
	}
	lines = append(lines, g.size(proxies)+"; "+quote(workloads(g.Workloads)))
	separator := "\n   "
	if markdown {
		separator = "\n   - "
	}
	return fmt.Sprintf("%d. [%s] %d of %d %s: %s\n", number, g.Effect, g.Sidecars, g.OfSidecars, proxies, strings.Join(lines, separator))
}

// subject is what resources a group is about.
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

// wrapped breaks a sentence into lines for a terminal.
func wrapped(text, indent string, markdown bool) string {
	if markdown {
		return text
	}
	return strings.Join(output.Wrap(text, 110, indent), "\n")
}

// warnings are what makes the result doubtful.
func (r *Result) warnings() (all []string) {
	for _, side := range []Side{r.From, r.To} {
		if side.NotQuiet {
			all = append(all, fmt.Sprintf("Warning: with %s the control plane had not come to rest when the configuration was kept; phases.settle can be longer.", side.Name))
		}
	}
	return all
}

// notes are what a reader has to know of how sides were compared.
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
