package record

import "testing"

func TestBiases(t *testing.T) {
	run := Run{ControlPlane: &ByPhase[*Usage]{Rollout: &Usage{Saturation: new(0.5)}}, Cluster: map[string]ByPhase[*Usage]{"etcd": {Rollout: &Usage{Saturation: new(0.4)}}}}
	directions := map[string]Direction{}
	for _, b := range run.Biases(NewWarning(Warning{About: "controlPlane.rollout", Reason: ReasonSaturated})) {
		directions[b.Path] = b.Direction
	}
	for path, want := range map[string]Direction{
		"phases.rollout": TooHigh, "latencies.completeConfiguration": TooHigh, "own.rollout": EitherWay,
		"controlPlane.rollout.cores": TooLow, "controlPlane.rollout.cpuSeconds": EitherWay, "cluster.etcd.rollout.cores": TooLow,
		"xds.responses": TooLow, "xds.bytes": TooLow, "certificates.perSecond": TooLow,
	} {
		if got := directions[path]; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	// Where only the cluster waits, the control plane merges nothing.
	for _, b := range run.Biases(NewWarning(Warning{About: "cluster.etcd.rollout", Reason: ReasonSaturated, Component: "etcd"})) {
		if Within(b.Path, "xds") {
			t.Errorf("%s is biased by the cluster", b.Path)
		}
	}
	if got := run.Biases(Warning{About: "latencies", Reason: ReasonLateInstrument}); got != nil {
		t.Errorf("of another reason: %v", got)
	}
}
