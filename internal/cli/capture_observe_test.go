package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"scaler.mesh/scaler/internal/capture"
)

// Each revision has the figures between two readings of its own ready pods; one whose pods do not answer has the reason.
func TestCaptureObserve(t *testing.T) {
	pod := func(name, revision string, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "istio-system", Labels: map[string]string{"app": "istiod", "istio.io/rev": revision}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}
	}
	client := fake.NewClientset(pod("old-1", "old", corev1.ConditionTrue), pod("old-2", "old", corev1.ConditionTrue), pod("old-3", "old", corev1.ConditionFalse),
		pod("new-1", "new", corev1.ConditionTrue))
	mesh := capture.Mesh{Header: capture.Header{ControlPlane: &capture.ControlPlane{Revisions: []capture.Revision{
		{Name: "old", Namespace: "istio-system"}, {Name: "new", Namespace: "istio-system"}, {Name: "gone", Namespace: "istio-system"},
	}}}}
	var asked, said []string
	now, waited := time.Unix(1_800_000_000, 0), false
	o := observation{
		client: client, say: func(text string) { said = append(said, text) },
		now: func() time.Time { return now },
		wait: func(_ context.Context, until time.Time) error {
			now, waited = until, true
			return nil
		},
		ask: func(_ context.Context, _, pod string, port int, path string) ([]byte, error) {
			asked = append(asked, fmt.Sprint(pod, ":", port, path))
			if pod == "new-1" {
				return nil, errors.New("no right to forward ports")
			}
			proxies := 20
			if waited {
				proxies = 30
			}
			return fmt.Appendf(nil, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1\n# TYPE pilot_xds gauge\npilot_xds{version=\"1.29.1\"} %d\n", proxies), nil
		},
	}
	if err := o.history(t.Context(), 5*time.Minute, &mesh); err != nil {
		t.Fatal(err)
	}
	slices.Sort(asked)
	if want := []string{"new-1:15014/metrics", "old-1:15014/metrics", "old-2:15014/metrics"}; !slices.Equal(slices.Compact(asked), want) || len(said) != 1 {
		t.Errorf("asked %v, said %v", asked, said)
	}
	all := mesh.ControlPlane.Revisions
	if h := all[0].History; len(h.Figures) != 1 || h.Figures[0].Figure != "proxies" || h.Figures[0].Max != 60 || h.Figures[0].Known != 1 || h.Step != "5m0s" || len(h.Missing) != 8 {
		t.Errorf("%+v", h)
	}
	for i, want := range map[int]string{1: "asking pod new-1: no right to forward ports", 2: "none of its pods is ready"} {
		if h := all[i].History; len(h.Figures) != 0 || len(h.Missing) != 1 || h.Missing[0] != (capture.Missing{Figure: "all", Why: want}) {
			t.Errorf("%s: %+v", all[i].Name, h)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	o.wait = func(ctx context.Context, _ time.Time) error { cancel(); return context.Cause(ctx) }
	if err := o.history(ctx, time.Minute, &mesh); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestCaptureObserveRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"want none with files":        {"cluster.yaml", "--observe", "5m"},
		"want none with --prometheus": {"--prometheus", "http://localhost:1", "--observe", "5m"},
		"want 1m0s to 1h0m0s":         {"--observe", "2s"},
		"--observe: got 2h0m0s":       {"--observe", "2h"},
	} {
		var out bytes.Buffer
		err := execute(t.Context(), append([]string{"capture"}, args...), nil, &out, &out)
		if exitCode(err) != 2 || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}
