package attach

import (
	"testing"

	"scaler.mesh/scaler/pkg/scenario"
)

// TestNewPlace checks what a scenario's place becomes, and that two runs in a cluster differ in their
// labels.
func TestNewPlace(t *testing.T) {
	asked := scenario.Place{Context: "staging", Kubeconfig: "k", Namespace: "istio", Revision: "a", Address: "h:1", Metrics: "h:2"}
	one, err := NewPlace(asked)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewPlace(asked)
	if err != nil {
		t.Fatal(err)
	}
	if one.Label("a") == other.Label("a") || one.Target != other.Target {
		t.Errorf("%+v and %+v: want two labels of one target", one, other)
	}
	got := scenario.Place{Context: one.Target.Context, Kubeconfig: one.Target.Kubeconfig, Namespace: one.Target.Namespace, Revision: one.Target.Revision, Address: one.Target.Address, Metrics: one.Target.Metrics}
	if got != asked {
		t.Errorf("the target is %+v, want %+v", got, asked)
	}
	if got, want := one.Stays("a-1"), "'scaler cleanup --run a-1 --context staging --kubeconfig k' deletes what is left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for want, p := range map[string]scenario.Place{
		`place.address: got "h", want HOST:PORT, as in 127.0.0.1:15010`:   {Context: "c", Address: "h"},
		`place.metrics: got "h:0", want HOST:PORT, as in 127.0.0.1:15010`: {Context: "c", Address: "h:1", Metrics: "h:0"},
	} {
		if _, err := NewPlace(p); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
