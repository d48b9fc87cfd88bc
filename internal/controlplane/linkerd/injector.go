package linkerd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/controlplane"
)

const (
	webhookConfig = injectorName + "-webhook-config"
	webhooksLabel = "config.linkerd.io/admission-webhooks" // of a namespace whose pods are not injected: disabled

	injectAnnotation = "linkerd.io/inject"

	// What the API server calls the injector as, which its certificate is for.
	webhookAddress = "127.0.0.1"

	// The service ports that injected proxies connect to.
	destinationAddress = "linkerd-dst-headless." + namespace + ".svc." + trustDomain + ".:8086"
	identityAddress    = identityName + "-headless." + namespace + ".svc." + trustDomain + ".:8080"
)

// values returns the values of the chart that pods are injected with, with its defaults. Nothing pulls the images.
func (c *controlPlane) values() map[string]any {
	image := func(name, version string) map[string]any {
		return map[string]any{"name": "cr.l5d.io/linkerd/" + name, "version": version}
	}
	return map[string]any{
		"namespace":               namespace,
		"clusterDomain":           trustDomain,
		"identityTrustDomain":     trustDomain,
		"identityTrustAnchorsPEM": string(c.authority.certificate),
		"clusterNetworks":         "10.0.0.0/8,100.64.0.0/10,172.16.0.0/12,192.168.0.0/16",
		"linkerdVersion":          c.report.Version,
		"imagePullPolicy":         "IfNotPresent",
		"identity": map[string]any{"issuer": map[string]any{
			"scheme": issuerScheme, "clockSkewAllowance": clockSkewAllowance, "issuanceLifetime": issuanceLifetime,
		}},
		"proxy": map[string]any{
			"image":    image("proxy", c.report.Version),
			"logLevel": "warn,linkerd=info", "logFormat": "plain",
			"ports":     map[string]any{"admin": adminPort, "control": 4190, "inbound": 4143, "outbound": 4140},
			"resources": map[string]any{"cpu": map[string]any{}, "memory": map[string]any{}},
			"uid":       proxyUser, "await": true, "opaquePorts": opaquePorts,
			"outboundConnectTimeout": "1000ms", "inboundConnectTimeout": "100ms",
		},
		"proxyInit": map[string]any{
			"image": image("proxy-init", "v1.3.13"),
			"resources": map[string]any{
				"cpu":    map[string]any{"limit": "100m", "request": "10m"},
				"memory": map[string]any{"limit": "50Mi", "request": "10Mi"},
			},
			"xtMountPath": map[string]any{"mountPath": "/run", "name": "linkerd-proxy-init-xtables-lock"},
		},
	}
}

// writeMounts writes what the injector reads, which is mounted in its pod, into a folder of its own in
// dir, and returns its name.
func (c *controlPlane) writeMounts(dir string) (string, error) {
	values, err := json.Marshal(c.values()) // which is YAML
	if err != nil {
		return "", fmt.Errorf("writing the values of the chart: %w", err)
	}
	folder := filepath.Join(dir, "injector")
	for name, text := range map[string][]byte{
		"config/values": values, "tls/tls.crt": c.webhook.certificate, "tls/tls.key": c.webhook.key,
	} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", fmt.Errorf("making the folder of the injector: %w", err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return "", fmt.Errorf("writing what the injector reads: %w", err)
		}
	}
	return folder, nil
}

// createWebhook makes the configuration by which the API server calls the injector. It is the chart's with
// the failure policy of its values for high availability: a pod without a proxy is not created.
func (c *controlPlane) createWebhook(ctx context.Context) error {
	url := "https://" + local(c.injector.grpc) + "/"
	config := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: webhookConfig},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name:         injectorName + ".linkerd.io",
			ClientConfig: admissionv1.WebhookClientConfig{URL: &url, CABundle: c.webhook.certificate},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: webhooksLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"disabled"}},
			}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods", "services"}},
			}},
			FailurePolicy: new(admissionv1.Fail), SideEffects: new(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1", "v1beta1"},
		}},
	}
	_, err := c.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, config, metav1.CreateOptions{})
	if controlplane.Created(err) != nil {
		return fmt.Errorf("creating webhook configuration %s: %w", webhookConfig, err)
	}
	return nil
}
