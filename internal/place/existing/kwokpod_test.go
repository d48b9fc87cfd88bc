package existing

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/test/golden"
)

var kwokPod = KwokPod{Run: "istiod-strict-1600-3f9a1c", Namespace: "scaler-kwok-3f9a1c", Image: "registry.example/kwok:v0.8.0", Addresses: netip.MustParsePrefix("10.128.0.0/10")}

// All objects, as --dry-run prints them. KWOK's stages are those of package kwok.
func TestKwokObjects(t *testing.T) {
	var text strings.Builder
	for _, o := range kwokPod.Objects() {
		if o.(metav1.Object).GetLabels()[kwok.RunLabel] != kwokPod.Run {
			t.Errorf("%T lacks the run's label", o)
		}
		if pod, ok := o.(*corev1.Pod); ok {
			stages := pod.Annotations[kwokAnnotation]
			pool := kwok.PoolOf(kwokPod.Run)
			if !strings.Contains(stages, "manageNodesWithAnnotationSelector: "+pool.Key+"="+pool.Value) || !strings.Contains(stages, `printf "10.%d.%d.%d" (add 128 (mod`) {
				t.Errorf("the stages are not of the run's nodes and addresses:\n%s", stages)
			}
			pod.Annotations[kwokAnnotation] = "(stages)"
		}
		one, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(one))
	}
	golden.Compare(t, filepath.Join("testdata", "kwok.yaml"), text.String())
}

// A user grants KWOK only what the user may do: the API server refuses the rest.
func TestKwokHasNoRightsThatARunLacks(t *testing.T) {
	has := map[string]bool{}
	each := func(rules []rbacv1.PolicyRule, do func(string)) {
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						do(verb + " " + group + "/" + resource)
					}
				}
			}
		}
	}
	each(slices.Concat(Rights(nil), KwokRights()), func(right string) { has[right] = true })
	each(kwokPod.role().Rules, func(right string) {
		if !has[right] {
			t.Errorf("KWOK has the right %q, which ClusterRoles %s and %s lack", right, RoleName, KwokRoleName)
		}
	})
}

// Who may delete the namespace, and not see the role, leaves no right behind: the garbage collector deletes what the namespace owns.
func TestNamespaceOwnsRoleOfKwok(t *testing.T) {
	client := fake.NewClientset()
	if err := kwokPod.create(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	role, err := client.RbacV1().ClusterRoles().Get(t.Context(), kwokPod.roleName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding, err := client.RbacV1().ClusterRoleBindings().Get(t.Context(), kwokPod.roleName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []metav1.Object{role, binding} {
		owners := o.GetOwnerReferences()
		if len(owners) != 1 || owners[0].Kind != "Namespace" || owners[0].Name != kwokPod.Namespace {
			t.Errorf("%T has the owners %v, want namespace %s", o, owners, kwokPod.Namespace)
		}
	}
}

func TestAwaitKwok(t *testing.T) {
	ready := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	failed := corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: Kwok, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}}
	for want, status := range map[string]corev1.PodStatus{"": ready, "exit code 1": failed} {
		client := fake.NewClientset()
		if err := kwokPod.create(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		pod := kwokPod.pod()
		pod.Status = status
		if _, err := client.CoreV1().Pods(pod.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		err := kwokPod.await(t.Context(), client)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := kwokPod.create(t.Context(), fake.NewClientset(kwokPod.namespace())); err == nil || !strings.Contains(err.Error(), "creating KWOK's objects") {
		t.Errorf("error %v, want that the namespace is there", err)
	}
}
