package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/measure/clusterprometheus"
	"scaler.mesh/scaler/internal/observe"
)

// Bounds of the time between two readings of the control plane's metrics.
const (
	leastObserved = time.Minute
	mostObserved  = time.Hour
)

// observation reads the metrics of the pods of a control plane twice, for clusters without a Prometheus.
type observation struct {
	client kubernetes.Interface
	ask    func(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error)
	wait   func(ctx context.Context, until time.Time) error // as task.WaitUntil
	now    func() time.Time
	say    func(string)
}

// checkObserved checks the length of an observation with the flags that it does not go with.
func checkObserved(f *pflag.FlagSet, length time.Duration, files, prometheus bool) error {
	switch {
	case !f.Changed("observe"):
		return nil
	case files:
		return usagef("--observe: got %s, want none with files, which are captured in place of a cluster", length)
	case prometheus:
		return usagef("--observe: got %s, want none with --prometheus, which has the last days", length)
	case length < leastObserved || length > mostObserved:
		return usagef("--observe: got %s, want %s to %s", length, leastObserved, mostObserved)
	}
	return nil
}

// history adds to each revision of a mesh one value of each figure: of the time between two readings. What is not
// known is listed as missing, without an error.
func (o observation) history(ctx context.Context, length time.Duration, mesh *capture.Mesh) error {
	c := mesh.ControlPlane
	if c == nil {
		return usagef("--observe: want a cluster with a control plane, whose metrics are read: none was found")
	}
	before, err := o.readAll(ctx, c.Revisions)
	if err != nil {
		return err
	}
	begin := o.now()
	if slices.ContainsFunc(before, func(r readings) bool { return r.err == nil }) {
		o.say(fmt.Sprintf("the metrics of the control plane are read again in %s", length))
		if err := o.wait(ctx, begin.Add(length)); err != nil {
			return err
		}
	}
	after, err := o.readAll(ctx, c.Revisions)
	if err != nil {
		return err
	}
	for i := range c.Revisions {
		c.Revisions[i].History = between(begin, o.now(), before[i], after[i])
	}
	return nil
}

// readings are the readings of all ready pods of a revision, by their names.
type readings struct {
	all map[string]clusterprometheus.Reading
	err error // why they are not known; nil = they are
}

// between converts two readings into the history of a revision.
func between(begin, end time.Time, before, after readings) *capture.History {
	from, to, all, err := clusterprometheus.Between(before.all, after.all)
	if err = cmp.Or(before.err, after.err, err); err != nil {
		return unknownHistory(begin, end, end.Sub(begin).Round(time.Second), err)
	}
	length := to.Sub(from).Round(time.Second)
	from = from.Truncate(time.Second)
	return historyOf(from, from.Add(length), length, all)
}

// readAll reads the metrics of all revisions. The error is that of ctx.
func (o observation) readAll(ctx context.Context, revisions []capture.Revision) (all []readings, err error) {
	for i := range revisions {
		var r readings
		r.all, r.err = o.read(ctx, &revisions[i])
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if r.err == nil && len(r.all) == 0 {
			r.err = errors.New("none of its pods is ready")
		}
		all = append(all, r)
	}
	return all, nil
}

// read reads the metrics of all ready pods of a revision.
func (o observation) read(ctx context.Context, r *capture.Revision) (map[string]clusterprometheus.Reading, error) {
	pods, err := o.client.CoreV1().Pods(r.Home()).List(ctx, metav1.ListOptions{LabelSelector: "app=istiod"})
	if err != nil {
		return nil, fmt.Errorf("listing its pods: %w", err)
	}
	all := map[string]clusterprometheus.Reading{}
	for i := range pods.Items {
		p := &pods.Items[i]
		if !r.Has(p.Labels) || !observe.Ready(p) || p.DeletionTimestamp != nil {
			continue
		}
		text, err := o.ask(ctx, p.Namespace, p.Name, capture.MonitoringPort, "/metrics")
		if err != nil {
			return nil, fmt.Errorf("asking pod %s: %w", p.Name, err)
		}
		if all[p.Name], err = clusterprometheus.Read(o.now(), text); err != nil {
			return nil, fmt.Errorf("pod %s: %w", p.Name, err)
		}
	}
	return all, nil
}
