package workerjob

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/test/golden"
)

func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(30 * time.Second) // each waits for what must come
	os.Exit(m.Run())
}

var spec = Spec{Run: "istiod-strict-1600-3f9a1c", Namespace: "scaler-3f9a1c", Image: "registry.example/scaler:1", Workers: 2, Sidecars: 1601}

// All objects, as they are printed by --dry-run.
func TestObjects(t *testing.T) {
	var text strings.Builder
	add := func(o any) {
		one, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(one))
	}
	for _, o := range spec.Objects() {
		add(o)
		if o.(metav1.Object).GetLabels()[kwok.RunLabel] != spec.Run {
			t.Errorf("%T lacks the run's label", o)
		}
	}
	rights, err := spec.Rights([]string{"mesh-3f9a1c-0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range rights {
		add(o)
	}
	if got := spec.job().Spec.Template.Labels[kwok.RunLabel]; got != spec.Run {
		t.Errorf("pods have the run label %q, want %q", got, spec.Run)
	}
	golden.Compare(t, filepath.Join("testdata", "objects.yaml"), text.String())
}

// Each sidecar has a worker: the shares are no less than all.
func TestShare(t *testing.T) {
	for sidecars := range 50 {
		for workers := 1; workers < 8; workers++ {
			s := Spec{Sidecars: sidecars, Workers: workers}
			if share := int(s.share()); share*workers < sidecars || (share-1)*workers >= max(1, sidecars) {
				t.Errorf("%d workers of %d sidecars run %d each", workers, sidecars, share)
			}
		}
	}
}

// pod returns a pod of an index.
func pod(name, index string, phase corev1.PodPhase, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: spec.Namespace, Labels: map[string]string{"batch.kubernetes.io/job-completion-index": index}},
		Status:     corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

// The pod of an index is waited for, past those that failed or are being deleted.
func TestAwait(t *testing.T) {
	g := NewWithT(t)
	leaving := pod("leaving", "1", corev1.PodRunning, corev1.ConditionTrue)
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Now()), []string{"test/stays"}
	client := fake.NewSimpleClientset(pod("other", "0", corev1.PodRunning, corev1.ConditionTrue), pod("failed", "1", corev1.PodFailed, corev1.ConditionFalse), leaving)
	j := &Job{spec: spec, client: client}
	found := make(chan string, 1)
	go func() {
		p, err := j.await(t.Context(), 1)
		if err != nil {
			found <- err.Error()
			return
		}
		found <- p.Name
	}()
	g.Eventually(func() int {
		n := 0
		for _, a := range client.Actions() {
			if a.GetVerb() == "watch" {
				n++
			}
		}
		return n
	}).Should(Equal(1))
	next := pod("next", "1", corev1.PodPending, corev1.ConditionFalse)
	_, err := client.CoreV1().Pods(spec.Namespace).Create(t.Context(), next, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	next = pod("next", "1", corev1.PodRunning, corev1.ConditionTrue)
	_, err = client.CoreV1().Pods(spec.Namespace).Update(t.Context(), next, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(found).Should(Receive(Equal("next")))
}

// Where no pod becomes ready, the error says how it stood.
func TestAwaitEnds(t *testing.T) {
	waiting := pod("w", "0", corev1.PodPending, corev1.ConditionFalse)
	waiting.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "worker", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}}}
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	client := fake.NewSimpleClientset(waiting)
	cancel(late)
	_, err := (&Job{spec: spec, client: client}).await(ctx, 0)
	g := NewWithT(t)
	g.Expect(err).To(MatchError(late))
	g.Expect(err).To(MatchError("too late: pod w is Pending: container worker waits: ErrImagePull: not found"))
}
