package report

import (
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// printed returns the output of print in a format.
func printed(t *testing.T, format string, print func(*strings.Builder, string) error) string {
	t.Helper()
	var b strings.Builder
	if err := print(&b, format); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestXDSRun(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	run := record.XDSRun{
		APIVersion: record.APIVersion, Kind: record.XDSKind, Status: record.StatusUnconverged, Started: start, Finished: start.Add(time.Minute),
		Spec:      record.XDSRunSpec{Address: "127.0.0.1:15010", Clients: 10, XDS: "sotw", RatePerSecond: 50},
		Sidecars:  record.XDSSidecars{Requested: 10, Connected: 10, Answered: 10, Complete: 9},
		Windows:   []record.XDSWindow{{Name: "arrival", Seconds: 60, Usage: &record.Usage{CPUSeconds: new(1.5)}, Responses: 36, Bytes: 1000, CPUSecondsPerResponse: new(0.04)}},
		Latencies: record.Latencies{CompleteConfiguration: &record.Latency{Unit: "s", Count: 9, Lost: 1, P50: new(0.1), P90: new(0.2), Max: new(0.2)}},
		XDS:       &record.XDS{Responses: map[string]int64{"CDS": 10}},
		Warnings:  []record.Warning{{About: "sidecars.complete", Text: "1 of 10 sidecars were never complete"}},
	}
	for format, wants := range map[string][]string{
		"table": {
			"xds 127.0.0.1:15010: unconverged", "10, sotw, plaintext, 50.0 a second", "9 [1]",
			"complete configuration       9      1   100ms   200ms   >200ms   200ms", "    sidecars.complete: 1 of 10", "40.0ms",
		},
		"markdown": {"### xds 127.0.0.1:15010: unconverged", "| arrival |"},
		"json":     {`"kind": "XDSRun"`, `"complete": 9`},
		"yaml":     {"kind: XDSRun"},
	} {
		text := printed(t, format, func(b *strings.Builder, format string) error { return PrintXDS(b, format, &run) })
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("as %s it lacks %q:\n%s", format, want, text)
			}
		}
		if strings.Contains(text, "pod admission") {
			t.Errorf("as %s it has a latency that is not measured:\n%s", format, text)
		}
	}
	if err := PrintXDS(new(strings.Builder), "xml", &run); err == nil {
		t.Error("xml was printed")
	}
}

func TestCalibration(t *testing.T) {
	c := record.Calibration{
		APIVersion: record.APIVersion, Kind: record.CalibrationKind, Scaler: "v1", Machine: record.Machine{CPUModel: "Some", CPUs: 2, Kernel: "6"},
		Points: []record.CalibrationPoint{{
			XDS: "delta", Sidecars: 100, DelaySeconds: 0.1, Drop: 0.05, Dropped: new(int64(7)),
			Latencies:  record.Latencies{Push: map[record.ChangeKind]*record.Latency{record.EndpointAdd: {Unit: "s", Count: 93, Lost: 7, P50: new(0.1)}}},
			FanOut:     record.FanOut{InstrumentSeconds: 70e-6, ControlPlaneSeconds: 80e-6, Share: 0.9},
			Instrument: record.Instrument{Cores: new(0.01), BytesPerSidecar: new(75e3)},
		}},
	}
	for format, wants := range map[string][]string{
		"table":    {"Some, 2 CPUs, kernel 6", "100 SIDECARS, DELTA, PUSHES DELAYED 100MS, 5.00% DROPPED", "push: endpointAdd", "70.0µs", "73.2KiB", "90.0%", "as the control plane counts"},
		"markdown": {"### calibration"},
		"json":     {`"kind": "Calibration"`, `"dropped": 7`},
		"yaml":     {"kind: Calibration"},
	} {
		text := printed(t, format, func(b *strings.Builder, format string) error { return PrintCalibration(b, format, &c) })
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("as %s it lacks %q:\n%s", format, want, text)
			}
		}
	}
}
