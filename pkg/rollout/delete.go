package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scaler.mesh/scaler/pkg/environment"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
)

// deleteTimeout bounds the deletion of a run's objects at its end: what is left
// then goes with the cluster.
const deleteTimeout = 20 * time.Second

// deleteAtEnd has the run's objects deleted when the steps are taken back: after
// the last figure was read, while control plane and cluster still run.
func (r *run) deleteAtEnd(context.Context) (experiment.Undo, error) {
	return r.deleteObjects, nil
}

// deleteObjects deletes everything that carries the run's label. A run that is
// kept keeps its objects. An API server that does not run any more has nothing to
// delete, and what could not be deleted is no failure of the run: its figures
// were read before, and the cluster is removed next.
func (r *run) deleteObjects(ctx context.Context) error {
	if r.spec.Keep && r.completed {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deleteTimeout, fmt.Errorf("not done after %v", deleteTimeout))
	defer cancel()
	begin := time.Now()
	deleted, err := r.env.Delete(ctx, r.runLabel())
	if errors.Is(err, environment.ErrNoAPIServer) {
		return nil
	}
	event := record.ObjectsDeleted{Deleted: deleted.Total(), Seconds: time.Since(begin).Seconds()}
	if err != nil {
		event.Error = experiment.FirstLine(err)
		r.progress.say(event.Error + "; the rest goes with the cluster")
	}
	r.journal.Event(event)
	return nil
}
