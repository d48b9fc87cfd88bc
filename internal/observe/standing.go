package observe

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Standing describes the state of a pod that is not ready, with the messages of its
// kubelet or the scheduler.
func Standing(pod *corev1.Pod) string {
	parts := []string{"pod " + pod.Name + " is " + string(pod.Status.Phase)}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			parts = append(parts, c.Message)
		}
	}
	for i, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		done := i < len(pod.Status.InitContainerStatuses) && c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "PodInitializing":
			parts = append(parts, "container "+c.Name+" waits", c.State.Waiting.Reason, c.State.Waiting.Message)
			if last := c.LastTerminationState.Terminated; last != nil {
				parts = append(parts, fmt.Sprintf("it ended before with exit code %d", last.ExitCode), last.Message)
			}
		case c.State.Terminated != nil && !done:
			parts = append(parts, fmt.Sprintf("container %s ended with exit code %d", c.Name, c.State.Terminated.ExitCode), c.State.Terminated.Message)
		}
	}
	if pod.DeletionTimestamp != nil {
		parts = append(parts, "it is being deleted")
	}
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return strings.Join(said, ": ")
}

// Held returns a container that its kubelet does not start, and the kubelet's reason for it, as CrashLoopBackOff; "" and "" if
// there is none. A container whose turn has not come, or that is being created, is not one.
func Held(pod *corev1.Pod) (container, reason string) {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			return c.Name, w.Reason
		}
	}
	return "", ""
}
