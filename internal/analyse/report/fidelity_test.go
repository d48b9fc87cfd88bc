package report

import (
	"regexp"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// What was found before a late error is printed, and distinguished from what was not.
func TestFidelityUnfinished(t *testing.T) {
	found := map[string]record.HeldResources{"CDS": {Real: 7, Simulated: 7, Common: 7, RealBytes: 100, SimulatedBytes: 100}}
	f := record.Fidelity{Status: record.StatusFailed, Reason: "istiod ended", Cases: []record.FidelityCase{
		{Name: "mtls", Resources: found, AfterChanges: found, Start: record.Sameness{Compared: 6, Same: 6}},
		{Name: "scope", Unfinished: "changing the mesh: istiod ended"},
	}}
	var out strings.Builder
	if err := PrintFidelity(&out, "table", &f); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`status +failed`, `mtls +7 the same +1.0000 +6 of 6`, `scope \(unfinished\) +- +- +- +-`,
		`scope is unfinished: changing the mesh: istiod ended`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestSameness(t *testing.T) {
	for want, s := range map[string]record.Sameness{
		absent:                            {},
		"5 of 5":                          {Compared: 5, Same: 5},
		"40 of 40, 160 concerned neither": {Compared: 200, Same: 200, Silent: 160},
		"38 of 40, 160 concerned neither": {Compared: 200, Same: 198, Silent: 160},
		"8 concerned neither":             {Compared: 8, Same: 8, Silent: 8},
	} {
		if got := sameness(s); got != want {
			t.Errorf("%+v is %q, want %q", s, got, want)
		}
	}
}
