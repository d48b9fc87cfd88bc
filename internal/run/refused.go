package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
)

// Times between two looks for refused pods.
const (
	firstLook = time.Second
	lastLook  = 10 * time.Second
)

// checkObjects ends a run if objects of its captured mesh are refused, by their definitions or the control plane's webhook, and names them
// all: else the first one would end it in the rollout. In an existing cluster a run has no rights outside of its own namespaces, which are not
// there yet.
func (r *run) checkObjects(ctx context.Context) error {
	if r.spec.Captured == nil || r.spec.Existing != nil {
		return nil
	}
	objects := r.applier.Objects
	answers, err := r.applier.Try(ctx, objects)
	if err != nil {
		return err
	}
	var refused []string
	for i, answer := range answers {
		o := objects[i]
		taken := o.GetNamespace() == "" && apierrors.IsAlreadyExists(answer) // by the control plane
		if final(answer) || taken || meta.IsNoMatchError(answer) {
			identity := capture.Identity(o.GetKind(), o.GetNamespace(), o.GetName())
			if place := r.spec.Captured.Mesh.Place(identity); place != "" {
				identity = place + ": " + identity
			}
			refused = append(refused, fmt.Sprintf("%s: %v", identity, answer))
		}
	}
	if refused == nil {
		return nil
	}
	return fmt.Errorf("%s of the mesh refused by the API server: %s", output.Many(len(refused), "object"), output.FirstOf(refused, mostRefused))
}

// mostRefused is the number of refused objects that an error names.
const mostRefused = 20

// refusals ends a run whose pods are refused: by a quota, a webhook or other admission. Nobody
// watches Deployments for it: a watch would be part of what is measured. They are listed when pods
// of one have not come for a moment, and less often as long as that goes on.
type refusals struct {
	client  kubernetes.Interface
	run     string                             // value of the run label
	short   func(since time.Duration) []string // names of the services that have had too few pods for so long
	moment  time.Duration                      // how long that is
	outside map[string]bool                    // services without sidecars, whose pods are not watched
	whole   map[string]bool                    // those of them that had all their pods
}

func (r *run) newRefusals() *refusals {
	return &refusals{
		client: r.api.Client, run: r.runLabel(), short: r.fleet.Pods.Short, moment: r.spec.slowed(firstLook),
		outside: outsideOf(r.mesh.Services), whole: map[string]bool{},
	}
}

// outsideOf returns the names of the services without sidecars.
func outsideOf(services []topology.Service) map[string]bool {
	outside := map[string]bool{}
	for _, s := range services {
		outside[s.Name] = s.Outside
	}
	return outside
}

// Run looks until ctx ends. Its error is the first refusal.
func (r *refusals) Run(ctx context.Context) error {
	for interval := r.moment; ; {
		if task.WaitUntil(ctx, time.Now().Add(interval)) != nil {
			return nil
		}
		if !r.wanting() {
			interval = r.moment
			continue
		}
		if err := r.look(ctx); err != nil {
			return err
		}
		interval = min(2*interval, lastLook)
	}
}

// wanting reports whether pods are late.
func (r *refusals) wanting() bool {
	for _, service := range r.short(r.moment) {
		if !r.whole[service] {
			return true
		}
	}
	return false
}

// look returns the first refusal. An API server that does not answer is no refusal.
func (r *refusals) look(ctx context.Context) error {
	all, err := r.client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: kwok.RunLabel + "=" + r.run, ResourceVersion: "0", // from the API server's memory
	})
	if err != nil {
		return nil
	}
	for i := range all.Items {
		d := &all.Items[i]
		if service := d.Labels[kwok.ServiceLabel]; r.outside[service] && d.Spec.Replicas != nil && d.Status.Replicas >= *d.Spec.Replicas {
			r.whole[service] = true
		}
		if !failing(d) {
			continue
		}
		if err := r.refusal(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// failing reports whether pods of a Deployment could not be made.
func failing(d *appsv1.Deployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// refusal returns why a pod of a Deployment is refused; nil if it is not, or what refuses it may pass, as
// a webhook that is not reached. The Deployment has the reason only as a text, so a pod is created as a
// dry run, whose answer has a code.
func (r *refusals) refusal(ctx context.Context, d *appsv1.Deployment) error {
	template := d.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.GenerateName = d.Name + "-"
	_, err := r.client.CoreV1().Pods(d.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !final(err) {
		return nil
	}
	// The account of a new namespace is made a moment later.
	account := cmp.Or(pod.Spec.ServiceAccountName, "default")
	if _, missing := r.client.CoreV1().ServiceAccounts(d.Namespace).Get(ctx, account, metav1.GetOptions{}); missing != nil {
		return nil
	}
	return fmt.Errorf("Deployment %s/%s: its pods are refused: %w", d.Namespace, d.Name, err)
}

// final reports whether an error is an answer that another try does not change.
func final(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	switch code := status.ErrStatus.Code; code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}
