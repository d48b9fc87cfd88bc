// Package report prints records: as tables for reading, as Markdown for pull
// requests, as a page with charts, as CSV for spreadsheets, as JSON and YAML for
// programs. It reads nothing but records,
// scales figures for reading only, and computes none but what takes several
// runs: what one more pod costs. What is not in a record prints as "-", never as
// zero.
//
// One run is printed in full, several as one line each. Either way the knobs
// stand with the figures, and a figure that a warning is about carries the
// warning's number.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/pkg/record"
)

// Formats are those in which everything can be printed, the default first.
var Formats = []string{"table", "json", "yaml", "markdown"}

// RunFormats are what Print takes, the default first.
var RunFormats = append(slices.Clone(Formats), "html", "csv")

// Print writes runs in one of RunFormats.
func Print(w io.Writer, format string, runs []record.Run) error {
	switch format {
	case "table":
		return Table(w, runs)
	case "json":
		return JSON(w, runs)
	case "yaml":
		return YAML(w, runs)
	case "markdown":
		return Markdown(w, runs)
	case "html":
		return HTML(w, runs)
	case "csv":
		return CSV(w, runs)
	default:
		return fmt.Errorf("printing runs as %q: want one of %s", format, strings.Join(RunFormats, ", "))
	}
}

// Table writes runs as aligned text.
func Table(w io.Writer, runs []record.Run) error {
	_, err := io.WriteString(w, build(sorted(runs)).text())
	return err
}

// Markdown writes what Table writes as Markdown.
func Markdown(w io.Writer, runs []record.Run) error {
	_, err := io.WriteString(w, build(sorted(runs)).markdown())
	return err
}

// JSON writes runs as a record.RunList.
func JSON(w io.Writer, runs []record.Run) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(list(runs)); err != nil {
		return fmt.Errorf("writing runs as JSON: %w", err)
	}
	return nil
}

// YAML writes what JSON writes as YAML.
func YAML(w io.Writer, runs []record.Run) error {
	text, err := yaml.Marshal(list(runs))
	if err != nil {
		return fmt.Errorf("writing runs as YAML: %w", err)
	}
	_, err = w.Write(text)
	return err
}

func list(runs []record.Run) record.RunList {
	return record.RunList{APIVersion: record.APIVersion, Kind: record.ListKind, Items: sorted(runs)}
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

// build makes the document that both Table and Markdown print.
func build(runs []record.Run) document {
	switch len(runs) {
	case 0:
		return document{title: "no runs"}
	case 1:
		return runDocument(&runs[0])
	default:
		return summaryDocument(runs)
	}
}
