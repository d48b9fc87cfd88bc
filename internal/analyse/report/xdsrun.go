package report

import (
	"fmt"
	"io"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// PrintXDS writes the result of `scaler xds` in one of output.Formats.
func PrintXDS(w io.Writer, format string, run *record.XDSRun) error {
	return output.Print(w, format, "an xds run", run, xdsDocument(run).write)
}

// xdsDocument returns a document with the tables of a run for which an XDSRun has
// figures.
func xdsDocument(x *record.XDSRun) document {
	r := runReport{run: &record.Run{
		Started: x.Started, Finished: &x.Finished,
		Environment: x.Environment, Latencies: x.Latencies, XDS: x.XDS, Instrument: x.Instrument, Warnings: x.Warnings,
	}}
	r.warnings.add(r.run)
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
		facts: facts{
			{"sidecars", unmarked(fmt.Sprintf("%d, %s, %s, %s", x.Spec.Clients, x.Spec.XDS, transport, arrival))},
			{"machine", unmarked(machineText(x.Environment))},
			{"started", unmarked(r.startedText())},
		},
		limits: r.warnings.limits(false),
	}
	sidecars := table{Head: plain("sidecars", "requested", "connected", "answered", "complete")}
	s := x.Sidecars
	sidecars.Add(append(plain("ever", count(&s.Requested), count(&s.Connected), count(&s.Answered)), r.mark("sidecars.complete", "").on(count(&s.Complete)))...)
	d.add(sidecars, r.latencies(false), r.changeLatencies().withoutUnknown(), r.xds(), r.streams(), windowTable(x.Windows), r.instrument())
	return d
}

// windowTable shows the usage of scaler itself in each window.
func windowTable(windows []record.XDSWindow) table {
	t := table{Head: plain("scaler itself", "length", "cores", "CPU time", "memory, peak", "memory, end", "responses", "bytes", "CPU per response")}
	for _, w := range windows {
		u := orEmpty(w.Usage)
		t.AddPlain(w.Name, seconds(&w.Seconds), number(orEmpty(u.Cores).Mean), seconds(u.CPUSeconds),
			bytes(orEmpty(u.MemoryBytes).Peak), bytes(orEmpty(u.MemoryBytes).End),
			count(&w.Responses), bytes(new(float64(w.Bytes))), seconds(w.CPUSecondsPerResponse))
	}
	return t
}
