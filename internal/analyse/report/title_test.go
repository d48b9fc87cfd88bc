package report

import (
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

func TestPlaneName(t *testing.T) {
	for version, want := range map[string]string{
		"1.31.0":            "istiod 1.31.0",
		"1.31-eed52ebb66ad": "istiod 1.31",
		"1.31-20260423":     "istiod 1.31-20260423",
		"1.31-202604231234": "istiod 1.31", // twelve digits are a commit
		"v1.2.3-rc.1":       "istiod v1.2.3",
		"devel":             "istiod",
		"":                  "istiod",
	} {
		if got := planeName(record.ControlPlaneSource{Name: "istiod", Version: version}); got != want {
			t.Errorf("version %q is %q in titles, want %q", version, got, want)
		}
	}
}
