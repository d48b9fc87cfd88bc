package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// restartedAt is the annotation of a pod template by which `kubectl rollout
// restart` makes a Deployment replace its pods.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// RestartPatch returns the strategic merge patch of a Deployment or a DaemonSet by which it replaces its pods by ones that have these
// labels and annotations in addition to those of its template.
func RestartPatch(podLabels, podAnnotations map[string]string, at time.Time) ([]byte, error) {
	annotations := map[string]string{restartedAt: at.UTC().Format(time.RFC3339Nano)}
	maps.Copy(annotations, podAnnotations)
	metadata := map[string]any{"annotations": annotations}
	if len(podLabels) > 0 {
		metadata["labels"] = podLabels
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": metadata}}})
	if err != nil {
		return nil, fmt.Errorf("restarting pods: %w", err)
	}
	return patch, nil
}

// Restart replaces the pods of every Deployment in a rolling update, as `kubectl rollout
// restart` does. Deployments that were not created yet are left out.
func (a *Applier) Restart(ctx context.Context, at time.Time) error {
	a.mu.Lock()
	services := slices.Collect(maps.Keys(a.scaled))
	a.mu.Unlock()
	return a.Move(ctx, services, nil, at)
}

// Move replaces the pods of these services' Deployments, given by their indices, in a
// rolling update. The new pods have these labels in addition to the existing ones.
// Deployments that were not created yet are left out.
func (a *Applier) Move(ctx context.Context, services []int, podLabels map[string]string, at time.Time) error {
	patch, err := RestartPatch(podLabels, nil, at)
	if err != nil {
		return err
	}
	return a.each(ctx, len(services), func(ctx context.Context, i int) error {
		s := a.Mesh.Services[services[i]]
		return Persist(ctx, func(ctx context.Context, _ int) error {
			_, err := a.Client.AppsV1().Deployments(s.Namespace).Patch(ctx, s.Object(), types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) { // its creation is on the way
				return fmt.Errorf("restarting deployment %s: %w", s.Object(), err)
			}
			return nil
		})
	})
}
