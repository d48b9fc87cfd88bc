package run

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Each record's scenario is a file for -f, and a run of it has the same scenario in its record.
func TestRecordedScenarioReadsBack(t *testing.T) {
	captured := filepath.Join("..", "capture", "testdata", "mesh.yaml")
	for name, set := range map[string]map[string]string{
		"default":   {},
		"several":   {"mesh.pods": "200,400", "mesh.mode": "both", "repeats": "3"},
		"profile":   {"mesh.profile": "typical", "mesh.parts.zones": "0", "mesh.parts.gracePeriod": "30s"},
		"settings":  {"mesh.settings.scope": "declared"},
		"ambient":   {"mesh.dataplane": "ambient", "mesh.waypoints": "service"},
		"mixed":     {"mesh.dataplane": "mixed"},
		"load":      {"load.changes": "5/s:route", "load.churn": "2/s", "load.faults": "reset-streams:20%@steady", "load.arrival": "100/10s", "load.certificateStorm": "true"},
		"sidecars":  {"mesh.sidecars.startDelay": "uniform:1s-5s", "mesh.sidecars.certificateLifetime": "1m", "phases.cycle": "1m"},
		"resources": {"controlPlane.memory": "1Gi", "controlPlane.env": "A_SECRET=1", "instrument.dilation": "4"},
		"osm":       {"controlPlane.name": "osm"},
		"linkerd":   {"controlPlane.name": "linkerd"},
		"external":  {"controlPlane.name": "xds://localhost:1", "controlPlane.connection.plaintext": "true"},
		"upgrade":   {"controlPlane.upgrade.to": "1.31.0", "controlPlane.upgrade.canary": "50%,100%"},
		"in place":  {"controlPlane.upgrade.to": "1.31.0", "controlPlane.upgrade.inPlace": "true"},
		"existing":  {"place.context": "kind", "place.abortIf": "pending-pods>20"},
		"captured":  {"mesh.file": captured, "mesh.scale": "2"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := scenario.New(scenario.Default())
			for path, value := range set {
				if err := asked.Set(path, value, ""); err != nil {
					t.Fatal(err)
				}
			}
			first := recordOf(t, asked)
			text, err := json.Marshal(first.Scenario)
			if err != nil {
				t.Fatal(err)
			}
			again := scenario.New(scenario.Default())
			if err := again.Read("run.json", bytes.NewReader(text)); err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			if err := again.Check(again.Scenario.Command()); err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			second := recordOf(t, again)
			second.Started, second.Repeat = first.Started, first.Repeat
			second.Name = first.Name
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("the record of a run of a record's scenario (-first +second):\n%s", diff)
			}
			if name == "captured" {
				if m := first.Scenario.Mesh; m.File != captured || m.Scale.First() != 2 || m.Pods != nil || m.Services != 0 || first.PodCount() == 0 || first.ServiceCount() == 0 || first.NamespaceCount() == 0 {
					t.Errorf("the record of a captured mesh has %d pods, %d services, %d namespaces and asks for %s", first.PodCount(), first.ServiceCount(), first.NamespaceCount(), text)
				}
			}
			if again.Given("place.refuseIf") != (name == "existing") {
				t.Errorf("the conditions of an existing cluster:\n%s", text)
			}
		})
	}
}

// recordOf returns the record of the first run of a document.
func recordOf(t *testing.T, d *scenario.Document) record.Run {
	t.Helper()
	l, err := NewLadder(Spec{}, d)
	if err != nil {
		t.Fatal(err)
	}
	return newRecord(l.Runs()[0])
}
