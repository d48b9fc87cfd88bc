// Package sheet writes runs as a table for spreadsheets: a row for each run and a
// column for each figure. Which runs there are, in which order and by which names
// they go, it leaves to its callers.
package sheet

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// CSV writes a row for each run and a column for each figure that any of them has, named
// by its path in the record, in base units. A figure that a run does not have is an empty
// cell. Phases and faults are named where a path would have a number:
// phases.rollout.seconds. Warnings are one cell.
func CSV(w io.Writer, runs []record.Run) error {
	var rows []flat
	var columns []string
	for _, run := range runs {
		row, err := flatten(&run)
		if err != nil {
			return fmt.Errorf("writing run %q as CSV: %w", run.Name, err)
		}
		rows = append(rows, row)
		columns = merged(columns, row.paths)
	}
	out := csv.NewWriter(w)
	if len(rows) > 0 {
		if err := out.Write(columns); err != nil {
			return fmt.Errorf("writing runs as CSV: %w", err)
		}
	}
	for _, row := range rows {
		cells := make([]string, len(columns))
		for i, column := range columns {
			cells[i] = row.values[column]
		}
		if err := out.Write(cells); err != nil {
			return fmt.Errorf("writing runs as CSV: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing runs as CSV: %w", err)
	}
	return nil
}

// flat is a record as paths and values.
type flat struct {
	paths  []string // in the record's order
	values map[string]string
}

func (f *flat) set(path, value string) {
	if _, there := f.values[path]; !there {
		f.paths = append(f.paths, path)
	}
	f.values[path] = value
}

// flatten takes a run as its JSON has it, so that names and order are the
// record's.
func flatten(run *record.Run) (flat, error) {
	data, err := json.Marshal(run)
	if err != nil {
		return flat{}, err
	}
	f := flat{values: map[string]string{}}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := f.take(d, ""); err != nil {
		return flat{}, err
	}
	var warnings []string
	for _, w := range run.Warnings {
		warnings = append(warnings, w.About+": "+run.Sentence(w))
	}
	f.set("warnings", words(strings.Join(warnings, "; ")))
	return f, nil
}

// take takes the next value, which stands at path.
func (f *flat) take(d *json.Decoder, path string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		return f.takeAll(d, path, token)
	case json.Number:
		f.set(path, token.String())
	case string:
		f.set(path, words(token))
	case bool:
		f.set(path, strconv.FormatBool(token))
	}
	return nil
}

// takeAll takes the values of an object or an array that has begun.
func (f *flat) takeAll(d *json.Decoder, path string, begin json.Delim) error {
	seen := map[string]int{}
	for i := 0; d.More(); i++ {
		name := strconv.Itoa(i)
		if begin == '{' {
			token, err := d.Token()
			if err != nil {
				return err
			}
			name, _ = token.(string)
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case path == "warnings":
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return err
			}
			continue
		case path == "phases" || path == "faults":
			if err := f.takeNamed(d, path, seen); err != nil {
				return err
			}
			continue
		}
		if err := f.take(d, at); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// takeNamed takes an element of a list by its name; of several with one name the
// second is NAME-2.
func (f *flat) takeNamed(d *json.Decoder, path string, seen map[string]int) error {
	var element json.RawMessage
	if err := d.Decode(&element); err != nil {
		return err
	}
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(element, &named); err != nil {
		return err
	}
	seen[named.Name]++
	if n := seen[named.Name]; n > 1 {
		named.Name += "-" + strconv.Itoa(n)
	}
	inner := json.NewDecoder(strings.NewReader(string(element)))
	inner.UseNumber()
	return f.take(inner, path+"."+named.Name)
}

// words returns s so that no spreadsheet reads it as a formula.
func words(s string) string {
	s = output.Plain(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

// merged adds to columns those of another run, each after the one that it follows
// there.
func merged(columns, others []string) []string {
	at := 0
	for _, path := range others {
		if i := slices.Index(columns, path); i >= 0 {
			at = i + 1
			continue
		}
		columns = slices.Insert(columns, at, path)
		at++
	}
	return columns
}
