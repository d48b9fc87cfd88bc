package nightly

import (
	"errors"
	"io"
	"path/filepath"
	"time"

	"scaler.mesh/scaler/pkg/capacity"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/report"
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

	// Dir is the folder of the night.
	Dir string `json:"-"`

	runs    []record.Run
	plan    *capacity.Plan
	planErr error
}

// Done is a run of a night.
type Done struct {
	Name   string        `json:"name"`             // of its folder, in that of the night
	Status record.Status `json:"status,omitempty"` // absent where it did not begin
	Error  string        `json:"error,omitempty"`
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
