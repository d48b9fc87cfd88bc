// Package report prints records: as tables for reading, as Markdown for pull requests, as
// a page with charts, as JSON and YAML for programs. It reads only records, scales
// figures only for reading, and computes only figures that need several runs: the cost
// of one more pod. A value that is missing in a record is printed as "-", never as zero.
//
// What is printed by default is an answer of at most 20 lines: sentences about one
// size and mode, a row for each of several, what limits the figures, and what to do
// next. The tables have one run in full, several as one row each. Settings are printed
// with the figures, and a figure with a warning is marked with the number, or in a page
// the letter, of the warning's reason.
package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// Print writes runs in one of output.PageFormats; as JSON and YAML they are a record.RunList.
func Print(w io.Writer, format string, runs []record.Run) error {
	switch {
	case format == "html":
		return HTML(w, runs, nil)
	case !slices.Contains(output.PageFormats, format):
		return fmt.Errorf("printing runs as %q: want one of %s", format, strings.Join(output.PageFormats, ", "))
	}
	list := record.RunList{APIVersion: record.APIVersion, Kind: record.ListKind, Items: sorted(runs)}
	return output.PrintAnswer(w, format, "runs", list,
		func(width int) string { return briefOf(list.Items).text(width) },
		func(d *output.Document) { build(list.Items).write(d) })
}

// sorted returns runs in the order of every report: by control plane, settings and size,
// so that neighbours are comparable.
func sorted(runs []record.Run) []record.Run {
	s := append([]record.Run{}, runs...) // not nil: an empty list prints as []
	slices.SortStableFunc(s, func(a, b record.Run) int {
		ae, be := a.Environment, b.Environment
		return cmp.Or(
			strings.Compare(ae.ControlPlane.Name, be.ControlPlane.Name),
			strings.Compare(ae.ControlPlane.Version, be.ControlPlane.Version),
			-strings.Compare(a.Dataplane(), b.Dataplane()), // sidecars first
			strings.Compare(ae.Knobs.MTLS, be.Knobs.MTLS),
			strings.Compare(ae.Knobs.Scope, be.Knobs.Scope),
			strings.Compare(ae.Knobs.Authz, be.Knobs.Authz),
			cmp.Compare(a.PodCount(), b.PodCount()),
			cmp.Compare(a.ServiceCount(), b.ServiceCount()),
			cmp.Compare(a.Repeat, b.Repeat),
			a.Started.Compare(b.Started),
			strings.Compare(a.Name, b.Name),
		)
	})
	return s
}

// build makes the document for sorted runs.
func build(runs []record.Run) document {
	switch len(runs) {
	case 0:
		return document{title: "no runs"}
	case 1:
		return runDocument(&runs[0])
	default:
		return summaryDocument(withUniqueNames(runs))
	}
}
