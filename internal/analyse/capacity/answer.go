package capacity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// answer prints what to ask for, the forecasts, and what limits them.
func (p *Plan) answer(width int) string {
	a := output.NewAnswer(p.title(), width)
	a.Paragraphs(p.Paragraphs()...)
	if v := p.Verification; v != nil {
		a.Paragraphs(append([]string{v.sentence()}, v.open()...)...)
	}
	figures := p.figuresTable(false)
	var warnings []string
	marks := map[string][]string{} // by figure
	for i, w := range p.Warnings {
		mark := strconv.Itoa(i + 1)
		warnings = append(warnings, fmt.Sprintf("[%s] %s: %s.", mark, w.About, strings.TrimSuffix(w.Text, ".")))
		for _, f := range p.Figures {
			if record.Within(f.Name, w.About) {
				marks[f.Name] = append(marks[f.Name], mark)
			}
		}
	}
	for _, row := range figures.Rows {
		if of := marks[row[0]]; of != nil {
			row[0] += " [" + strings.Join(of, ",") + "]"
		}
	}
	a.Rows(figures, len(figures.Rows), 0)
	a.Fit(warnings, func(left int) string {
		text := "-o wide has what to install, what each state of the mesh needs, all limits and models"
		if left > 0 {
			text += ", and " + output.Many(left, "more warning")
		}
		return text + "."
	})
	return a.String()
}

// Paragraphs state in words what a plan asks for and what limits the rollout, which states decide, and what an upgrade needs; one of which
// nothing is known is "".
func (p *Plan) Paragraphs() []string {
	paragraph := func(sentences ...string) string {
		sentences = slices.DeleteFunc(sentences, func(s string) bool { return s == "" })
		return strings.Join(sentences, " ")
	}
	return []string{
		paragraph(fmt.Sprintf("Forecast from runs of %s pods.", p.runs()), p.Request.sentence(p.Target, p.Request.Resources.text(p.Request.Processors)), p.processorSentence(), p.bindsSentence()),
		paragraph(p.Decides.sentence(), p.Reconnect.sentence(p.Target), p.Sidecars.sentence(p.Target.Pods)),
		paragraph(p.Upgrade.sentence(p.Target.Pods)),
	}
}

// bindsSentence states which limit binds first, and by which rule.
func (p *Plan) bindsSentence() string {
	for _, l := range p.Limits {
		if l.Name == p.Binds {
			return fmt.Sprintf("%s binds first: the rollout takes at least %s (%s).", p.Binds, amount(secondsUnit, &l.Seconds), l.Rule)
		}
	}
	return p.Binds + " binds first."
}

// text states resources in words, with the GOMAXPROCS of a replica.
func (r Resources) text(processors int) string {
	amounts := func(a Amounts) string {
		var parts []string
		if a.CPU != "" {
			parts = append(parts, a.CPU+" of CPU")
		}
		if a.Memory != "" {
			parts = append(parts, a.Memory+" of memory")
		}
		return strings.Join(parts, " and ")
	}
	text := fmt.Sprintf("GOMAXPROCS %d", processors)
	if requests := amounts(r.Requests); requests != "" {
		text += ", requests of " + requests
	}
	if limits := amounts(r.Limits); limits != "" {
		text += ", and limits of " + limits
	}
	return text
}

// open lists the checks that did not pass.
func (v *Verification) open() (all []string) {
	for _, c := range v.Checks {
		if c.Verdict == Passed {
			continue
		}
		text := fmt.Sprintf("%s: %s", c.Name, c.Verdict)
		if c.Measured != nil {
			text += fmt.Sprintf(", measured %s, interval %s to %s", amount(c.Unit, c.Measured), amount(c.Unit, c.Low), amount(c.Unit, c.High))
		}
		if c.Why != "" {
			text += ", " + c.Why
		}
		all = append(all, text)
	}
	return all
}
