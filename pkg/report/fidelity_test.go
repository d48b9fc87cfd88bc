package report

import (
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

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
