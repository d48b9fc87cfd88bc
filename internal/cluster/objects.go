package cluster

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/kwok"
)

// object is an API object that makes the cluster differ from a stock one.
type object struct {
	setting Setting
	// make creates it. It may be called repeatedly, and returns an error until the object
	// has an effect.
	make func(context.Context, kubernetes.Interface) error
}

// objects lists the API objects that make an embedded cluster differ from a stock one.
var objects = []object{
	{
		Setting{
			Name: "MutatingAdmissionPolicy " + fieldsPolicy, Value: "removes metadata.managedFields of a run's objects", Stock: "none",
			Reason: "Keeping track of who manages which field is a fifth of what the API server uses for a pod, and nothing in a run applies an object server-side. An object that was made without managed fields stays without.",
			Effect: "The API server uses less processor time, and what it sends to all watchers, the control plane included, is smaller by the managed fields.",
		}, makeFieldsPolicy,
	},
	{
		Setting{
			Name: "ClusterRole " + clientsGroup, Value: "controller-manager and scheduler may not create Events", Stock: "they may",
			Reason: "They make two Events for each pod, a fifth of all requests, which nobody reads.",
			Effect: "The API server refuses these Events before it reads them; etcd has fewer writes.",
		}, makeClientsRole,
	},
}

const (
	fieldsPolicy = "scaler-managed-fields"
	// clientsGroup is the group of controller-manager and scheduler, and the name of its
	// role.
	clientsGroup = "scaler-clients"
)

// makeObjects makes the API objects of a component.
func makeObjects(ctx context.Context, kubeconfig string, component *process.Process, all []object) error {
	if len(all) == 0 {
		return nil
	}
	client, err := newClient(kubeconfig)
	if err != nil {
		return fmt.Errorf("making objects of the cluster: %w", err)
	}
	for _, o := range all {
		if err := component.WaitReady(ctx, func(ctx context.Context) error { return o.make(ctx, client) }); err != nil {
			return fmt.Errorf("making %s: %w", o.setting.Name, err)
		}
	}
	return nil
}

// exists returns nil if err says that the object to create exists already, else err.
func exists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// makeFieldsPolicy makes a policy by which objects of runs are created without managed
// fields. The API server does not track the managed fields of updates of an object that
// has none; see skipNonAppliedManager in its fieldmanager. A failure does no harm.
func makeFieldsPolicy(ctx context.Context, client kubernetes.Interface) error {
	api := client.AdmissionregistrationV1()
	resources := func(group string, names ...string) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: names},
		}}
	}
	_, err := api.MutatingAdmissionPolicies().Create(ctx, &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: fieldsPolicy},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      new(admissionv1.Ignore),
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: kwok.RunLabel, Operator: metav1.LabelSelectorOpExists}}},
				ResourceRules:  []admissionv1.NamedRuleWithOperations{resources("", "pods"), resources("apps", "deployments", "replicasets"), resources("discovery.k8s.io", "endpointslices")},
			},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: `[JSONPatch{op: "remove", path: "/metadata/managedFields"}]`},
			}},
		},
	}, metav1.CreateOptions{})
	if exists(err) != nil {
		return err
	}
	_, err = api.MutatingAdmissionPolicyBindings().Create(ctx, &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: fieldsPolicy},
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: fieldsPolicy},
	}, metav1.CreateOptions{})
	if exists(err) != nil {
		return err
	}
	// The API server watches the policy, so that it takes effect after a moment.
	tried, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: fieldsPolicy, Labels: map[string]string{kwok.RunLabel: "none"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	if len(tried.ManagedFields) > 0 {
		return errors.New("objects of runs still get managed fields")
	}
	return nil
}

// makeClientsRole makes the role of controller-manager and scheduler. RBAC can only list
// what is allowed: everything except creating, and creating what they create.
func makeClientsRole(ctx context.Context, client kubernetes.Interface) error {
	all := []string{"*"}
	_, err := client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: clientsGroup},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: all, Resources: all, Verbs: []string{"get", "list", "watch", "update", "patch", "delete", "deletecollection", "escalate", "bind"}},
			{APIGroups: all, Verbs: []string{"create"}, Resources: []string{
				"pods", "pods/binding", "bindings", "pods/eviction", "replicasets", "controllerrevisions", "jobs", "endpointslices", "endpoints",
				"serviceaccounts", "serviceaccounts/token", "configmaps", "secrets", "leases", "persistentvolumeclaims", "clusterroles",
				"tokenreviews", "subjectaccessreviews",
			}},
			{NonResourceURLs: all, Verbs: []string{"get"}},
		},
	}, metav1.CreateOptions{})
	if exists(err) != nil {
		return err
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: clientsGroup},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clientsGroup},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: clientsGroup}},
	}, metav1.CreateOptions{})
	if exists(err) != nil {
		return err
	}
	// The API server watches the role, so that it takes effect after a moment.
	review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: clientsGroup, Groups: []string{clientsGroup}, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Namespace: metav1.NamespaceDefault},
	}}, metav1.CreateOptions{})
	if err == nil && !review.Status.Allowed {
		err = errors.New("the API server does not know the role yet")
	}
	return err
}
