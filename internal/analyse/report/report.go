// Package report prints records: as tables for reading, as Markdown for pull
// requests, as a page with charts, as JSON and YAML for
// programs. It reads nothing but records,
// scales figures for reading only, and computes none but what takes several
// runs: what one more pod costs. What is not in a record prints as "-", never as
// zero.
//
// One run is printed in full, several as one row each. Knobs are printed with the
// figures, and a figure that a warning is about has the number, or in a page the
// letter, of the warning's reason.
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

// Formats are what Print and PrintAll take, the default first.
var Formats = append(slices.Clone(output.Formats), "html")

// Print writes runs in one of Formats; as JSON and YAML they are a record.RunList.
func Print(w io.Writer, format string, runs []record.Run) error {
	switch {
	case format == "html":
		return HTML(w, runs, nil)
	case !slices.Contains(Formats, format):
		return fmt.Errorf("printing runs as %q: want one of %s", format, strings.Join(Formats, ", "))
	}
	list := record.RunList{APIVersion: record.APIVersion, Kind: record.ListKind, Items: sorted(runs)}
	return output.Print(w, format, "runs", list, func(markdown bool) string { return build(list.Items).as(markdown) })
}

// sorted returns runs in the order of every report, however they were found:
// by control plane, knobs and size, so that neighbours are comparable.
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
			cmp.Compare(a.Spec.Pods, b.Spec.Pods),
			cmp.Compare(a.Spec.Services, b.Spec.Services),
			cmp.Compare(a.Spec.Repeat, b.Spec.Repeat),
			a.Started.Compare(b.Started),
			strings.Compare(a.Name, b.Name),
		)
	})
	return s
}

// build makes the document of runs that are sorted.
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
