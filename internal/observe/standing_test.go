package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStanding(t *testing.T) {
	waiting := func(name, reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	ended := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
	}
	initializing := waiting("app", "PodInitializing", "")
	again := waiting("app", "CrashLoopBackOff", "back-off 10s")
	again.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 127, Message: "no such file"}
	for _, c := range []struct {
		name   string
		status corev1.PodStatus
		want   string
		held   [2]string
	}{
		{"no room", corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available"}}}, "pod a is Pending: 0/2 nodes are available", [2]string{}},
		{"no image", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("app", "ImagePullBackOff", "not found")}}, "pod a is Pending: container app waits: ImagePullBackOff: not found", [2]string{"app", "ImagePullBackOff"}},
		{
			"no image of a native sidecar, after an init container that did its work",
			corev1.PodStatus{
				InitContainerStatuses: []corev1.ContainerStatus{ended("istio-init", 0), waiting("istio-proxy", "ErrImagePull", "denied")}, ContainerStatuses: []corev1.ContainerStatus{initializing},
			},
			"pod a is Pending: container istio-proxy waits: ErrImagePull: denied", [2]string{"istio-proxy", "ErrImagePull"},
		},
		{
			"an init container that fails",
			corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{ended("istio-init", 1)}, ContainerStatuses: []corev1.ContainerStatus{initializing}},
			"pod a is Pending: container istio-init ended with exit code 1", [2]string{},
		},
		{"a container that has ended", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("app", 0)}}, "pod a is Pending: container app ended with exit code 0", [2]string{}},
		{
			"a container that ends again and again", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{again}},
			"pod a is Pending: container app waits: CrashLoopBackOff: back-off 10s: it ended before with exit code 127: no such file", [2]string{"app", "CrashLoopBackOff"},
		},
		{
			"containers that are being created", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("app", "ContainerCreating", "")}},
			"pod a is Pending: container app waits: ContainerCreating", [2]string{},
		},
	} {
		c.status.Phase = corev1.PodPending
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: c.status}
		if got := Standing(pod); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if container, reason := Held(pod); container != c.held[0] || reason != c.held[1] {
			t.Errorf("%s: container %q is held for %q, want %q", c.name, container, reason, c.held)
		}
	}
}
