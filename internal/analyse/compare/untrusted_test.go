package compare

import (
	"encoding/json"
	"io"
	"testing"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// Whatever records hold, comparing them ends in a comparison that prints, or an error.
func FuzzCompare(f *testing.F) {
	full, err := json.Marshal(runs("a", 4, 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	f.Add([]byte(`[{"status":"completed","spec":{"pods":1e9},"controlPlane":{"rollout":{"cores":{"mean":1e308},"cpuSeconds":-1e308}}},{"status":"completed","spec":{"pods":1000000000},"controlPlane":{"rollout":{"cores":{"mean":-1e308}}}}]`))
	f.Add([]byte(`[{"status":"completed","latencies":{"push":{"route":null,"x":{"count":-1,"p50":1e308}}},"phases":[null],"xds":{"rates":null}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var all []record.Run
		if json.Unmarshal(data, &all) != nil {
			return
		}
		bound, err := ParseBound("rollout.cores>+10%")
		if err != nil {
			t.Fatal(err)
		}
		for at := range len(all) + 1 {
			if at > 8 {
				return // more of the same
			}
			result, err := Compare(all[:at], all[at:], Options{A: "a", B: "b", Force: true, Bounds: []Bound{bound}})
			if err != nil {
				continue
			}
			for _, format := range output.Formats {
				if err := Print(io.Discard, format, result); err != nil {
					t.Errorf("printing as %s: %v", format, err)
				}
			}
			if err := result.JUnit(io.Discard); err != nil {
				t.Errorf("printing as JUnit: %v", err)
			}
		}
	})
}
