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

// deletion removes the objects of a run when its steps are taken back: after the
// last figure was read, while control plane and cluster still run.
type deletion struct {
	env     environment.Environment
	run     string      // value of the run label
	kept    func() bool // the run leaves everything as it is
	journal *experiment.Journal
	say     func(string)
}

// undo deletes everything that carries the run's label. A run that is kept keeps
// its objects. An API server that does not run any more has nothing to delete, and
// what could not be deleted is no failure of the run: its figures were read before,
// and the cluster is removed next.
func (d deletion) undo(ctx context.Context) error {
	if d.kept() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deleteTimeout, fmt.Errorf("not done after %v", deleteTimeout))
	defer cancel()
	begin := time.Now()
	deleted, err := d.env.Delete(ctx, d.run)
	if errors.Is(err, environment.ErrNoAPIServer) {
		return nil
	}
	event := record.ObjectsDeleted{Deleted: deleted.Total(), Seconds: time.Since(begin).Seconds()}
	if err != nil {
		event.Error = experiment.FirstLine(err)
		d.say(event.Error + "; the rest goes with the cluster")
	}
	d.journal.Event(event)
	return nil
}
