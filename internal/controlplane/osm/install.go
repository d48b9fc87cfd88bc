package osm

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"scaler.mesh/scaler/internal/controlplane"
)

const (
	caSecret   = "osm-ca-bundle"
	meshConfig = "osm-mesh-config"

	// webhookHost is the host at which the API server reaches the programs' webhooks, which name Services.
	webhookHost = "localhost"
)

// install makes all that the programs need in their cluster.
func (c *controlPlane) install(ctx context.Context) error {
	core := c.client.CoreV1()
	if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); controlplane.Created(err) != nil {
		return fmt.Errorf("creating namespace %s: %w", namespace, err)
	}
	programs := controlplane.Account{Namespace: namespace, Name: account, Rules: rights()}
	if err := programs.Create(ctx, c.client); err != nil {
		return err
	}
	for _, name := range []string{injectorName, validatorName} {
		if _, err := core.Services(namespace).Create(ctx, webhookService(name), metav1.CreateOptions{}); controlplane.Created(err) != nil {
			return fmt.Errorf("creating service %s: %w", name, err)
		}
	}
	for _, name := range []string{bootstrapName, controllerName, injectorName} {
		if _, err := core.Pods(namespace).Create(ctx, standIn(name), metav1.CreateOptions{}); controlplane.Created(err) != nil {
			return fmt.Errorf("creating pod %s: %w", name, err)
		}
	}
	preset, err := c.preset()
	if err != nil {
		return err
	}
	if _, err := core.ConfigMaps(namespace).Create(ctx, preset, metav1.CreateOptions{}); controlplane.Created(err) != nil {
		return fmt.Errorf("creating ConfigMap %s: %w", preset.Name, err)
	}
	c.kubeconfig, err = programs.WriteKubeconfig(ctx, c.client, c.options.Kubeconfig)
	return err
}

// bootstrapOnce runs osm-bootstrap, which installs the definitions of custom resources and the MeshConfig.
// It serves when it has, and is stopped then: it would go on to serve its own metrics, and nothing else.
func (c *controlPlane) bootstrapOnce(ctx context.Context) error {
	if err := c.bootstrapper.Restart(ctx); err != nil {
		return err
	}
	return c.bootstrapper.Stop(ctx)
}

// installDefinitions returns once the API server serves what osm-bootstrap, which run runs, installs.
//
// osm-bootstrap does not report that it could not create the MeshConfig (createDefaultMeshConfig in its
// source), as when the API server does not serve the new kind yet. It is run once more then.
func (c *controlPlane) installDefinitions(ctx context.Context, run func(context.Context) error) error {
	var all []*unstructured.Unstructured
	for _, kind := range kinds {
		all = append(all, kind.Definition())
	}
	for range 2 {
		if err := run(ctx); err != nil {
			return err
		}
		if err := controlplane.AwaitDefinitions(ctx, c.client.Discovery(), all); err != nil {
			return err
		}
		if _, err := c.dynamic.Resource(meshConfigs).Namespace(namespace).Get(ctx, meshConfig, metav1.GetOptions{}); err == nil {
			return nil
		} else if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading MeshConfig %s: %w", meshConfig, err)
		}
	}
	return fmt.Errorf("%s did not create MeshConfig %s", bootstrapName, meshConfig)
}

func own(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

// webhookService returns the Service that a webhook configuration of a program names. The programs run
// on this host: the API server resolves a Service of this type to its name, with the port that
// the configuration states.
func webhookService(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: own(name), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: webhookHost}}
}

// standIn returns the pod of a program, which it looks for at its start and writes Events about. No
// scheduler takes it.
func standIn(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: own(name), Spec: corev1.PodSpec{
		ServiceAccountName: account, SchedulerName: "scaler.mesh/none",
		Containers: []corev1.Container{{Name: name, Image: "scaler.mesh/simulated"}},
	}}
}

// kinds are the custom resources that osm-bootstrap installs, in the versions that the programs use.
var kinds = []controlplane.CustomResource{
	{Group: "config.openservicemesh.io", Versions: []string{"v1alpha2"}, Kind: "MeshConfig", Plural: "meshconfigs"},
	{Group: "config.openservicemesh.io", Versions: []string{"v1alpha2"}, Kind: "MeshRootCertificate", Plural: "meshrootcertificates"},
	{Group: "policy.openservicemesh.io", Versions: []string{"v1alpha1"}, Kind: "Egress", Plural: "egresses"},
	{Group: "policy.openservicemesh.io", Versions: []string{"v1alpha1"}, Kind: "IngressBackend", Plural: "ingressbackends"},
	{Group: "policy.openservicemesh.io", Versions: []string{"v1alpha1"}, Kind: "Retry", Plural: "retries"},
	{Group: "policy.openservicemesh.io", Versions: []string{"v1alpha1"}, Kind: "UpstreamTrafficSetting", Plural: "upstreamtrafficsettings"},
	{Group: "specs.smi-spec.io", Versions: []string{"v1alpha4"}, Kind: "HTTPRouteGroup", Plural: "httproutegroups"},
	{Group: "specs.smi-spec.io", Versions: []string{"v1alpha4"}, Kind: "TCPRoute", Plural: "tcproutes"},
	{Group: "access.smi-spec.io", Versions: []string{"v1alpha3"}, Kind: "TrafficTarget", Plural: "traffictargets"},
	{Group: "split.smi-spec.io", Versions: []string{"v1alpha2"}, Kind: "TrafficSplit", Plural: "trafficsplits"},
}

var meshConfigs = schema.GroupVersionResource{Group: "config.openservicemesh.io", Version: "v1alpha2", Resource: "meshconfigs"}

// rights returns the rules of the chart's cluster role, without those that only its other certificate managers
// and its debugging need.
func rights() []rbacv1.PolicyRule {
	rule, read := controlplane.Rule, []string{"list", "get", "watch"}
	rules := []rbacv1.PolicyRule{
		rule("apps", read, "daemonsets", "deployments", "replicasets", "statefulsets"),
		rule("networking.k8s.io", read, "ingresses"),
		rule("batch", read, "jobs"),
		rule("", read, "endpoints", "namespaces", "pods", "services", "secrets", "configmaps", "serviceaccounts"),
		rule("", []string{"create", "watch", "patch"}, "events"),
		rule("", []string{"create", "update", "delete", "patch"}, "secrets"),
		rule("", []string{"create", "update"}, "configmaps"),
		rule("admissionregistration.k8s.io", []string{"get", "list", "watch", "create", "update", "patch"}, "mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
		rule("apiextensions.k8s.io", []string{"list", "get", "watch", "create", "update"}, "customresourcedefinitions"),
		rule("config.openservicemesh.io", []string{"create", "update"}, "meshconfigs"),
		rule("policy.openservicemesh.io", []string{"update"}, "ingressbackends/status", "upstreamtrafficsettings/status"),
	}
	for _, kind := range kinds {
		rules = append(rules, rule(kind.Group, read, kind.Plural))
	}
	return rules
}

// preset returns the ConfigMap that osm-bootstrap makes the MeshConfig of: the chart's, in the mode. The
// statistics extension is off: its module, which goes into every listener, is not part of the Go
// module.
func (c *controlPlane) preset() (*corev1.ConfigMap, error) {
	text, err := json.Marshal(map[string]any{
		"sidecar": map[string]any{
			"enablePrivilegedInitContainer": false, "logLevel": "error", "maxDataPlaneConnections": 0, "configResyncInterval": "0s",
			"localProxyMode": "Localhost",
		},
		"traffic": map[string]any{
			"enableEgress": true, "enablePermissiveTrafficPolicyMode": c.permissive(),
			"outboundPortExclusionList": []any{}, "inboundPortExclusionList": []any{},
			"outboundIPRangeExclusionList": []any{}, "outboundIPRangeInclusionList": []any{}, "networkInterfaceExclusionList": []any{},
		},
		"observability": map[string]any{"enableDebugServer": false, "osmLogLevel": "info", "tracing": map[string]any{"enable": false}},
		"certificate":   map[string]any{"serviceCertValidityDuration": "24h", "certKeyBitSize": 2048},
		"featureFlags": map[string]any{
			"enableWASMStats": false, "enableEgressPolicy": true, "enableSnapshotCacheMode": false, "enableAsyncProxyServiceMapping": false,
			"enableIngressBackendPolicy": true, "enableEnvoyActiveHealthChecks": false, "enableRetryPolicy": false,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("the preset of the MeshConfig: %w", err)
	}
	return &corev1.ConfigMap{ObjectMeta: own("preset-mesh-config"), Data: map[string]string{"preset-mesh-config.json": string(text)}}, nil
}

// object returns an object of the mesh.
func object(version, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec,
	}}
}
