package capacity

import (
	"slices"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

func TestNotOfPlansAreConditions(t *testing.T) {
	for name := range notOfPlans {
		if !slices.ContainsFunc(record.Conditions, func(c record.Condition) bool { return c.Name == name }) {
			t.Errorf("%s is no condition", name)
		}
	}
}
