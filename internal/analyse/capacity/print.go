package capacity

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/output"
)

// Print writes a plan in one of output.Formats; as a table its answer.
func Print(w io.Writer, format string, p *Plan) error {
	request, err := p.manifest()
	if err != nil {
		return err
	}
	return output.PrintAnswer(w, format, "a plan", p, p.answer, func(d *output.Document) { p.write(d, request) })
}

// title states what is planned for.
func (p *Plan) title() string {
	k := p.Target.Knobs
	where := ""
	if p.Target.Nodes > 0 {
		where = fmt.Sprintf(" on %s with %s (%s, %s per node)", output.Many(p.Target.Nodes, "node"), output.Many(p.Target.Nodes, p.Target.Proxy), p.Target.Dataplane, output.Many(p.Target.PodsPerNode, "pod"))
	}
	scope := ""
	if k.Scope != "" || p.Target.Nodes == 0 { // the proxies of nodes have none
		scope = fmt.Sprintf(" scope %s,", k.Scope)
	}
	if m := p.Target.Mesh; m != nil {
		return fmt.Sprintf("%s (%s) at scale %d: %d pods, %s, on %s %s", m.File, m.Digest, m.Scale, p.Target.Pods, output.Many(p.Target.Services, "service"), p.Target.ControlPlane, p.Target.Version)
	}
	return fmt.Sprintf("%d pods%s, %s, mtls %s,%s authz %s (mode %s), on %s %s",
		p.Target.Pods, where, output.Many(p.Target.Services, "service"), k.MTLS, scope, k.Authz, p.Target.Mode, p.Target.ControlPlane, p.Target.Version)
}

// figuresTable has a row for each forecast, with its model or without.
func (p *Plan) figuresTable(models bool) output.Table {
	t := output.Table{Head: []string{"figure", "forecast", "low", "high"}}
	if models {
		t.Head = append(t.Head, "grows as")
	}
	if p.validated() {
		t.Head = append(t.Head, "measured", "error")
	}
	for _, f := range p.Figures {
		row := []string{f.Name, amount(f.Unit, &f.Forecast), amount(f.Unit, f.Low), amount(f.Unit, f.High)}
		if models {
			row = append(row, f.model())
		}
		if p.validated() {
			row = append(row, amount(f.Unit, f.Measured), percent(f.Error))
		}
		t.Add(row...)
	}
	return t
}

// write writes the plan, with the request as a manifest.
func (p *Plan) write(d *output.Document, request string) {
	d.Title(p.title())
	d.Paragraph("from runs of " + p.runs() + " pods")
	grid(d, p.figuresTable(true))
	d.Paragraph(p.processorSentence())
	if p.Request.Replicas > 1 {
		d.Paragraph("Memory is that of the replica that needs most, processor time that of all replicas together.")
	}
	if p.Work != nil {
		p.Work.write(d)
	}
	grid(d, p.statesTable())
	d.Paragraph(p.Decides.sentence(), p.Reconnect.sentence(p.Target), p.Sidecars.sentence(p.Target.Pods), p.Upgrade.sentence(p.Target.Pods))
	d.Paragraph(p.Binds + " binds first.")
	limits := output.Table{Head: []string{"limit", "takes at least", "because"}}
	for _, l := range p.Limits {
		limits.Add(l.Name, amount(secondsUnit, &l.Seconds), l.Rule)
	}
	grid(d, limits)
	d.Paragraph(p.Request.sentence(p.Target, ""))
	if p.Install != nil {
		d.Paragraph(p.Install.How)
	}
	d.Code("yaml", request)
	if p.Verification != nil {
		p.Verification.write(d)
	}
	var warnings []string
	for i, w := range p.Warnings {
		warnings = append(warnings, fmt.Sprintf("[%d] %s: %s", i+1, w.About, w.Text))
	}
	d.List(warnings...)
}

func (p *Plan) validated() bool {
	for _, f := range p.Figures {
		if f.Measured != nil {
			return true
		}
	}
	return false
}

// runs lists the sizes, as in "200 (3 runs), 400 (6 runs, 3 with 2 replicas)".
func (p *Plan) runs() string {
	var parts []string
	for _, s := range p.Runs {
		runs := output.Many(s.Runs, "run")
		for _, replicas := range slices.Sorted(maps.Keys(s.Replicas)) {
			runs += fmt.Sprintf(", %d with %s", s.Replicas[replicas], output.Many(replicas, "replica"))
		}
		for _, nodes := range slices.Sorted(maps.Keys(s.Nodes)) {
			if len(s.Nodes) == 1 {
				runs += " with " + output.Many(nodes, "node")
				break
			}
			runs += fmt.Sprintf(", %d with %s", s.Nodes[nodes], output.Many(nodes, "node"))
		}
		if s.Scale > 0 {
			runs = fmt.Sprintf("scale %d, %s", s.Scale, runs)
		}
		parts = append(parts, fmt.Sprintf("%d (%s)", s.Pods, runs))
	}
	return strings.Join(parts, ", ")
}

// model formats the fitted model, as in "122MiB + 331KiB x pods".
func (f Figure) model() string {
	var b strings.Builder
	for i, part := range f.Model {
		value := part.Value
		if i > 0 {
			sign := " + "
			if value < 0 {
				sign, value = " - ", -value
			}
			b.WriteString(sign)
		}
		if ofWork(part.Term) {
			b.WriteString(small(&value) + " x " + part.Term)
			continue
		}
		if holders := heldBy[part.Term]; holders != "" {
			mega := value * (1 << 20)
			b.WriteString(amount(f.Unit, &mega) + " x MiB held by " + holders)
			continue
		}
		switch part.Term {
		case constant.name:
			b.WriteString(amount(f.Unit, &value))
		case pods.name, nodes.name, pairs.name, termsOf[ofNodes][pairs.name], served.name, termsOf[ofNodes][served.name], again.name:
			b.WriteString(amount(f.Unit, &value) + " x " + part.Term)
		case largeResponses.name:
			b.WriteString(amount(f.Unit, &value) + " for " + part.Term)
		default:
			b.WriteString(digits(value) + " x " + part.Term)
		}
	}
	return b.String()
}

// sentence states the request in words, with these resources of each replica; "" = they are stated elsewhere.
func (r Request) sentence(t Target, resources string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Ask for %s", output.Many(r.Replicas, "replica"))
	if resources != "" {
		fmt.Fprintf(&b, " with %s", resources)
	}
	if t := r.RolloutSeconds; t != nil {
		fmt.Fprintf(&b, "; the rollout then takes %s", amount(secondsUnit, &t.Forecast))
		if t.High != nil {
			fmt.Fprintf(&b, " (%s to %s)", amount(secondsUnit, t.Low), amount(secondsUnit, t.High))
		}
	}
	if !r.Met {
		b.WriteString(", which is not enough")
	}
	who := "sidecar"
	if t.Nodes > 0 {
		who = "pod"
	}
	arrival := "all pods come at once"
	if r.Burst.IntervalSeconds > 0 {
		arrival = fmt.Sprintf("%s come every %s", output.Many(r.Burst.Pods, "pod"), duration(r.Burst.IntervalSeconds))
	}
	fmt.Fprintf(&b, ". If %s, each %s is served within %s; the last pods come after %s.",
		arrival, who, amount(secondsUnit, &r.Burst.WaitSeconds), amount(secondsUnit, &r.Burst.TotalSeconds))
	return b.String()
}

// sentence states how long the proxies of nodes take to connect again; "" for nil.
func (l *Limit) sentence(t Target) string {
	if l == nil {
		return ""
	}
	who := output.Many(t.Nodes, t.Proxy)
	if t.Proxies > t.Nodes {
		who = fmt.Sprintf("%d proxies, %s among them,", t.Proxies, who)
	}
	return fmt.Sprintf("After a restart %s connect again within %s at least (%s).", who, amount(secondsUnit, &l.Seconds), l.Rule)
}

// manifest renders the request as what installs it, where the control plane has such a
// document; otherwise as parts of a Deployment.
func (p *Plan) manifest() (string, error) {
	type variable struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	r := p.Request
	var document any = struct {
		Replicas  int        `json:"replicas"`
		Env       []variable `json:"env"`
		Resources Resources  `json:"resources"`
	}{r.Replicas, []variable{{"GOMAXPROCS", strconv.Itoa(r.Processors)}}, r.Resources}
	if p.Install != nil {
		document = p.Install.Document
	}
	text, err := yaml.Marshal(document)
	if err != nil {
		return "", fmt.Errorf("writing the request as YAML: %w", err)
	}
	return string(text), nil
}

// grid writes a table. All columns are left-aligned, including those of numbers, because
// they contain words too.
func grid(d *output.Document, t output.Table) {
	t.Left = len(t.Head) - 1
	d.Table(t)
}

// amount formats a figure of a unit with three digits; "-" for nil.
func amount(unit string, v *float64) string {
	if v == nil {
		return "-"
	}
	if unit == bytesUnit {
		return output.Bytes(*v)
	}
	scaled, of := output.Seconds(*v)
	if scaled == 0 {
		return "0" + of
	}
	return digits(scaled) + of
}

func percent(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1f%%", *v*100)
}

// digits prints three digits and no exponent.
func digits(v float64) string { return output.Digits(v, 2) }
