package report

import (
	"strings"
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

// The title names the version that ran, and the one that was asked for.
func TestTitleOfReplacedVersion(t *testing.T) {
	r := record.Run{Warnings: []record.Warning{{About: record.AboutVersion, Reason: record.ReasonReplacedVersion, Component: "1.29.1", Detail: "1.29.4"}}}
	r.Environment.ControlPlane = record.ControlPlaneSource{Name: "istiod", Version: "1.29.1"}
	if got, want := rolloutTitle([]record.Run{r}), "istiod 1.29.1 in place of 1.29.4"; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want it to begin with %q", got, want)
	}
}
