package report

import (
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// latencySample returns a latency run with every figure.
func latencySample() record.LatencyRun {
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	latency := func(p50, p99 float64) record.LatencyFigure {
		return record.LatencyFigure{Latency: record.Latency{Unit: "s", Count: 999, Lost: 1, P50: &p50, P90: &p50, P99: &p99, Max: new(1.5)}}
	}
	strict := latency(0.002, 0.009)
	strict.Intervals = &record.Quantiles[record.Interval]{P50: &record.Interval{Low: -0.001, High: 0.003}}
	return record.LatencyRun{
		APIVersion: record.APIVersion, Kind: record.LatencyKind, Schema: record.Schema, Name: "latency", Status: record.StatusCompleted, Started: start, Finished: new(start.Add(time.Minute)),
		Spec: record.LatencySpec{RPS: []float64{100}, Variants: []string{"none", "strict"}, Arrivals: "poisson", HTTP: 2, Topology: "chain",
			WaitSeconds: []float64{0.1, 0.1}, Replicas: 3, Rounds: 4, Repeats: 3, Keepalive: true},
		Environment: record.Environment{CPUs: 2, ControlPlane: record.ControlPlaneSource{Name: "istiod", Version: "1.31", Replicas: 1, GOMAXPROCS: 2}},
		Rows: []record.LatencyRow{
			{RPS: 100, Variant: "none", Latency: latency(0.001, 0.004), AchievedRPS: 99.9, Requests: 1000, Lateness: &record.Latency{P50: new(50e-6), P99: new(90e-6)}},
			{
				RPS: 100, Variant: "strict", Latency: strict, AchievedRPS: 100, Requests: 1000, Errors: 1, Lateness: &record.Latency{P50: new(50e-6), P99: new(0.005)}, Late: []string{"p99"},
				Added: &record.Quantiles[record.Added]{
					P50: &record.Added{Seconds: 0.001, Interval: &record.Interval{Low: 0.0009, High: 0.0011}, P: new(0.001), Significant: new(true)},
					P90: &record.Added{Seconds: 0.001, Interval: &record.Interval{Low: -0.1, High: 0.1}, P: new(0.9), Significant: new(false)},
					P99: &record.Added{Seconds: 0.005},
				},
				Sidecars: &record.LatencySidecars{Count: 7, CoresPer1000RPS: new(0.5), Tiers: []record.LatencySidecar{{Tier: "client", Count: 1, Cores: 0.031, MemoryBytes: 73e6}}},
				Timeline: []record.LatencySecond{{Repeat: 1, Second: 0, Requests: 100}, {Repeat: 1, Second: 7, Requests: 100, Errors: 1}},
			},
		},
		Published: []record.PublishedLatency{{Name: "theirs", RPS: 100, Quantile: "p50", Seconds: map[string]float64{"none": 0.004, "istio": 0.009}}},
		Warnings:  []record.Warning{{About: "rows[1].latency", Text: "the generator was itself late"}},
	}
}

func TestLatencyRun(t *testing.T) {
	run := latencySample()
	for format, wants := range map[string][]string{
		"table": {
			"istiod 1.31: request latency at 100 RPS, without sidecars and strict\n", "LOAD      VARIANT", "100 RPS   without sidecars",
			"Sidecars added 1.00ms", "[1]",
		},
		"wide": {
			"latency: completed", "open loop, poisson, HTTP/2", "chain that waits 100ms, 100ms, 3 of each", "4 rounds of each variant in turn, 3 repeats", "istiod 1.31",
			"100 RPS   none ", "1.00ms", ">1.50s", "strict [1]   2.00ms (0s to 3.00ms)", "99.9/s",
			"1.00ms (900µs to 1.10ms)     ~   5.00ms (one repeat)", "client       1           0.031          69.6MiB                     0.500",
			"100 RPS            strict         1        7        100        1          0",
			"theirs      100 RPS   p50        istio   9.00ms            5.00ms          strict   2.00ms   1.00ms (900µs to 1.10ms)", "    rows[1].latency: the generator was itself late",
		},
		"markdown": {"### latency: completed", "| 100 RPS | strict"},
		"json":     {`"kind": "LatencyRun"`, `"achievedRps": 99.9`, `"notSent": 0`, `"significant": true`},
		"yaml":     {"kind: LatencyRun"},
	} {
		text := printed(t, format, func(b *strings.Builder, format string) error { return PrintLatency(b, format, &run) })
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("as %s it lacks %q:\n%s", format, want, text)
			}
		}
	}
	closed := record.LatencyRun{Status: record.StatusInterrupted, Reason: "context canceled", Spec: record.LatencySpec{Connections: []int{32}, Requests: 100, HTTP: 1, Topology: "star", Replicas: 3}}
	text := printed(t, "wide", func(b *strings.Builder, format string) error { return PrintLatency(b, format, &closed) })
	for _, want := range []string{"latency: interrupted (context canceled)", "closed loop of 100 requests, HTTP/1, a connection for each request", "star of 3 servers"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
}

func TestLatencyPage(t *testing.T) {
	page := readable(printed(t, "html", func(b *strings.Builder, format string) error {
		return PrintAll(b, format, []record.Run{fullRun()}, []record.LatencyRun{latencySample(), {Status: record.StatusFailed}})
	}))
	for _, want := range []string{
		"istiod 1.31: 200 pods, strict, in bursts of 100 every 10s, with real sidecars; istiod 1.31: request latency at 100 RPS, without sidecars and strict",
		"Rolling out 200 pods (strict) in bursts of 100 every 10s, created at", "At 100 RPS, requests without sidecars took 1.00ms at p50 and 4.00ms at p99.",
		"Sidecars added 1.00ms at p50 and 5.00ms at p99 (strict).", "- measured no request: failed.", "Latency at p99", "rows[1].latency : the generator was itself late (latency)",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("it lacks %q:\n%s", want, page[5000:min(len(page), 9000)])
		}
	}
}
