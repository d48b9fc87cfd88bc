package nightly

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/credentialfile"
	"scaler.mesh/scaler/pkg/record"
)

const (
	// FileName is the file of a Night in its folder.
	FileName = "nightly.json"
	// Kind is a Night's kind, with record.APIVersion.
	Kind = "Night"
)

// Night is one, as far as it came. Next to its file are the records of its runs, report.html,
// report.md, plan.json and plan.md.
type Night struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Server     string `json:"server"` // URL of the cluster's API server
	// Status is interrupted until the end of the night is known. Completed is one of which all runs converged
	// and a plan was made.
	Status   record.Status `json:"status"`
	Started  time.Time     `json:"started"`
	Finished *time.Time    `json:"finished,omitempty"` // absent while it runs and when it was killed
	PlanPods int           `json:"planPods"`           // of the mesh that is planned for
	Runs     []Done        `json:"runs"`               // in the order in which they were done
	// Met is whether the plan meets what was asked of it; absent where there is no plan.
	Met *bool `json:"met,omitempty"`
	// WithoutPlan is why there is no plan; "" where there is one, and where nothing was measured.
	WithoutPlan string `json:"withoutPlan,omitempty"`
	// Left are runs of earlier nights that may have left something in the cluster: deleting it failed.
	Left []Left `json:"left,omitempty"`
	// Removed are those of its own runs, by the value of their label, whose objects a later night deleted.
	Removed []string `json:"removed,omitempty"`

	// Dir is the folder of the night.
	Dir string `json:"-"`

	runs    []record.Run
	plan    *capacity.Plan
	planErr error
	missed  bool
}

// Done is a run of a night.
type Done struct {
	Name   string        `json:"name"`             // of its folder, in that of the night
	Status record.Status `json:"status,omitempty"` // absent where it did not begin
	Error  string        `json:"error,omitempty"`
}

// Left is a run that may have left something in the cluster.
type Left struct {
	Run   string `json:"run"`   // value of its label
	Night string `json:"night"` // name of its night's folder
	Error string `json:"error"` // of deleting it
}

// Missed reports whether a run did not converge and nothing worse happened.
func (n *Night) Missed() bool { return n.missed }

// read reads the night of a folder.
func read(dir string) (*Night, error) {
	text, err := credentialfile.Read(filepath.Join(dir, FileName))
	if err != nil {
		return nil, err
	}
	n := &Night{Dir: dir}
	if err := json.Unmarshal(text, n); err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, FileName), err)
	}
	if n.APIVersion != record.APIVersion || n.Kind != Kind {
		return nil, fmt.Errorf("reading %s: kind %q of %q: want %s of %s", filepath.Join(dir, FileName), n.Kind, n.APIVersion, Kind, record.APIVersion)
	}
	return n, nil
}

func (n *Night) save() error { return record.SaveResult(filepath.Join(n.Dir, FileName), n) }

// Print writes what was measured and the plan for reading.
func (n *Night) Print(w io.Writer) error {
	if len(n.runs) == 0 {
		return nil
	}
	err := report.Print(w, "table", n.runs)
	if n.plan == nil {
		return err
	}
	_, lineErr := io.WriteString(w, "\n")
	return errors.Join(err, lineErr, capacity.Print(w, "table", n.plan))
}
