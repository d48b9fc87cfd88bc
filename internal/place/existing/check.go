package existing

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/kwok"
)

// RoleName is the name of the ClusterRole that has the rights of Rights.
const RoleName = "scaler"

// Own returns the verbs for objects that a run makes and does not change: clean-up finds them by their label, and deletes those of a namespace at once.
func Own() []string { return []string{"create", "deletecollection", "list"} }

// Changed returns the verbs for objects that a run makes, changes one at a time, and reads where somebody else has written them meanwhile.
func Changed() []string {
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update"}
}

// Rule returns a right to resources of a group.
func Rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// Rights returns the rights that a run needs in an existing cluster, with those of its control
// plane: a role with them is enough. They are cluster-wide, because a run makes
// namespaces.
func Rights(controlPlane []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	rule := Rule
	return append([]rbacv1.PolicyRule{
		// Namespaces have no deletecollection. One is read to see whether the API server answers.
		rule("", []string{"create", "delete", "get", "list"}, "namespaces"),
		// The watch is KWOK's, which keeps them Ready.
		rule("", []string{"create", "deletecollection", "list", "watch"}, "nodes"),
		// Those of a Deployment are made by its controller: create and get are for latency, for KWOK in the cluster, and for a trial that states why one is
		// refused. Churn deletes single ones, the patch is of what its sidecar reports, and their addresses are watched.
		rule("", []string{"create", "delete", "deletecollection", "get", "list", "patch", "watch"}, "pods"),
		// One is read where a pod is refused.
		rule("", []string{"create", "deletecollection", "get", "list"}, "serviceaccounts"),
		// Latency reads the address, and a change of metadata is a patch.
		rule("", []string{"create", "deletecollection", "get", "list", "patch"}, "services"),
		// KWOK writes them.
		rule("", []string{"patch"}, "nodes/status", "pods/status"),
		rule("", []string{"create"}, "serviceaccounts/token", "pods/portforward"),
		rule("", []string{"get"}, "configmaps"),
		// Real sidecars have Deployments that are deleted before the rest, and a patch restarts the pods.
		rule("apps", []string{"create", "delete", "deletecollection", "list", "patch"}, "deployments"),
		rule("apps", []string{"update"}, "deployments/scale"),
		// DaemonSets whose pods would come onto the run's nodes; ReplicaSets, so that clean-up waits until they are gone.
		rule("apps", []string{"list"}, "daemonsets", "replicasets"),
		rule("autoscaling", []string{"list"}, "horizontalpodautoscalers"),
		rule("discovery.k8s.io", []string{"list", "watch"}, "endpointslices"),
		rule("admissionregistration.k8s.io", []string{"get"}, "mutatingwebhookconfigurations"),
		{NonResourceURLs: []string{"/readyz"}, Verbs: []string{"get"}},
	}, controlPlane...)
}

// WorkersRoleName is the name of the ClusterRole that has the rights of WorkerRights.
const WorkersRoleName = "scaler-workers"

// WorkerRights returns the rights that a run needs in addition to Rights when its simulated sidecars run in the
// cluster: for a Job, and for roles with which its pods request tokens. The API server grants a role
// only rights that the user has.
func WorkerRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		Rule("batch", Own(), "jobs"),
		Rule(rbacv1.GroupName, Own(), "rolebindings", "roles"),
	}
}

// MeshesRoleName is the name of the ClusterRole that has the rights to the objects of a captured mesh, in addition to Rights.
const MeshesRoleName = "scaler-meshes"

// Role returns the ClusterRole of rights, with a name.
func Role(name string, rights []rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rights,
	}
}

// PendingPods counts the pods of a cluster in phase Pending that no run has made.
func PendingPods(ctx context.Context, client kubernetes.Interface) (int, error) {
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: "status.phase=" + string(corev1.PodPending), LabelSelector: "!" + kwok.RunLabel + ",!" + kwok.OutsideLabel,
	})
	if err != nil {
		return 0, fmt.Errorf("listing pending pods: %w", err)
	}
	return len(pods.Items), nil
}

// MissingRights returns the rights that the user of the context does not have, as in "create nodes".
func (c *Cluster) MissingRights(ctx context.Context, rights []rbacv1.PolicyRule) ([]string, error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	var wanted []authorizationv1.SelfSubjectAccessReviewSpec
	for _, rule := range rights {
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				wanted = append(wanted, authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: url, Verb: verb}})
			}
			for _, resource := range rule.Resources {
				name, sub, _ := strings.Cut(resource, "/")
				wanted = append(wanted, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: rule.APIGroups[0], Resource: name, Subresource: sub, Verb: verb,
				}})
			}
		}
	}
	denied := make([]string, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i, spec := range wanted {
		group.Go(func() error {
			review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("asking for the rights of context %s: %w", c.Context, err)
			}
			if !review.Status.Allowed {
				denied[i] = describeRight(spec)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(denied, func(s string) bool { return s == "" }), nil
}

// describeRight names a right, as in "create deployments.apps" or "get /readyz".
func describeRight(spec authorizationv1.SelfSubjectAccessReviewSpec) string {
	if url := spec.NonResourceAttributes; url != nil {
		return url.Verb + " " + url.Path
	}
	a := spec.ResourceAttributes
	name := a.Resource
	if a.Subresource != "" {
		name += "/" + a.Subresource
	}
	if a.Group != "" {
		name += "." + a.Group
	}
	return a.Verb + " " + name
}

// Ready fails when the API server does not report itself ready. version is what it runs.
func (c *Cluster) Ready(ctx context.Context) (version string, err error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	if _, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return "", fmt.Errorf("%w: its API server %s: %w", errNotReady, c.Server, err)
	}
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", c.Server, err)
	}
	return info.GitVersion, nil
}

// Lacks returns the kinds, as in "Telemetry telemetry.istio.io/v1", of objects that the cluster does not have, sorted. An object that does not
// state its kind is of one that every cluster has.
func (c *Cluster) Lacks(objects []runtime.Object) ([]string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	wanted := map[schema.GroupVersion]map[string]bool{}
	for _, o := range objects {
		kind := o.GetObjectKind().GroupVersionKind()
		if kind.Empty() {
			continue
		}
		if wanted[kind.GroupVersion()] == nil {
			wanted[kind.GroupVersion()] = map[string]bool{}
		}
		wanted[kind.GroupVersion()][kind.Kind] = true
	}
	var lacks []string
	for version, kinds := range wanted {
		there, err := client.ServerResourcesForGroupVersion(version.String())
		switch {
		case err == nil:
			for _, r := range there.APIResources {
				delete(kinds, r.Kind)
			}
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("asking %s for the kinds of %s: %w", c.Server, version, err)
		}
		for kind := range kinds {
			lacks = append(lacks, kind+" "+version.String())
		}
	}
	slices.Sort(lacks)
	return lacks, nil
}

// pageSize is the number of objects that one list request asks for.
const pageSize = 500

// Neighbours describes the parts of a cluster that a run must not collide with.
type Neighbours struct {
	// Addresses is the first range of kwok.Addresses that nothing in the cluster has an address of.
	Addresses netip.Prefix
	// DaemonSets are the DaemonSets, as "namespace/name", whose pods are scheduled onto the run's fake nodes,
	// because they tolerate every taint and select no label that those nodes lack.
	DaemonSets []string
	// Kwok is a KWOK in the cluster that manages all nodes, as "namespace/name"; "" = there is none.
	Kwok string
}

// Look finds what a run has to keep clear of.
func (c *Cluster) Look(ctx context.Context, run string) (n Neighbours, err error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return n, err
	}
	used, err := addresses(ctx, client)
	if err != nil {
		return n, err
	}
	ranges := kwok.Addresses()
	free := slices.IndexFunc(ranges, func(r netip.Prefix) bool { return !slices.ContainsFunc(used, r.Overlaps) })
	if free < 0 {
		return n, fmt.Errorf("%w: it has addresses of each range that simulated pods could have, %v", errNotReady, ranges)
	}
	n.Addresses = ranges[free]
	sets, err := client.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return n, fmt.Errorf("listing DaemonSets: %w", err)
	}
	node := kwok.PoolOf(run).Node(0, run)
	for _, s := range sets.Items {
		if lands(s.Spec.Template.Spec, node) {
			n.DaemonSets = append(n.DaemonSets, s.Namespace+"/"+s.Name)
		}
	}
	deployments, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return n, fmt.Errorf("listing Deployments: %w", err)
	}
	for _, d := range deployments.Items {
		for _, container := range d.Spec.Template.Spec.Containers {
			if slices.Contains(slices.Concat(container.Command, container.Args), "--manage-all-nodes=true") {
				n.Kwok = d.Namespace + "/" + d.Name
			}
		}
	}
	return n, nil
}

// lands reports whether a pod may come onto a node: it tolerates its taints, and its node
// selector selects the node. Affinity is not looked at.
func lands(pod corev1.PodSpec, node *corev1.Node) bool {
	for key, value := range pod.NodeSelector {
		if node.Labels[key] != value {
			return false
		}
	}
	for _, taint := range node.Spec.Taints {
		if !slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			return false
		}
	}
	return true
}

// tolerates follows the rules of a Toleration's fields in the API.
func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	}
	return t.Key == taint.Key && t.Value == taint.Value
}

// addresses returns the addresses of a cluster's nodes, pods and services, and the ranges of its pods.
func addresses(ctx context.Context, client kubernetes.Interface) (all []netip.Prefix, err error) {
	add := func(texts ...string) {
		for _, text := range texts {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				all = append(all, prefix)
			} else if address, err := netip.ParseAddr(text); err == nil {
				all = append(all, netip.PrefixFrom(address, address.BitLen()))
			}
		}
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	for _, n := range nodes.Items {
		add(n.Spec.PodCIDRs...)
		for _, a := range n.Status.Addresses {
			add(a.Address)
		}
	}
	services, err := client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing services: %w", err)
	}
	for _, s := range services.Items {
		add(s.Spec.ClusterIPs...)
	}
	page := metav1.ListOptions{Limit: pageSize}
	for {
		pods, err := client.CoreV1().Pods("").List(ctx, page)
		if err != nil {
			return nil, fmt.Errorf("listing pods: %w", err)
		}
		for _, p := range pods.Items {
			for _, ip := range p.Status.PodIPs {
				add(ip.IP)
			}
		}
		if page.Continue = pods.Continue; page.Continue == "" {
			return all, nil
		}
	}
}
