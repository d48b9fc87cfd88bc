package place

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// DeletionTime bounds the deletion of a run's objects at its end: what is left
// then goes with the cluster. It is the Reserve of a step that is undone by a Deletion.
const DeletionTime = 20 * time.Second

// Deletion deletes the objects of a run at its end: after the last figure was read,
// while control plane and cluster still run.
type Deletion struct {
	// Env has the objects: an environment, or an existing cluster.
	Env interface {
		Delete(ctx context.Context, run string) (Deleted, error)
	}
	Run   string             // value of the run label
	Kept  func() bool        // reports that the run keeps its objects; nil = it never does
	Event func(record.Event) // takes the ObjectsDeleted; nil = nobody records it
	Say   func(string)       // takes a line about what could not be deleted; nil = silent
	// Stays says how to delete what is left, in a cluster that stays; "" = the cluster goes
	// with the run.
	Stays string
}

// StayingDeletionTime is DeletionTime in a cluster that stays: namespaces are waited for.
const StayingDeletionTime = 40 * time.Second

// Undo deletes everything that carries the run's label. A run that is kept keeps
// its objects. An API server that does not run any more has nothing to delete, and
// what could not be deleted is no failure of the run: its figures were read before,
// and the cluster is removed next. Only where the cluster stays is it an error.
func (d Deletion) Undo(ctx context.Context) error {
	if d.Kept != nil && d.Kept() {
		return nil
	}
	limit := DeletionTime
	if d.Stays != "" {
		limit = StayingDeletionTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %v", limit))
	defer cancel()
	begin := time.Now()
	deleted, err := d.Env.Delete(ctx, d.Run)
	if errors.Is(err, ErrNoAPIServer) {
		return nil
	}
	event := record.ObjectsDeleted{Deleted: deleted.Total(), Seconds: time.Since(begin).Seconds()}
	if err != nil {
		event.Error = output.FirstLine(err)
		if d.Say != nil && d.Stays == "" {
			d.Say(event.Error + "; the rest goes with the cluster")
		}
	}
	if d.Event != nil {
		d.Event(event)
	}
	if err != nil && d.Stays != "" {
		return fmt.Errorf("%w; %s", err, d.Stays)
	}
	return nil
}
