package assess

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/internal/analyse/diff"
	"scaler.mesh/scaler/internal/output"
)

const (
	answerLines  = 25 // of the answer
	shownReasons = 6  // of it
	shownGroups  = 20 // of the page
)

// Print writes an assessment in one of output.PageFormats; a table is an answer of at most 25 lines. dir is its folder.
func Print(w io.Writer, format, dir string, a *Assessment) error {
	if format == "html" {
		return writePage(w, a.title(), output.Markdown(func(d *output.Document) { a.write(d, dir) }))
	}
	return output.PrintAnswer(w, format, "the assessment", a, func(width int) string { return a.answer(dir, width) }, func(d *output.Document) { a.write(d, dir) })
}

// title states the verdict in one line.
func (a *Assessment) title() string {
	return fmt.Sprintf("%s: istiod %s to %s", a.Verdict, a.From, a.To)
}

// answer is the assessment in at most 25 lines.
func (a *Assessment) answer(dir string, width int) string {
	head := append(output.Wrap(a.title(), width, "  "), output.Wrap("Mesh: "+a.Mesh+".", width, "  ")...)
	var tail []string
	add := func(text string) { tail = append(tail, output.Wrap(text, width, "  ")...) }
	if a.Verdict != Go {
		if names := a.named(func(c Check) bool { return c.Outcome == Holds }); names != "" {
			add("Holds: " + names + ".")
		}
	}
	add("It has: " + a.Installed.text() + ".")
	if a.Room != "" {
		add(a.Room)
	}
	if a.Growth != nil {
		add(a.Growth.paragraphs()[0])
	}
	if len(a.Settings) > 0 {
		var set []string
		for _, s := range a.Settings {
			set = append(set, s.Path+"="+s.Value)
		}
		add("Set: " + strings.Join(set, ", ") + " (" + valuesPath(dir) + ").")
	}
	if names := a.named(func(c Check) bool { return c.Outcome == Unknown && c.Aside }); names != "" {
		add("Cannot tell, and no verdict is made from it: " + names + ".")
	}
	if names := a.named(func(c Check) bool { return c.Outcome == NotChecked }); names != "" {
		add("Not checked: " + names + "; and what docs/guides/assess.md lists.")
	}
	if n := len(a.NotReproduced); n > 0 {
		add(fmt.Sprintf("The rehearsal lacks %s of production (-o wide).", output.Many(n, "part")))
	}
	next := output.Table{Left: 1, Rows: [][]string{
		{"everything", output.Command("scaler", "assess", dir, "-o", "wide")}, {"what changes", output.Command("scaler", "diff", dir)}, {"records", output.Command("scaler", "report", filepath.Join(dir, "upgrade"), "-o", "wide")},
	}}
	tail = append(tail, "")
	tail = append(tail, strings.Split(strings.TrimSuffix(next.Text(), "\n"), "\n")...)
	var reasons []string
	for i, r := range a.Reasons {
		lines := output.Wrap("- "+r, width, "  ")
		if i == shownReasons || len(head)+len(reasons)+len(lines)+len(tail)+3 > answerLines {
			reasons = append(reasons, fmt.Sprintf("- and %d more (-o wide)", len(a.Reasons)-i))
			break
		}
		reasons = append(reasons, lines...)
	}
	return strings.Join(slices.Concat(head, []string{""}, reasons, []string{""}, tail), "\n") + "\n"
}

// named are the names of some checks.
func (a *Assessment) named(is func(Check) bool) string {
	var names []string
	for _, c := range a.Checks {
		if is(c) {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ", ")
}

// text describes what production has.
func (c Captured) text() string {
	if !c.Installed {
		return "not known"
	}
	resources := func(of map[string]string) string {
		if len(of) == 0 {
			return "none"
		}
		return output.Pairs(of, ", ")
	}
	text := output.Many(c.Replicas, "replica")
	if c.Autoscaler != nil {
		text += fmt.Sprintf(" (autoscaler from %d to %d)", c.Autoscaler.Min, c.Autoscaler.Max)
	}
	return text + "; each with requests " + resources(c.Requests) + "; limits " + resources(c.Limits)
}

// write writes all of the assessment; as Markdown it is shorter than a comment may be.
func (a *Assessment) write(d *output.Document, dir string) {
	d.Title(a.title())
	d.Paragraph(a.Mesh + ".")
	d.Section("Reasons")
	d.List(a.Reasons...)
	if len(a.Settings) > 0 {
		d.Section("What to set")
		t := output.Table{Head: []string{"value of the istiod chart", "set", "why"}, Left: 2}
		for _, s := range a.Settings {
			t.Add(s.Path, s.Value, s.Why)
		}
		d.Table(t)
	}
	d.Section("Checks")
	t := output.Table{Head: []string{"check", "outcome", "what was found"}, Left: 2}
	for _, c := range a.Checks {
		t.Add(c.Name, string(c.Outcome), c.Text)
	}
	d.Table(t)
	d.Section("What one istiod needed")
	d.Paragraph("It has: "+a.Installed.text()+".", a.Room)
	if a.OfNodes {
		d.Paragraph("Cores are those of production's nodes.")
	}
	t = output.Table{Head: []string{"step", "moment", "version", "memory, peak", "low", "high", "cores, mean", "peak"}, Left: 2}
	for _, m := range a.Moments {
		t.Add(m.Step, m.Phase, m.Version, output.Bytes(m.MemoryBytes), output.Bytes(m.Low), output.Bytes(m.High), cores(m.Cores), cores(m.PeakCores))
	}
	d.Table(t)
	if a.Growth != nil {
		d.Section("What a larger mesh needs")
		d.Paragraph(a.Growth.paragraphs()...)
		command, note := output.Command("scaler", "plan", filepath.Join(dir, CopiesFolder), "--scale", strconv.Itoa(a.Growth.Scale)), ""
		if a.Installed.NodeSpeed != nil { // without it, the plan would be for the processors of this machine
			command, note = command+" --node-speed FILE", ", with the FILE that the assessment had"
		}
		d.Paragraph(fmt.Sprintf("%s has all of it%s.", output.Quote(command+" -o wide"), note))
	}
	d.Section("What changes for proxies")
	a.writeDifferences(d, dir)
	if len(a.NotReproduced) > 0 {
		d.Section("What of production the rehearsal lacks")
		var all []string
		for _, n := range a.NotReproduced {
			all = append(all, strings.TrimSpace(n.What+" "+n.Value)+": "+n.Changes)
		}
		d.List(all...)
	}
	d.Comment()
}

// writeDifferences writes what proxies hold otherwise.
func (a *Assessment) writeDifferences(d *output.Document, dir string) {
	of := a.Differences
	switch {
	case of == nil:
		d.Paragraph("It is not known: a version did not come so far.")
		return
	case len(of.Groups) == 0:
		d.Paragraph("Nothing.")
		return
	}
	change := fmt.Sprintf("%d of %d %s change.", of.Changed, of.Sidecars, of.Proxies())
	if a.sidecars {
		change += " Pods that the waves restart start with what is new: no connection is cut for it."
	}
	d.Paragraph(change)
	var all []string
	for i, g := range of.Groups {
		if i == shownGroups {
			all = append(all, fmt.Sprintf("and %d more", len(of.Groups)-i))
			break
		}
		text := fmt.Sprintf("[%s] %d of %d %s: %s %s %s%s", g.Effect, g.Sidecars, g.OfSidecars, of.Proxies(), g.Class, partText(g), g.Op, valueOf(g))
		if g.Meaning != nil {
			text += ". " + g.Meaning.Text
		}
		all = append(all, text)
	}
	d.List(all...)
	d.Paragraph(output.Quote(output.Command("scaler", "diff", dir)) + " lists all with their values.")
}

// maxValue is the length up to which the values of a difference are listed, in bytes.
const maxValue = 240

// valueOf states the values of a field before and after; "" if there are several, or they are long.
func valueOf(g diff.Group) string {
	if len(g.Values) != 1 || g.Op != diff.Renamed && g.Op != diff.Changed || len(g.Values[0].From)+len(g.Values[0].To) > maxValue {
		return ""
	}
	return fmt.Sprintf(" from %s to %s", g.Values[0].From, g.Values[0].To)
}

// cores prints a number of cores; "-" where it is not known.
func cores(v *float64) string {
	if v == nil {
		return "-"
	}
	return output.Digits(*v, 2)
}
