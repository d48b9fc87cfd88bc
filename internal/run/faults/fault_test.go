package faults

import (
	"testing"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

func TestCheckPrograms(t *testing.T) {
	for _, test := range []struct {
		program string
		has     []string
		ok      bool
	}{
		{"", nil, true}, {"", []string{"web"}, true}, {"web", []string{"ca", "web"}, true}, {"web", nil, false}, {"web", []string{"ca"}, false},
	} {
		fault := scenario.Fault{Kind: scenario.KillControlPlane, Program: test.program, Phase: scenario.PhaseSteady}
		if err := CheckPrograms([]scenario.Fault{fault}, "mesh", test.has); (err == nil) != test.ok {
			t.Errorf("%v with %v: %v", fault, test.has, err)
		}
	}
}

func TestCheckReplicas(t *testing.T) {
	parse := func(texts ...string) (all []scenario.Fault) {
		for _, text := range texts {
			f, err := scenario.ParseFault(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, f)
		}
		return all
	}
	for _, test := range []struct {
		faults   []scenario.Fault
		replicas int
		ok       bool
	}{
		{nil, 1, true},
		{parse("kill-control-plane@steady"), 1, true},
		{parse("kill-replica@steady"), 1, false},
		{parse("kill-replica@steady"), 2, true},
		{parse("kill-replica@steady", "kill-replica@steady"), 2, false},
		{parse("kill-replica@steady", "add-replica@rollout"), 1, true}, // the rollout comes first
		{parse("add-replica@steady", "kill-replica@probe"), 1, false},  // the probe comes before steady's
		{parse("restart-replicas@steady"), 1, false},
		{parse("restart-replica@steady"), 1, false},
		{parse("restart-replica@steady"), 2, true},
		{parse("kill-replica@rollout", "restart-replicas@steady"), 2, false},
		{parse("kill-replica@rollout", "restart-replicas@steady"), 3, true},
	} {
		if err := CheckReplicas(test.faults, test.replicas); (err == nil) != test.ok {
			t.Errorf("%v with %d replicas: %v", test.faults, test.replicas, err)
		}
	}
}

// Only replicas that serve are compared, and chance would leave none of many without any.
func TestBalance(t *testing.T) {
	if got := Balance(map[string]*record.FaultReplica{"a": {After: 5, Serves: true}, "b": {After: 0}}); got != nil {
		t.Errorf("one that serves is balanced: %+v", got)
	}
	got := Balance(map[string]*record.FaultReplica{"a": {After: 60, Serves: true}, "b": {After: 40, Serves: true}, "gone": {}})
	if got == nil || got.Replicas != 2 || got.Streams != 100 || got.Most != 60 || got.Probability > 0.05 {
		t.Errorf("60 and 40 are %+v", got)
	}
}

func TestDue(t *testing.T) {
	for _, test := range []struct{ i, n, pods, want int }{
		{0, 1, 200, 100}, {0, 1, 1, 1}, {0, 3, 100, 25}, {1, 3, 100, 50}, {2, 3, 100, 75}, {0, 9, 2, 1},
	} {
		if got := due(test.i, test.n, test.pods); got != test.want {
			t.Errorf("fault %d of %d with %d pods is due at %d, want %d", test.i, test.n, test.pods, got, test.want)
		}
	}
}
