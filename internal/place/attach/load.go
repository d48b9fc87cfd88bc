package attach

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/place/guard"
)

// loadWindow is the time over which the control plane's cores are measured before a run.
const loadWindow = 5 * time.Second

// Load measures what a subject of a condition is in a cluster before a run makes anything there. instances are the
// programs of its control plane.
func Load(client kubernetes.Interface, instances []controlplane.Instance) func(context.Context, guard.Subject) (float64, error) {
	return func(ctx context.Context, s guard.Subject) (float64, error) {
		switch s {
		case guard.APIServerP99:
			p99, err := guard.Probe(ctx, func(ctx context.Context) error {
				_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
				return err
			})
			return p99.Seconds(), err
		case guard.PendingPods:
			n, err := existing.PendingPods(ctx, client)
			return float64(n), err
		default:
			return coresOf(ctx, instances, loadWindow)
		}
	}
}

// coresOf returns the cores that the programs of a control plane use together for a time.
func coresOf(ctx context.Context, instances []controlplane.Instance, length time.Duration) (float64, error) {
	if len(instances) == 0 {
		return 0, errors.New("its cores are not known: want place.metrics with place.address, where the cluster has no pods of it")
	}
	read := func() ([]measure.Reading, error) {
		var all []measure.Reading
		for _, one := range instances {
			reading, err := one.Usage.Read()
			if err != nil {
				return nil, err
			}
			all = append(all, reading)
		}
		return all, nil
	}
	before, err := read()
	if err != nil {
		return 0, err
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	after, err := read()
	if err != nil {
		return 0, err
	}
	cores := 0.0
	for i := range before {
		cores += (after[i].CPU - before[i].CPU).Seconds() / after[i].At.Sub(before[i].At).Seconds()
	}
	return cores, nil
}
