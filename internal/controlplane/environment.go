package controlplane

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Injected returns the container of a pod that its injector adds, by its name; nil if there is none. Native
// sidecars are init containers.
func Injected(pod *corev1.Pod, name string) *corev1.Container {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if containers[i].Name == name {
				return &containers[i]
			}
		}
	}
	return nil
}

// EnvironmentOf returns the environment of a pod's container as the kubelet would resolve it. Of what it reads
// from elsewhere, the fields of the pod are resolved that injectors use.
func EnvironmentOf(pod *corev1.Pod, container *corev1.Container) map[string]string {
	env := map[string]string{}
	for _, e := range container.Env {
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			env[e.Name] = field(pod, e.ValueFrom.FieldRef.FieldPath)
			continue
		}
		env[e.Name] = expand(e.Value, env)
	}
	return env
}

// reference matches a variable in a value, and the escape of one.
var reference = regexp.MustCompile(`\$\$|\$\([^()]*\)`)

// expand resolves $(NAME) by the variables before it, and leaves it as it is where there is none. $$ is $.
func expand(value string, env map[string]string) string {
	if !strings.Contains(value, "$") {
		return value
	}
	return reference.ReplaceAllStringFunc(value, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, ok := env[found[2:len(found)-1]]; ok {
			return value
		}
		return found
	})
}

// field resolves the downward API's paths that injection templates use.
func field(pod *corev1.Pod, path string) string {
	switch path {
	case "metadata.name":
		return pod.Name
	case "metadata.uid":
		return string(pod.UID)
	case "metadata.namespace":
		return pod.Namespace
	case "spec.nodeName":
		return pod.Spec.NodeName
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName
	case "status.podIP", "status.podIPs": // simulated pods have one
		return pod.Status.PodIP
	case "status.hostIP":
		return pod.Status.HostIP
	default:
		return ""
	}
}
