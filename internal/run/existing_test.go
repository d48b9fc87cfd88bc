package run

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// The record in the folder has the label of what a run makes in a cluster before it makes anything:
// a killed run is cleaned up by it.
func TestLabelIsSaved(t *testing.T) {
	folder, err := record.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	s := DefaultSpec()
	writer, err := folder.Create(s.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	e := &Existing{
		Place: attach.Place{Target: attach.Target{Address: "127.0.0.1:1"}, ID: "3f9a1c"},
		found: &Found{Found: &attach.Found{Cluster: &existing.Cluster{Context: "staging"}}},
	}
	s.Existing = e
	attached := errors.New("attached")
	r := &run{spec: s, journal: journal.New(newRecord(s), writer, func(err error) { t.Error(err) })}
	r.driver.Installed = &controlplane.Installed{Attach: func(context.Context, controlplane.AttachOptions) (*controlplane.ControlPlane, error) {
		runs, err := record.Read(writer.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if there := runs[0].Environment.Existing; there == nil || there.Run != s.Name()+"-3f9a1c" {
			t.Errorf("the record in the folder has %+v", there)
		}
		return nil, attached
	}}
	if _, _, err := e.startControlPlane(t.Context(), r); !errors.Is(err, attached) {
		t.Errorf("%v, want %v", err, attached)
	}
}

// Faults and changes in an existing cluster are of what the run made alone.
func TestOwnObjects(t *testing.T) {
	for want, change := range map[string]func(*scenario.Load){
		"": func(l *scenario.Load) {
			l.Churn = 1
			l.Changes = scenario.Changes{PerSecond: 2, Kind: scenario.RouteChange}
			l.Faults = []scenario.Fault{
				{Kind: scenario.ResetStreams, Share: 1, Phase: scenario.PhaseSteady}, {Kind: scenario.RollingRestart, Phase: scenario.PhaseSteady},
			}
		},
		`load.faults: got "kill-control-plane@steady", want reset-streams or rolling-restart with place.context`: func(l *scenario.Load) {
			l.Faults = []scenario.Fault{{Kind: scenario.KillControlPlane, Phase: scenario.PhaseSteady}}
		},
		`load.faults: got "pause-scaler:1s@steady", want reset-streams or rolling-restart with place.context`: func(l *scenario.Load) {
			l.Faults = []scenario.Fault{{Kind: scenario.PauseScaler, Time: time.Second, Phase: scenario.PhaseSteady}}
		},
		`load.changes: got "2/s:meshwide", want another kind with place.context`: func(l *scenario.Load) {
			l.Changes = scenario.Changes{PerSecond: 2, Kind: scenario.MeshWideChange}
		},
		`load.changes: got "2/s:endpoint", want another kind with place.context, as in 2/s:route`: func(l *scenario.Load) {
			l.Changes = scenario.Changes{PerSecond: 2, Kind: scenario.EndpointChange}
		},
	} {
		s := DefaultSpec()
		s.Existing = &Existing{Place: attach.Place{ID: "3f9a1c"}}
		change(&s.Load)
		if err := s.checkExisting(drivers.Default()); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A captured mesh has names of the run in an existing cluster, and the control plane there stays as it is.
func TestPlaced(t *testing.T) {
	file := installedMesh(t, `version: 1.29.1, replicas: 3, limits: {cpu: "2", memory: 2Gi}, env: [{name: PILOT_PUSH_THROTTLE, value: "50"}]`)
	d := scenario.New(scenario.Default())
	for _, field := range [][2]string{{"mesh.file", file}, {"place.context", "staging"}, {"mesh.sidecars.real", "1"}} {
		if err := d.Set(field[0], field[1], ""); err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(Spec{}, d)
	if err != nil {
		t.Fatal(err)
	}
	s.Existing.ID = "3f9a1c"
	if c := s.ControlPlane; c.Version != "" || c.Replicas != scenario.Default().ControlPlane.Replicas || len(c.Env) > 0 {
		t.Errorf("the control plane is %+v, want none of the file", c)
	}
	if err := s.checkExisting(drivers.Default()); err == nil || !strings.HasPrefix(err.Error(), "mesh.sidecars.real: got 1, want none with place.context, if the mesh is captured") {
		t.Errorf("with real sidecars: %v", err)
	}
	s.Mesh.Sidecars.Real = 0
	if err := s.checkExisting(drivers.Default()); err != nil {
		t.Error(err)
	}
	placed, err := s.placed()
	if err != nil {
		t.Fatal(err)
	}
	mesh := placed.placedMesh()
	if len(mesh.Namespaces) == 0 || mesh.Sidecars() != s.Pods() {
		t.Errorf("%d sidecars in namespaces %v, want %d", mesh.Sidecars(), mesh.Namespaces, s.Pods())
	}
	for _, name := range mesh.Namespaces {
		if !strings.HasPrefix(name, "mesh-3f9a1c-") {
			t.Errorf("namespace %s is not of the run", name)
		}
	}
	if all := placed.notReproduced(); len(all) == 0 || all[0].What != "control plane" {
		t.Errorf("not reproduced: %v, want the control plane first", all)
	}
	if strings.HasPrefix(s.Captured.Mesh.Namespaces[0].Name, "mesh-") || s.Captured.Mesh.ControlPlane == nil {
		t.Error("the mesh of the file was changed")
	}
	s.Existing = nil
	if same, err := s.placed(); err != nil || same.Captured != s.Captured {
		t.Errorf("without an existing cluster: %v, %v", same.Captured, err)
	}
	if err := d.Set("controlPlane.configuration", scenario.CapturedConfiguration, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Spec{}, d); err == nil || !strings.Contains(err.Error(), "none with place.context") {
		t.Errorf("with the captured configuration: %v", err)
	}
}
