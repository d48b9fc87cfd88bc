package workload

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
)

// EchoArguments returns the arguments with which the program of Applier.RealImage answers
// HTTP requests on a port: `scaler echo`.
func EchoArguments(port int, name string) []string {
	return []string{"echo", "--listen", ":" + strconv.Itoa(port), "--name", name}
}

// realGrace is the termination grace period of a pod on a real node, in seconds.
const realGrace = 10

// realDeployment returns the Deployment of a service's pods on real nodes, which have the
// label kubernetes.io/os; a run's fake nodes do not. Their application answers on each
// port of the service.
func (a *Applier) realDeployment(s topology.Service, replicas int) *appsv1.Deployment {
	made := a.deploymentOf(s, replicas)
	made.Name = s.RealObject()
	real := map[string]string{kwok.RealLabel: "true"}
	maps.Copy(made.Labels, real)
	maps.Copy(made.Spec.Template.Labels, real)
	made.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": s.Name, kwok.RealLabel: "true"}}
	pod := &made.Spec.Template.Spec
	pod.NodeSelector, pod.Tolerations = map[string]string{corev1.LabelOSStable: "linux"}, nil
	pod.TerminationGracePeriodSeconds = new(int64(realGrace))
	pod.Containers = nil
	for i, p := range s.Ports {
		name := "app"
		if i > 0 {
			name += "-" + strconv.Itoa(i)
		}
		pod.Containers = append(pod.Containers, corev1.Container{
			Name: name, Image: a.RealImage, Args: EchoArguments(p.Target, s.Name),
			Ports: []corev1.ContainerPort{{Name: p.Name, ContainerPort: int32(p.Target)}},
		})
	}
	return made
}
