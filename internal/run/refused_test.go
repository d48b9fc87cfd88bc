package run

import (
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
)

// What the API server says of a pod decides whether its run ends.
func TestRefusal(t *testing.T) {
	labels := map[string]string{kwok.RunLabel: "one", kwok.ServiceLabel: "cart"}
	deployment := func(status corev1.ConditionStatus) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", Labels: labels},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "cart"}}},
			Status:     appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: status}}},
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}
	answer := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
	}
	for name, test := range map[string]struct {
		objects []runtime.Object
		answer  error
		want    string // in the error; "" = the run goes on
	}{
		"quota":           {[]runtime.Object{deployment(corev1.ConditionTrue), account}, answer(http.StatusForbidden, "exceeded quota: small"), "Deployment shop/cart: its pods are refused: exceeded quota: small"},
		"webhook":         {[]runtime.Object{deployment(corev1.ConditionTrue), account}, answer(http.StatusBadRequest, "denied the request: no"), "denied the request: no"},
		"not valid":       {[]runtime.Object{deployment(corev1.ConditionTrue), account}, answer(http.StatusUnprocessableEntity, "spec.containers: Required value"), "Required value"},
		"webhook is away": {[]runtime.Object{deployment(corev1.ConditionTrue), account}, answer(http.StatusInternalServerError, "failed calling webhook"), ""},
		"busy":            {[]runtime.Object{deployment(corev1.ConditionTrue), account}, answer(http.StatusTooManyRequests, "slow down"), ""},
		"no account yet":  {[]runtime.Object{deployment(corev1.ConditionTrue)}, answer(http.StatusForbidden, "serviceaccount not found"), ""},
		"passed":          {[]runtime.Object{deployment(corev1.ConditionTrue), account}, nil, ""},
		"no failure":      {[]runtime.Object{deployment(corev1.ConditionFalse), account}, answer(http.StatusForbidden, "nobody asked"), ""},
	} {
		client := fake.NewClientset(test.objects...)
		client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if dry := action.(clienttesting.CreateActionImpl).CreateOptions.DryRun; len(dry) != 1 || dry[0] != metav1.DryRunAll {
				t.Errorf("%s: a pod is created, not as a dry run", name)
			}
			return true, nil, test.answer
		})
		r := &refusals{client: client, run: "one", outside: outsideOf([]topology.Service{{Name: "cart"}}), whole: map[string]bool{}}
		err := r.look(t.Context())
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// Pods without sidecars are not watched: their Deployment says that they are there.
func TestRefusalsOfPodsOutside(t *testing.T) {
	client := fake.NewClientset(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Labels: map[string]string{kwok.RunLabel: "one", kwok.ServiceLabel: "db"}},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2))}, Status: appsv1.DeploymentStatus{Replicas: 2},
	})
	r := &refusals{
		client: client, run: "one", outside: outsideOf([]topology.Service{{Name: "db", Outside: true}}), whole: map[string]bool{},
		short: func(time.Duration) []string { return []string{"db"} },
	}
	if !r.wanting() {
		t.Error("pods are not looked for")
	}
	if err := r.look(t.Context()); err != nil {
		t.Error(err)
	}
	if r.wanting() {
		t.Error("pods that are there are looked for")
	}
}
