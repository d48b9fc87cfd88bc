package run

import (
	"context"
	"errors"
	"testing"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/pkg/record"
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
