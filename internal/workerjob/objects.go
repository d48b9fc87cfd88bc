// Package workerjob runs the workers of a run as an Indexed Job in an existing cluster,
// and connects to them through the API server: a worker listens on loopback of its pod, whose port
// is forwarded. Nothing in the cluster connects to scaler.
//
// What workers do is left to internal/worker, and which sidecar runs where to internal/fleet.
package workerjob

import (
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/kwok"
)

const (
	// Label is carried by the pods of workers, with the value Name: they are no pods of the mesh.
	Label = "app.kubernetes.io/name"
	// Name is the name of the Job, its service account and the roles.
	Name = "scaler-worker"

	// port is the port that a worker listens on, on loopback of its pod.
	port = 15900
	// metricsPort is the port of a worker's own metrics.
	metricsPort = 8080
	// user is the user of images without a system, such as distroless ones.
	user = 65532
)

// Requests of a worker's container: what it needs idle, and for each of its sidecars. docs/results
// has the measurements.
const (
	milliCPU          = 50
	sidecarsPerMilli  = 4 // sidecars for a thousandth of a core
	memory            = 128 << 20
	memoryPerSidecar  = 512 << 10
	memoryLimitFactor = 2
)

// failuresPerIndex is the number of pods of one index that may fail before the Job does.
const failuresPerIndex = 20

// Spec states which workers a run has.
type Spec struct {
	Run       string // value of the label on all objects
	Namespace string // of the Job, its own
	Image     string // of scaler
	Workers   int
	Sidecars  int // of the whole run, of which each worker runs its share
}

// Objects returns the objects that exist before the first pod of the mesh, in their order.
func (s Spec) Objects() []runtime.Object {
	return []runtime.Object{s.namespace(), s.account(), s.job()}
}

func (s Spec) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: map[string]string{kwok.RunLabel: s.Run, Label: Name}}
}

// namespace lets in only pods that meet the strictest of the Pod Security Standards.
func (s Spec) namespace() *corev1.Namespace {
	n := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: s.meta(s.Namespace)}
	n.Namespace = ""
	n.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	return n
}

func (s Spec) account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: s.meta(Name)}
}

// share returns the largest number of sidecars of a worker.
func (s Spec) share() int64 { return int64((s.Sidecars + s.Workers - 1) / s.Workers) }

// resources have no limit of processor time: a worker that is throttled would measure that.
func (s Spec) resources() corev1.ResourceRequirements {
	needed := memory + s.share()*memoryPerSidecar
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU+s.share()/sidecarsPerMilli, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(needed, resource.BinarySI),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(memoryLimitFactor*needed, resource.BinarySI)},
	}
}

func (s Spec) job() *batchv1.Job {
	labels := s.meta("").Labels
	podLabels := s.meta("").Labels
	podLabels["sidecar.istio.io/inject"] = "false"
	workers := int32(s.Workers)
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: s.meta(Name),
		Spec: batchv1.JobSpec{
			CompletionMode: new(batchv1.IndexedCompletion), Completions: &workers, Parallelism: &workers,
			BackoffLimitPerIndex: new(int32(failuresPerIndex)), MaxFailedIndexes: &workers,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels, Annotations: map[string]string{
					"prometheus.io/scrape": "true", "prometheus.io/port": strconv.Itoa(metricsPort), "prometheus.io/path": "/metrics",
				}},
				Spec: corev1.PodSpec{
					ServiceAccountName: Name, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(5)),
					EnableServiceLinks: new(false),
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: new(true), RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
						LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
					}},
					Containers: []corev1.Container{s.container()},
				},
			},
		},
	}
}

func (s Spec) container() corev1.Container {
	resources := s.resources()
	return corev1.Container{
		Name: "worker", Image: s.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Args:      []string{worker.Command, "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--metrics", fmt.Sprintf(":%d", metricsPort)},
		Resources: resources,
		// The collector works before the limit does.
		Env:   []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: strconv.FormatInt(resources.Limits.Memory().Value()*9/10, 10)}},
		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: metricsPort}},
		// A worker is ready once it has started: nothing asks it while it works.
		StartupProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/metrics", Port: intstr.FromInt32(metricsPort)}},
			PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 60,
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// Rights let the workers request the tokens of the mesh's pods: in each of its namespaces a role and
// its binding.
func (s Spec) Rights(namespaces []string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, namespace := range namespaces {
		role := &rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: s.meta(Name),
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}}},
		}
		binding := &rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: s.meta(Name),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: Name}},
		}
		role.Namespace, binding.Namespace = namespace, namespace
		for _, o := range []any{role, binding} {
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				return nil, err
			}
			all = append(all, &unstructured.Unstructured{Object: object})
		}
	}
	return all, nil
}
