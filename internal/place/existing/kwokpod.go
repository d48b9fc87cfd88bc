package existing

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/kwok"
)

// KwokPodName is the value of the label app.kubernetes.io/name on the pod of KWOK.
const KwokPodName = "scaler-kwok"

// KwokRoleName is the name of the ClusterRole that has the rights of KwokRights.
const KwokRoleName = "scaler-kwok"

// KwokRights returns the rights that a run needs in addition to Rights when KWOK runs in the cluster: a role with which it writes
// the status of nodes and pods. The API server grants a role only rights that the user has: those of the role are among them.
func KwokRights() []rbacv1.PolicyRule {
	return append([]rbacv1.PolicyRule{
		Rule(rbacv1.GroupName, Own(), "clusterrolebindings", "clusterroles"),
	}, kwokRules()...)
}

// kwokRules returns the rules of KWOK's own manifests for nodes and pods.
func kwokRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		Rule("", []string{"get", "list", "patch", "update", "watch"}, "nodes"),
		Rule("", []string{"delete", "get", "list", "patch", "update", "watch"}, "pods"),
		Rule("", []string{"patch", "update"}, "nodes/status", "pods/status"),
	}
}

const (
	// kwokPort serves KWOK's metrics and health: the port of its own manifests.
	kwokPort = 10247
	// kwokUser is the user of a container without root.
	kwokUser = 65532
	// kwokConfig is the folder that KWOK's configuration is mounted at, and kwokConfigFile its name there.
	kwokConfig, kwokConfigFile = "/etc/kwok", "kwok.yaml"
	// kwokAnnotation of the pod is KWOK's configuration, so that no right to write ConfigMaps is needed: a cluster's
	// own settings are in those.
	kwokAnnotation = "scaler.mesh/kwok-configuration"
	// podReadyTimeout is the time limit for KWOK's pod to be ready, with its image pulled.
	podReadyTimeout = 3 * time.Minute
	// lookAtPod is the time between two looks at a pod that starts.
	lookAtPod = 500 * time.Millisecond
)

// KwokPod is KWOK's controller as objects of a cluster. It manages the nodes of one run alone.
type KwokPod struct {
	Run       string // value of the label on all objects
	Namespace string // its own
	Image     string // of KWOK's controller
	Addresses netip.Prefix
}

// Objects returns the objects of the controller, in the order of their creation. KWOK needs no CustomResourceDefinitions: its
// stages are in its configuration.
func (k KwokPod) Objects() []runtime.Object {
	return []runtime.Object{k.namespace(), k.account(), k.role(), k.binding(), k.pod()}
}

func (k KwokPod) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{kwok.RunLabel: k.Run}}
}

// roleName returns the name of the role and its binding, which have no namespace: no other run has it.
func (k KwokPod) roleName() string { return k.Namespace }

// namespace lets in only pods that meet the strictest of the Pod Security Standards.
func (k KwokPod) namespace() *corev1.Namespace {
	n := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: k.meta("", k.Namespace)}
	n.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	return n
}

func (k KwokPod) account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: k.meta(k.Namespace, Kwok)}
}

// role has what KWOK does with the run's nodes and pods. A role cannot name only these: their names are not known.
func (k KwokPod) role() *rbacv1.ClusterRole {
	role := Role(k.roleName(), kwokRules())
	role.ObjectMeta = k.meta("", k.roleName())
	return role
}

func (k KwokPod) binding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: k.meta("", k.roleName()),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: k.roleName()},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: k.Namespace, Name: Kwok}},
	}
}

// pod returns the controller's pod. It runs on a real node: fake ones have a taint. It has no limit of processor time. It is not
// replaced, because its nodes would be unmanaged until then and the run would go on.
func (k KwokPod) pod() *corev1.Pod {
	meta := k.meta(k.Namespace, Kwok)
	meta.Labels[kwok.RealLabel] = "true"
	meta.Labels["app.kubernetes.io/name"] = KwokPodName
	meta.Labels["sidecar.istio.io/inject"] = "false"
	meta.Annotations = map[string]string{kwokAnnotation: string(kwok.StagesOf(kwok.PoolOf(k.Run), k.Addresses))}
	health := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(kwokPort)}}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta,
		Spec: corev1.PodSpec{
			ServiceAccountName: Kwok, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(5)), EnableServiceLinks: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(kwokUser)), RunAsGroup: new(int64(kwokUser)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: Kwok, Image: k.Image, ImagePullPolicy: corev1.PullIfNotPresent,
				Args: []string{
					"--config=" + kwokConfig + "/" + kwokConfigFile, "--server-address=:" + strconv.Itoa(kwokPort),
					"--manage-nodes-with-label-selector=" + kwok.RunLabel + "=" + k.Run,
				},
				Env:   []corev1.EnvVar{{Name: "HOME", Value: "/tmp"}},
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: kwokPort}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
				}},
				StartupProbe: &corev1.Probe{ProbeHandler: health, PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 60},
				VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: kwokConfig, ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
					Path: kwokConfigFile, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + kwokAnnotation + "']"},
				}}}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
}

// create creates the objects. The namespace owns the role and its binding: who deletes it, without the
// right to see these, deletes them, too.
func (k KwokPod) create(ctx context.Context, client kubernetes.Interface) error {
	var opts metav1.CreateOptions
	namespace, err := client.CoreV1().Namespaces().Create(ctx, k.namespace(), opts)
	if err == nil {
		_, err = client.CoreV1().ServiceAccounts(k.Namespace).Create(ctx, k.account(), opts)
	}
	var owned []metav1.OwnerReference
	if err == nil {
		owned = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: namespace.Name, UID: namespace.UID}}
		role := k.role()
		role.OwnerReferences = owned
		_, err = client.RbacV1().ClusterRoles().Create(ctx, role, opts)
	}
	if err == nil {
		binding := k.binding()
		binding.OwnerReferences = owned
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, binding, opts)
	}
	if err == nil {
		_, err = client.CoreV1().Pods(k.Namespace).Create(ctx, k.pod(), opts)
	}
	if err != nil {
		return fmt.Errorf("creating KWOK's objects: %w", err)
	}
	return nil
}

// await waits until the pod is ready. It cannot become so once it has ended.
func (k KwokPod) await(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeoutCause(ctx, podReadyTimeout, fmt.Errorf("not ready after %v", podReadyTimeout))
	defer cancel()
	stood := ""
	for {
		pod, err := client.CoreV1().Pods(k.Namespace).Get(ctx, Kwok, metav1.GetOptions{})
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("waiting for KWOK: %w: %s", context.Cause(ctx), stood)
		case err != nil:
			return fmt.Errorf("waiting for KWOK: %w", err)
		case observe.Ready(pod):
			return nil
		case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
			return fmt.Errorf("waiting for KWOK: %s", observe.Standing(pod))
		}
		stood = observe.Standing(pod)
		select {
		case <-ctx.Done():
		case <-time.After(lookAtPod):
		}
	}
}

// StartKwok installs KWOK in the cluster, and returns when it answers. Its objects are the run's, also with an error: Delete deletes
// them. Its metrics, from which its usage is, are read through a forwarded port, until the function that StartKwok returns ends that; another end of
// the connection counts as the end of KWOK.
func (e *Environment) StartKwok(ctx context.Context, k KwokPod) (disconnect func(), err error) {
	client, err := kubernetes.NewForConfig(e.cluster.Config)
	if err != nil {
		return nil, err
	}
	if err := k.create(ctx, client); err != nil {
		return nil, err
	}
	if err := k.await(ctx, client); err != nil {
		return nil, err
	}
	forwarded, err := e.cluster.Forward(ctx, k.Namespace, Kwok, kwokPort)
	if err != nil {
		return nil, err
	}
	go func() { // ends with the connection
		<-forwarded.Done()
		if err := forwarded.Err(); err != nil {
			e.died <- fmt.Errorf("KWOK's pod %s/%s: %w", k.Namespace, Kwok, err)
		}
	}()
	e.metrics = "http://" + forwarded.Address(kwokPort) + "/metrics"
	all := context.WithoutCancel(ctx)
	e.usage = func() measure.Source { return measure.OfMetrics(all, Kwok, e.metrics) }
	return forwarded.Close, nil
}
