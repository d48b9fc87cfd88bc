package existing

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/kwok"
)

// lookAgain is the time between two looks at the pods that end.
const lookAgain = 200 * time.Millisecond

// realTime is the time that pods on real nodes have to end: their grace period, and what a kubelet and the
// API server need for it. It leaves time for the rest of the run's objects.
const realTime = 20 * time.Second

// deleteReal deletes what a run has on real nodes, Deployments and pods of their own, and returns when its pods are gone: a kubelet removes the object of a
// pod when its containers have ended. One that cannot be reached never does: after realTime that is an error.
func (c *Cluster) deleteReal(ctx context.Context, run string) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, realTime, fmt.Errorf("they have not ended after %v: is their node reachable", realTime))
	defer cancel()
	ofRun := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: map[string]string{kwok.RunLabel: run, kwok.RealLabel: "true"}})}
	deployments, err := client.AppsV1().Deployments("").List(ctx, ofRun)
	if err != nil {
		return fmt.Errorf("listing Deployments: %w", err)
	}
	for _, d := range deployments.Items {
		opts := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
		if err := client.AppsV1().Deployments(d.Namespace).Delete(ctx, d.Name, opts); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting Deployment %s/%s: %w", d.Namespace, d.Name, err)
		}
	}
	for {
		pods, err := client.CoreV1().Pods("").List(ctx, ofRun)
		if err != nil {
			return fmt.Errorf("listing pods: %w", err)
		}
		if len(pods.Items) == 0 {
			return nil
		}
		for _, p := range pods.Items {
			if p.DeletionTimestamp != nil || metav1.GetControllerOf(&p) != nil { // it goes with its owner
				continue
			}
			opts := metav1.DeleteOptions{}
			if neverStarted(&p) {
				opts.GracePeriodSeconds = new(int64(0))
			}
			if err := client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, opts); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("deleting pod %s/%s: %w", p.Namespace, p.Name, err)
			}
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return fmt.Errorf("%w; %d pods are left", context.Cause(ctx), len(pods.Items))
		}
	}
}

// neverStarted reports whether no container of a pod has run, as where an image is not there. Its kubelet may try to pull it for longer than
// a deletion is waited for.
func neverStarted(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodPending && !slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.State.Waiting == nil || c.LastTerminationState.Terminated != nil
	})
}
