package run

import (
	"testing"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
)

func TestPriorityRecord(t *testing.T) {
	if got := priorityRecord(process.Priorities{}); got != nil {
		t.Errorf("without priorities the record has %+v", got)
	}
	got := priorityRecord(process.Priorities{Mechanism: process.MechanismNice, First: -10, Own: 1, Last: 16, Detail: "not permitted"})
	if want := (record.Priority{Mechanism: "nice", ControlPlane: -10, Instrument: 1, Cluster: 16, Note: "not permitted"}); got == nil || *got != want {
		t.Errorf("the record has %+v, want %+v", got, want)
	}
}
