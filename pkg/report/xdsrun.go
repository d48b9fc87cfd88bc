package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/pkg/record"
)

// PrintXDS writes what `scaler xds` found in one of Formats.
func PrintXDS(w io.Writer, format string, run *record.XDSRun) error {
	return printObject(w, format, run, func() document { return xdsDocument(run) })
}

// printObject writes one object in one of Formats; the document is made only
// for those that need it.
func printObject(w io.Writer, format string, object any, document func() document) (err error) {
	switch format {
	case "table":
		_, err = io.WriteString(w, document().text())
	case "markdown":
		_, err = io.WriteString(w, document().markdown())
	case "json":
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(object)
	case "yaml":
		var text []byte
		if text, err = yaml.Marshal(object); err == nil {
			_, err = w.Write(text)
		}
	default:
		return fmt.Errorf("printing as %q: want one of %s", format, strings.Join(Formats, ", "))
	}
	return err
}

// xdsDocument shows an XDSRun with the tables of a run, as far as it has them.
func xdsDocument(x *record.XDSRun) document {
	r := runReport{run: &record.Run{
		Started: x.Started, Finished: &x.Finished,
		Environment: x.Environment, Latencies: x.Latencies, XDS: x.XDS, Instrument: x.Instrument, Warnings: x.Warnings,
	}}
	r.doubts.number(r.run)
	transport := "plaintext"
	if x.Spec.TLS {
		transport = "TLS"
	}
	arrival := "all at once"
	if x.Spec.RatePerSecond > 0 {
		arrival = threeDigits(x.Spec.RatePerSecond) + " a second"
	}
	d := document{
		title: fmt.Sprintf("xds %s: %s", x.Spec.Address, x.Status),
		facts: []fact{
			{"sidecars", fmt.Sprintf("%d, %s, %s, %s", x.Spec.Clients, x.Spec.XDS, transport, arrival)},
			{"machine", machineText(x.Environment)},
			{"started", r.startedText()},
		},
		warnings: r.doubts.lines(false),
	}
	sidecars := table{head: []string{"sidecars", "requested", "connected", "answered", "complete"}}
	s := x.Sidecars
	sidecars.add("ever", count(&s.Requested), count(&s.Connected), count(&s.Answered), count(&s.Complete)+r.mark("sidecars.complete", ""))
	for _, t := range []table{sidecars, r.latencyTable(false), r.xds(), r.streams(), windowTable(x.Windows), r.instrument()} {
		if len(t.rows) > 0 {
			d.tables = append(d.tables, t)
		}
	}
	return d
}

// windowTable shows what scaler itself needed in each window.
func windowTable(windows []record.XDSWindow) table {
	t := table{head: []string{"scaler itself", "length", "cores", "CPU time", "memory, peak", "memory, end", "responses", "bytes", "CPU per response"}}
	for _, w := range windows {
		u := w.Usage
		if u == nil {
			u = &record.Usage{}
		}
		t.add(w.Name, seconds(&w.Seconds), number(level(u.Cores).Mean), seconds(u.CPUSeconds),
			bytes(level(u.MemoryBytes).Peak), bytes(level(u.MemoryBytes).End),
			count(&w.Responses), bytes(new(float64(w.Bytes))), seconds(w.CPUSecondsPerResponse))
	}
	return t
}
