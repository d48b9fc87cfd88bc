package compare

import (
	"slices"

	"scaler.mesh/scaler/pkg/record"
)

// PublishedLatencies returns the published latencies of requests at the rates of a run,
// to be shown with its rows. There are some only for a run that sends as they were
// measured: in an open loop, to servers that answer at once and are not killed. They come
// from other machines and without their spread, so nothing is tested.
func PublishedLatencies(spec record.LatencySpec) ([]record.PublishedLatency, error) {
	if spec.Topology == "chain" || spec.KillEverySeconds > 0 {
		return nil, nil
	}
	all, err := readPublished()
	if err != nil {
		return nil, err
	}
	var found []record.PublishedLatency
	for _, p := range all {
		for _, row := range p.Rows {
			rps, ok := row["rps"].(float64)
			if !ok || !slices.Contains(spec.RPS, rps) {
				continue
			}
			for _, quantile := range []string{"p50", "p90", "p99", "p100"} {
				values, ok := row[quantile].(map[string]any)
				if !ok {
					continue
				}
				one := record.PublishedLatency{Name: p.Name, Source: p.Source, RPS: rps, Quantile: quantile, Seconds: map[string]float64{}}
				if quantile == "p100" {
					one.Quantile = "max"
				}
				for variant, value := range values {
					if seconds, ok := value.(float64); ok {
						one.Seconds[variant] = seconds
					}
				}
				found = append(found, one)
			}
		}
	}
	return found, nil
}
