package capacity

import (
	"encoding/json"
	"io"
	"testing"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// Whatever records hold, planning from them ends in a plan that prints, or an error.
func FuzzMake(f *testing.F) {
	full, err := json.Marshal(strict().runs(nil, 2, 200, 400, 800))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full, 1600)
	f.Add([]byte(`[{"status":"completed","spec":{"pods":1},"controlPlane":{"rollout":{"cpuSeconds":1e308}}},{"status":"completed","spec":{"pods":1000000000},"controlPlane":{"rollout":{"cpuSeconds":-1e308}}},{"status":"completed","spec":{"pods":3},"controlPlane":{"rollout":{"cpuSeconds":1e308}}}]`), 1600)
	f.Add([]byte(`[{"status":"completed","spec":{"pods":1},"phases":[null],"own":{"rollout":{"x":1e308}}},{"status":"completed","spec":{"pods":2}}]`), 1)
	f.Fuzz(func(t *testing.T, data []byte, pods int) {
		var all []record.Run
		if json.Unmarshal(data, &all) != nil || pods < 1 || pods > 1_000_000 {
			return
		}
		for _, validate := range []bool{false, true} {
			plan, err := Make(all, Options{Pods: pods, Force: true, Validate: validate, ReplicasMax: 1})
			if err != nil {
				continue
			}
			for _, format := range output.Formats {
				if err := Print(io.Discard, format, plan); err != nil {
					t.Errorf("printing as %s: %v", format, err)
				}
			}
		}
	})
}
