package compare

import (
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

func TestProgramSource(t *testing.T) {
	r := record.Run{Environment: record.Environment{
		ControlPlane: record.ControlPlaneSource{Program: "b"},
		Programs:     map[string]record.Program{"etcd": {Source: "build", Digest: "a"}, "plane": {Source: "image", Digest: "b"}},
	}}
	if got := programSource(&r); got != "image" {
		t.Errorf("%q, want that of the control plane's program", got)
	}
	r.Environment.ControlPlane.Program = "c"
	if got := programSource(&r); got != "" {
		t.Errorf("%q of an unknown program", got)
	}
}
