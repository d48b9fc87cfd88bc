package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

const (
	// deleting bounds the deletions that are under way: a slow cluster gets no further
	// requests.
	deleting = 64
	// lateChurn is the share of the offered rate below which the achieved one is
	// a warning.
	lateChurn = 0.95
)

// churn executes the phase in which pods are replaced. Where changes are made at a rate, pods
// are replaced in that phase instead.
func (r *run) churn(ctx context.Context) error {
	if r.spec.Load.Churn == 0 || r.spec.Load.Changes.PerSecond > 0 {
		return nil
	}
	return r.newChurn(r.spec.likeRest(r.spec.Phases.Steady)).run(ctx)
}

// churn replaces pods.
type churn struct {
	rate     scenario.Rate
	length   time.Duration // for which pods are replaced
	timeout  time.Duration // for the mesh to converge again
	client   kubernetes.Interface
	journal  *journal.Journal
	fleet    *fleet.Fleet
	timeline *phases.Timeline

	// set by replace
	section       *record.Churn
	background    *fleet.Background
	begin, over   time.Time
	before, after xdsprobe.Counts
	deleted       int
}

// newChurn replaces pods for so long.
func (r *run) newChurn(length time.Duration) *churn {
	return &churn{
		rate: r.spec.Load.Churn, length: length, timeout: time.Duration(r.spec.Phases.ConvergeTimeout),
		client: r.api.Client, journal: r.journal, fleet: r.fleet, timeline: r.timeline,
	}
}

// run replaces pods at the configured rate, for as long as steady was, then waits
// until the mesh has converged again. Only the first is the phase: what comes after
// has no rate.
func (r *churn) run(ctx context.Context) error {
	err := r.timeline.Measure(ctx, record.PhaseChurn, r.length, func(ctx context.Context) (record.EndedBy, error) {
		if err := r.replace(ctx); err != nil {
			return "", err
		}
		return record.EndedByDuration, nil
	})
	if err == nil {
		limited, cancel := context.WithTimeoutCause(ctx, r.timeout, phases.ErrUnconverged)
		_, err = r.fleet.AwaitSettled(limited)
		cancel()
	}
	return errors.Join(err, r.finish(err))
}

// replace replaces pods until its time is over.
func (r *churn) replace(ctx context.Context) (err error) {
	r.background = r.fleet.Pods.Begin()
	r.section = &record.Churn{OfferedPerSecond: new(float64(r.rate))}
	r.journal.Update(func(run *record.Run) { run.Churn = r.section })
	r.begin, r.before = time.Now(), r.fleet.Workers.Counts()
	r.deleted, err = r.replacePods(ctx, r.begin)
	r.over, r.after = time.Now(), r.fleet.Workers.Counts()
	return err
}

// finish puts into the record what came of it, once the mesh is at rest again or, with
// an error, is not. Where nothing was begun it does nothing. By when it had recovered is known of convergence alone.
func (r *churn) finish(err error) error {
	if r.background == nil {
		return nil
	}
	achieved := float64(r.deleted) / r.over.Sub(r.begin).Seconds()
	replaced, _ := r.fleet.Pods.End(r.background)
	var latencies record.Latencies
	saveErr := r.background.Latencies.Save(r.journal, "churn.", &latencies)
	r.journal.Update(func(*record.Run) {
		s := r.section
		s.AchievedPerSecond, s.Replaced, s.Latencies = &achieved, &replaced, latencies
		s.Attempts, s.Refusals = new(r.after.Attempts-r.before.Attempts), new(r.after.Refusals-r.before.Refusals)
		if err == nil && r.fleet.Settled() == record.EndedByConverged {
			s.Seconds = new(time.Since(r.over).Seconds())
		}
	})
	if err == nil && achieved < lateChurn*float64(r.rate) {
		r.journal.Warn(record.Warning{About: "churn.achievedPerSecond", Reason: record.ReasonSlowChurn, Values: map[string]float64{
			"achievedPerSecond": achieved, "offeredPerSecond": float64(r.rate),
		}})
	}
	if errors.Is(err, phases.ErrUnconverged) {
		r.timeline.NotConvergedAgain("churn", "", r.timeout)
		r.timeline.Explain("churn")
	}
	if err == nil {
		r.timeline.Quiescent("churn", r.fleet.Settled())
	}
	return errors.Join(saveErr, r.journal.Save())
}

// replacePods deletes pods, each when it is due, for as long as its length is, and
// returns how many it deleted. Their Deployments make others.
func (r *churn) replacePods(ctx context.Context, begin time.Time) (deleted int, err error) {
	requests, during := errgroup.WithContext(ctx)
	requests.SetLimit(deleting)
	for n := 0; r.rate.Due(n) < r.length && during.Err() == nil; n++ {
		if task.WaitUntil(during, begin.Add(r.rate.Due(n))) != nil {
			break
		}
		p, ok := r.fleet.Pods.TakeOldest()
		if !ok {
			continue // its turn is missed
		}
		deleted++
		requests.Go(func() error {
			err := workload.Persist(during, func(ctx context.Context, _ int) error {
				return r.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
			})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("deleting pod %s: %w", p.ID, err)
			}
			return nil
		})
	}
	if err := requests.Wait(); err != nil {
		return deleted, err
	}
	return deleted, task.WaitUntil(ctx, begin.Add(r.length))
}
