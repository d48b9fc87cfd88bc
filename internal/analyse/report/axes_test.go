package report

import (
	"slices"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// TestEveryConditionIsAnAxis checks that no property by which runs are told apart is left out where a
// report states in what runs differ.
func TestEveryConditionIsAnAxis(t *testing.T) {
	var stated []string
	for _, a := range axes {
		if a.of == nil {
			stated = append(stated, a.name)
		}
		stated = append(stated, a.of...)
	}
	for _, c := range record.Conditions {
		if !slices.Contains(stated, c.Name) && !slices.Contains(inRows, c.Name) {
			t.Errorf("%s is not among the axes", c.Name)
		}
	}
	for _, name := range stated {
		if !slices.ContainsFunc(record.Conditions, func(c record.Condition) bool { return c.Name == name }) {
			t.Errorf("%s is no condition", name)
		}
	}
}

// TestCertificateLifetimesDiffer checks that runs whose certificates live differently long are not
// reported as differing in nothing but size and repeat.
func TestCertificateLifetimesDiffer(t *testing.T) {
	runs := make([]record.Run, 2)
	runs[0].Status, runs[1].Status = record.StatusCompleted, record.StatusCompleted
	runs[1].Scenario.Mesh.Sidecars.CertificateLifetime = scenario.Duration(30 * time.Second)
	if groups := settings(runs); len(groups) != 2 {
		t.Errorf("%d groups, want 2", len(groups))
	}
}
