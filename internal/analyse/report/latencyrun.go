package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// PrintLatency writes what `scaler latency` found in one of output.Formats.
func PrintLatency(w io.Writer, format string, run *record.LatencyRun) error {
	return output.PrintAnswer(w, format, "a latency run", run,
		func(width int) string { return latencyBrief(run).text(width) },
		func(d *output.Document) { latencyDocument(run).write(d) })
}

// PrintAll writes runs as Print does, and the latency runs after them.
func PrintAll(w io.Writer, format string, runs []record.Run, latencies []record.LatencyRun) error {
	if len(latencies) == 0 {
		return Print(w, format, runs)
	}
	if format == "html" {
		return HTML(w, runs, latencies)
	}
	items := []any{}
	for _, run := range sorted(runs) {
		items = append(items, run)
	}
	for _, l := range latencies {
		items = append(items, l)
	}
	list := struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []any  `json:"items"`
	}{record.APIVersion, record.ListKind, items}
	return output.PrintAnswer(w, format, "runs", list, func(width int) string {
		var parts []string
		if len(runs) > 0 {
			parts = append(parts, briefOf(sorted(runs)).text(width))
		}
		for i := range latencies {
			parts = append(parts, latencyBrief(&latencies[i]).text(width))
		}
		return strings.Join(parts, "\n")
	}, func(d *output.Document) {
		if len(runs) > 0 {
			build(sorted(runs)).write(d)
		}
		for i := range latencies {
			latencyDocument(&latencies[i]).write(d)
		}
	})
}

func latencyDocument(l *record.LatencyRun) document {
	p := newLatencyPart(l)
	title := "latency: " + string(l.Status)
	if l.Reason != "" {
		title += " (" + l.Reason + ")"
	}
	d := document{
		title:  title,
		facts:  p.facts(),
		limits: p.warnings.limits(false),
	}
	d.add(p.requests(), p.added(), publishedTable(l), sidecarTable(l), timelineTable(l), p.instrument())
	return d
}

// facts returns the facts of a latency run.
func (p latencyPart) facts() facts {
	l := p.latency
	place, where := placeText(l)
	all := facts{
		{"load", unmarked(loadText(l.Spec))},
		{"topology", unmarked(wayText(l.Spec))},
		{"rounds", unmarked(fmt.Sprintf("%s of each variant in turn, %s", output.Many(l.Spec.Rounds, "round"), output.Many(l.Spec.Repeats, "repeat")))},
		{place, unmarked(where)},
		{"started", unmarked(p.startedText())},
	}
	if cp := l.Environment.ControlPlane; cp.Name != "" {
		all.add("control plane", controlPlaneText(cp))
		if l.Cluster == nil {
			all.add("not included", omitted(l.Spec))
		}
	}
	all.add("checked", record.ChecksText(l.Checks))
	return all
}

// placeText states where client and servers ran: on a machine or on nodes, and which.
func placeText(l *record.LatencyRun) (kind, text string) {
	if l.Cluster == nil {
		return "machine", machineText(l.Environment)
	}
	var nodes []string
	for _, n := range l.Cluster.Nodes {
		nodes = append(nodes, fmt.Sprintf("%s (%s processors, %s, Linux %s, %s)", n.Name, number(&n.CPUs), bytes(&n.MemoryBytes), n.Kernel, n.Runtime))
	}
	return "nodes", "of context " + l.Cluster.Context + ": " + listed(nodes)
}

// omitted lists the parts of a mesh in production that the set-up of a latency run lacks.
func omitted(s record.LatencySpec) string {
	const rest = "the network: a production mesh adds more"
	if s.Redirected {
		return "telemetry (extensions of the sidecars, scrapes) and " + rest
	}
	return "Istio's own filters (telemetry and metadata exchange), traffic interception (iptables) and " + rest
}

func loadText(s record.LatencySpec) string {
	texts := []string{fmt.Sprintf("open loop, %s, HTTP/%d", s.Arrivals, s.HTTP)}
	if len(s.Connections) > 0 {
		texts[0] = fmt.Sprintf("closed loop of %d requests, HTTP/%d", s.Requests, s.HTTP)
	}
	if !s.Keepalive {
		texts = append(texts, "a connection for each request")
	}
	return strings.Join(texts, ", ")
}

func wayText(s record.LatencySpec) string {
	switch {
	case s.Topology == "chain":
		var waits []string
		for _, w := range s.WaitSeconds {
			waits = append(waits, seconds(&w))
		}
		return fmt.Sprintf("chain that waits %s, %d of each", strings.Join(waits, ", "), s.Replicas)
	case s.Topology == "star":
		return fmt.Sprintf("star of %s", output.Many(s.Replicas, "server"))
	default:
		return "a client and a server"
	}
}

// offered names a row's load, and its placement.
func offered(row *record.LatencyRow) string {
	text := threeDigits(row.RPS) + " RPS"
	if row.Connections > 0 {
		text = output.Many(row.Connections, "connection")
	}
	if row.Placement != "" {
		text += ", " + row.Placement
	}
	return text
}

// requests shows latency and what became of the requests.
func (p latencyPart) requests() table {
	l := p.latency
	t := table{Left: 1, Head: plain("load", "variant", "p50", "p90", "p99", "p99.9", "max", "achieved", "errors", "not sent", "late p50", "late p99")}
	for i := range l.Rows {
		row := &l.Rows[i]
		about := fmt.Sprintf("rows[%d]", i)
		cells := []marked{unmarked(offered(row)), p.mark(about+".latency", "").on(row.Variant)}
		all := row.Latency.Quantiles()
		intervals := orEmpty(row.Latency.Intervals)
		for _, name := range record.QuantileNames {
			cells = append(cells, unmarked(quantile(&row.Latency.Latency, *all.At(name))+intervalText(*intervals.At(name))))
		}
		cells = append(cells, plain(threeDigits(row.AchievedRPS)+"/s", count(&row.Errors), count(&row.NotSent))...)
		if row.Lateness != nil {
			cells = append(cells, plain(seconds(row.Lateness.P50), seconds(row.Lateness.P99))...)
		} else {
			cells = append(cells, plain(absent, absent)...)
		}
		t.Add(cells...)
	}
	return t
}

func intervalText(i *record.Interval) string {
	if i == nil {
		return ""
	}
	// Below zero there is no latency; Student's t does not know.
	low := max(i.Low, 0)
	return " (" + seconds(&low) + " to " + seconds(&i.High) + ")"
}

// added shows what each variant has over none; a difference that repeats
// do not distinguish from none prints as ~.
func (p latencyPart) added() table {
	l := p.latency
	t := table{Left: 1, Head: plain("added over none", "variant", "p50", "p90", "p99", "p99.9", "max")}
	for i := range l.Rows {
		row := &l.Rows[i]
		if row.Added == nil {
			continue
		}
		cells := []marked{unmarked(offered(row)), p.mark(fmt.Sprintf("rows[%d].added", i), "").on(row.Variant)}
		for _, name := range record.QuantileNames {
			cells = append(cells, unmarked(addedText(*row.Added.At(name))))
		}
		t.Add(cells...)
	}
	return t
}

func addedText(a *record.Added) string {
	switch {
	case a == nil:
		return absent
	case a.Significant == nil:
		return seconds(&a.Seconds) + " (one repeat)"
	case !*a.Significant:
		return "~"
	default:
		return seconds(&a.Seconds) + " (" + seconds(&a.Interval.Low) + " to " + seconds(&a.Interval.High) + ")"
	}
}

// publishedTable compares published latencies with ours at the same rate.
func publishedTable(l *record.LatencyRun) table {
	t := table{Left: 3, Head: plain("published", "load", "quantile", "what", "theirs", "over their none", "ours: variant", "ours", "over our none")}
	for _, p := range l.Published {
		for _, what := range slices.Sorted(maps.Keys(p.Seconds)) {
			of := "none"
			if what != "none" {
				of = "sidecars"
			}
			theirs := p.Seconds[what]
			over := absent
			if base, ok := p.Seconds["none"]; ok && what != "none" {
				over = seconds(new(theirs - base))
			}
			for i := range l.Rows {
				row := &l.Rows[i]
				if row.RPS != p.RPS || (row.Variant == "none") != (of == "none") {
					continue
				}
				all := row.Latency.Quantiles()
				added := absent
				if row.Added != nil {
					added = addedText(*row.Added.At(p.Quantile))
				}
				t.AddPlain(p.Name, offered(row), p.Quantile, what, seconds(&theirs), over, row.Variant, quantile(&row.Latency.Latency, *all.At(p.Quantile)), added)
			}
		}
	}
	return t
}

func sidecarTable(l *record.LatencyRun) table {
	t := table{Left: 2, Head: plain("sidecars", "variant", "tier", "count", "cores of each", "memory of each", "cores per 1000 RPS, all")}
	for i := range l.Rows {
		row := &l.Rows[i]
		if row.Sidecars == nil {
			continue
		}
		for n, tier := range row.Sidecars.Tiers {
			total := ""
			if n == 0 {
				total = number(row.Sidecars.CoresPer1000RPS)
			}
			t.AddPlain(offered(row), row.Variant, tier.Tier, count(&tier.Count), number(&tier.Cores), bytes(&tier.MemoryBytes), total)
		}
	}
	return t
}

// timelineTable shows the seconds in which anything failed.
func timelineTable(l *record.LatencyRun) table {
	t := table{Left: 1, Head: plain("errors over time", "variant", "repeat", "second", "requests", "errors", "not sent")}
	for i := range l.Rows {
		row := &l.Rows[i]
		for _, s := range row.Timeline {
			if s.Errors+s.NotSent > 0 {
				t.AddPlain(offered(row), row.Variant, count(&s.Repeat), count(&s.Second), count(&s.Requests), count(&s.Errors), count(&s.NotSent))
			}
		}
	}
	return t
}
