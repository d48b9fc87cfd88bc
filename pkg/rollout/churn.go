package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/workload"
)

const (
	// deleting is how many pods are being deleted at once, at most: a cluster
	// that cannot do more is not asked to.
	deleting = 64
	// lateChurn is the share of the offered rate below which the achieved one is
	// a doubt.
	lateChurn = 0.95
)

// churn replaces pods at the rate asked for, for as long as steady was, then
// waits until the mesh has converged again. Only the first is the phase: what
// comes after has no rate.
func (r *rolloutRun) churn(ctx context.Context) (experiment.Undo, error) {
	if r.spec.Churn == 0 {
		return nil, nil
	}
	around := r.fleet.setApart(newLatencies())
	section := &record.Churn{OfferedPerSecond: new(float64(r.spec.Churn))}
	r.mu.Lock()
	r.record.Churn = section
	r.mu.Unlock()

	begin, before, deleted := time.Now(), r.fleet.exchange(), 0
	err := r.window(ctx, record.PhaseChurn, r.spec.Steady, func(ctx context.Context) (record.EndedBy, error) {
		var err error
		if deleted, err = r.replacePods(ctx, begin); err != nil {
			return "", err
		}
		return record.EndedByDuration, nil
	})
	over, after := time.Now(), r.fleet.exchange()
	achieved := float64(deleted) / over.Sub(begin).Seconds()
	if err == nil {
		limited, cancel := context.WithTimeoutCause(ctx, r.spec.ConvergeTimeout, experiment.ErrUnconverged)
		err = r.fleet.awaitConverged(limited)
		cancel()
	}
	replaced, _ := r.fleet.closeApart(around)
	r.mu.Lock()
	section.AchievedPerSecond, section.Replaced = &achieved, &replaced
	section.Attempts, section.Refusals = new(after.attempts-before.attempts), new(after.refusals-before.refusals)
	if err == nil {
		section.Seconds = new(time.Since(over).Seconds())
	}
	r.mu.Unlock()
	if err == nil && achieved < lateChurn*float64(r.spec.Churn) {
		r.warn(record.Warning{About: "churn.achievedPerSecond", Reason: record.ReasonSlowChurn, Values: map[string]float64{
			"achievedPerSecond": achieved, "offeredPerSecond": float64(r.spec.Churn),
		}})
	}
	if errors.Is(err, experiment.ErrUnconverged) {
		r.warn(record.Warning{About: "churn", Reason: record.ReasonNotConvergedAgain, Values: map[string]float64{"limitSeconds": r.spec.ConvergeTimeout.Seconds()}})
		r.explain("churn")
	}
	return nil, errors.Join(err, around.latencies.save(r.writer, "churn.", &section.Latencies), r.save())
}

// replacePods deletes pods, each when it is due, for as long as steady was, and
// returns how many it deleted. Their Deployments make others.
func (r *rolloutRun) replacePods(ctx context.Context, begin time.Time) (deleted int, err error) {
	requests, during := errgroup.WithContext(ctx)
	requests.SetLimit(deleting)
	for n := 0; r.spec.Churn.Due(n) < r.spec.Steady && during.Err() == nil; n++ {
		if experiment.WaitUntil(during, begin.Add(r.spec.Churn.Due(n))) != nil {
			break
		}
		p := r.fleet.oldest()
		if p == nil {
			continue // its turn is missed
		}
		deleted++
		requests.Go(func() error {
			err := workload.Persist(during, func(ctx context.Context, _ int) error {
				return r.Client.CoreV1().Pods(p.namespace).Delete(ctx, p.name, metav1.DeleteOptions{})
			})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("deleting pod %s: %w", p.id, err)
			}
			return nil
		})
	}
	if err := requests.Wait(); err != nil {
		return deleted, err
	}
	return deleted, experiment.WaitUntil(ctx, begin.Add(r.spec.Steady))
}

// oldest is the ready pod that was seen first of those not chosen yet, nil if
// there is none.
func (f *fleet) oldest() *pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	var oldest *pod
	for _, p := range f.pods {
		if p.ready && !p.gone && !p.chosen && (oldest == nil || p.order < oldest.order) {
			oldest = p
		}
	}
	if oldest != nil {
		oldest.chosen = true
	}
	return oldest
}
