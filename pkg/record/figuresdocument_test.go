package record

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/test/golden"
)

// docs/reference/figures.md is written from the catalogue by -update.
func TestFiguresDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Figures

<!-- Written by "go test ./pkg/record -run FiguresDocument -update" from the catalogue in pkg/record. -->

Every part of a run's ` + "`run.json`" + `, by path, and what each figure means. [Definitions](definitions/README.md) explains the concepts:
phases, complete, converged, dilation.

Units are base units. "One observation" is what is counted, or what a mean, a peak or a
quantile is over. "Better" is the direction of an improvement. Figures marked * are not
compared between runs: they are given, one observation, or contained in others.

"Dilated" is what ` + "`--dilate K`" + ` does to a figure ([definitions](definitions/dilation.md#time-dilation)): it is a time,
divided by K, or a rate, multiplied by K; without either it stays as measured. The record has the result.

PHASE is ` + "`" + joinPhases("`, `") + "`" + `; PROGRAM is one of the cluster's, or a replica of the control plane;
TYPE is a type of resources, as in CDS; KIND is a kind of change; STAGE is a stage of an upgrade; FAULT is a fault's name and phase, as in
` + "`kill-control-plane@steady`" + ` (in run.json faults are a list).
`)
	rows := figureRows()
	var parts []string
	for _, r := range rows {
		if part := firstWord(r.path); !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	for _, part := range parts {
		writePart(&b, part, rows)
	}
	b.WriteString("\n## Figures of a latency\n\nQuantiles are over what came and what was lost together; one that lies among what was lost is absent.\n\n")
	b.WriteString("| path below | definition | unit | better | dilated |\n| --- | --- | --- | --- | --- |\n")
	for _, f := range LatencyFigures {
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s | %s |\n", f.Path, mark(f.NotCompared), f.Definition, f.Unit, f.Better, f.Scaling())
	}
	for _, f := range Fields {
		if path, ok := strings.CutPrefix(f.Path, "LATENCY."); ok {
			fmt.Fprintf(&b, "| `%s`* | %s | | | |\n", path, f.Definition)
		}
	}
	b.WriteString("\n## Figures of a usage\n\nWhat a program, or several together, used in a phase.\n\n")
	b.WriteString("| path below | definition | source | unit | label | one observation | better | dilated |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, f := range UsageFigures {
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s | %s | %s | %s | %s |\n", f.Path, mark(f.NotCompared), f.Definition, f.Source, f.Unit, f.Label, f.Counts, f.Better, f.Scaling())
	}
	b.WriteString("\n## Other parts of the record\n\n| path | content |\n| --- | --- |\n")
	for _, f := range Fields {
		if part := firstWord(f.Path); !slices.Contains(parts, part) && part != "LATENCY" {
			fmt.Fprintf(&b, "| `%s` | %s |\n", f.Path, f.Definition)
		}
	}
	b.WriteString("\n## Where programs wait\n\nWhat is timed in a phase is uncertain where programs waited for processors in it (warnings `saturated` and `atLimit`), or clients of the API server did not read fast enough (`watchesClosed`). [Warnings](definitions/record.md#warnings) states in which direction, and what else such a warning affects.\n\n| phase | figures |\n| --- | --- |\n")
	for _, phase := range FigurePhases {
		if paths := timed()[phase]; paths != nil {
			fmt.Fprintf(&b, "| `%s` | `%s` |\n", phase, strings.Join(paths, "`, `"))
		}
	}
	b.WriteString("\n## Across control planes\n\nWhether figures mean the same with every control plane, by the beginnings of their paths; the longest counts. An adapter may state another meaning where one is listed.\n\n| path | meaning |\n| --- | --- |\n")
	for _, a := range AcrossControlPlanes {
		fmt.Fprintf(&b, "| `%s` | %s |\n", a.Path, cmp.Or(a.Means, "the same"))
	}
	golden.Compare(t, filepath.Join("..", "..", "docs", "reference", "figures.md"), b.String())
}

// writePart writes the figures of a part of the record, and its other fields.
func writePart(b *strings.Builder, part string, rows []figureRow) {
	fmt.Fprintf(b, "\n## `%s`\n\n", part)
	var others []Field
	rows = slices.DeleteFunc(slices.Clone(rows), func(r figureRow) bool { return firstWord(r.path) != part })
	scope := rows[0].scope
	if slices.ContainsFunc(rows, func(r figureRow) bool { return r.scope != scope }) {
		scope = ""
	}
	for _, f := range Fields {
		switch {
		case f.Path == part:
			fmt.Fprintf(b, "%s\n\n", joined(f.Definition, scope))
		case firstWord(f.Path) == part:
			others = append(others, f)
		}
	}
	b.WriteString("| path | definition | unit | phase | label | one observation | better | dilated |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		fmt.Fprintf(b, "| `%s`%s | %s | %s | %s | %s | %s | %s | %s |\n", r.path, mark(r.notCompared), r.definition(scope), r.unit, r.phase, r.label, r.counts, r.better, r.dilated)
	}
	if others == nil {
		return
	}
	b.WriteString("\n| other field | content |\n| --- | --- |\n")
	for _, f := range others {
		fmt.Fprintf(b, "| `%s` | %s |\n", f.Path, f.Definition)
	}
}

// figureRow is a row of the page: a figure, or all those of a usage or a latency.
type figureRow struct {
	path, unit, label, counts string
	phase                     PhaseName
	better                    Better
	dilated                   Scaling
	text                      string
	scope                     string   // Figure.Scope
	kinds                     []string // of changes, that KIND in path stands for
	notCompared               bool
}

// definition returns the text of the row, with the kinds of changes that it is of, and its scope unless that is the one that was
// stated of all.
func (d figureRow) definition(stated string) string {
	kinds, scope := "", d.scope
	if len(d.kinds) > 0 {
		kinds = "KIND: " + strings.Join(d.kinds, ", ") + "."
	}
	if scope == stated {
		scope = ""
	}
	return joined(kinds, d.text, scope)
}

// figureRows returns the rows of all figures, those that a list has in one.
func figureRows() []figureRow {
	var rows []figureRow
	seen := map[string]int{}
	for _, f := range Figures() {
		row := rowOf(f)
		key := row.path + row.text
		at, known := seen[key]
		if !known {
			at = len(rows)
			seen[key], rows = at, append(rows, row)
		} else {
			for _, kind := range row.kinds {
				if !slices.Contains(rows[at].kinds, kind) {
					rows[at].kinds = append(rows[at].kinds, kind)
				}
			}
		}
	}
	return rows
}

// rowOf returns the row that a figure is in.
func rowOf(f Figure) figureRow {
	row := figureRow{
		path: f.Path, unit: string(f.Unit), label: f.Label, counts: f.Counts, phase: f.Phase, better: f.Better, dilated: f.Scaling(), notCompared: f.NotCompared,
		text: joined(f.Definition, sourced(f.Source)), scope: f.Scope,
	}
	switch f.list {
	case usageList:
		row.path, row.label = above(f, UsageFigures)
		row.unit, row.counts, row.text = "as [usage](#figures-of-a-usage)", "as there", ""
	case latencyList:
		row.path, row.label = above(f, LatencyFigures)
		row.unit = "as [latencies](#figures-of-a-latency)"
		row.text = joined(f.Between(), f.Note)
		if before, _, again := strings.Cut(row.path, ".latencies."); again { // latencies that are not the run's first ones
			row.path, row.unit, row.counts, row.text = before+".latencies", "as [`latencies`](#latencies)", "as there", ""
			row.label, _, _ = strings.Cut(row.label, ": ")
		}
	default:
		return row
	}
	row.better, row.dilated, row.notCompared = BetterLower, "", f.list == latencyList && strings.HasPrefix(f.Path, "sidecars.real.starts.")
	words := strings.Split(row.path, ".")
	for i, word := range words {
		if slices.Contains(ChangeKinds, ChangeKind(word)) {
			words[i], row.kinds = "KIND", []string{word}
			row.label = strings.ReplaceAll(row.label, word, "KIND")
		}
	}
	row.path = strings.Join(words, ".") + ".*"
	return row
}

// above returns the path and the label of the usage or the latency that a figure is of.
func above(f Figure, list []Figure) (path, label string) {
	for _, of := range list {
		if path, ok := strings.CutSuffix(f.Path, "."+of.Path); ok {
			return path, strings.TrimRight(strings.TrimSuffix(f.Label, of.Label), ":, ")
		}
	}
	return f.Path, f.Label
}

func sourced(source string) string {
	if source == "" {
		return ""
	}
	return "Source: " + source + "."
}

func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

func mark(notCompared bool) string {
	if notCompared {
		return "*"
	}
	return ""
}

func firstWord(path string) string {
	word, _, _ := strings.Cut(path, ".")
	return strings.TrimSuffix(word, "[]")
}

func joinPhases(between string) string {
	var all []string
	for _, phase := range FigurePhases {
		all = append(all, string(phase))
	}
	return strings.Join(all, between)
}
