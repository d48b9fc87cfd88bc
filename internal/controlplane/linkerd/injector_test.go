package linkerd

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"
)

// What the injector serves with is what the API server expects of it, and its values have the roots of Identity.
func TestInjector(t *testing.T) {
	client := fake.NewClientset()
	c := &controlPlane{client: client, injector: &program{grpc: 8443}, authority: selfSigned{certificate: []byte("roots\n")}}
	var err error
	if c.webhook, err = newWebhookCertificate(); err != nil {
		t.Fatal(err)
	}
	folder, err := c.writeMounts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.createWebhook(t.Context()); err != nil {
		t.Fatal(err)
	}
	config, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), webhookConfig, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	webhook := config.Webhooks[0]
	if *webhook.ClientConfig.URL != "https://127.0.0.1:8443/" || *webhook.FailurePolicy != admissionv1.Fail {
		t.Errorf("the webhook is %+v", webhook)
	}
	served, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls", "tls.crt"), filepath.Join(folder, "tls", "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(webhook.ClientConfig.CABundle)
	if _, err := served.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: webhookAddress}); err != nil {
		t.Errorf("the API server would not trust the injector: %v", err)
	}

	text, err := os.ReadFile(filepath.Join(folder, "config", "values"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct{ IdentityTrustAnchorsPEM, Namespace string }
	if err := yaml.Unmarshal(text, &values); err != nil || values.IdentityTrustAnchorsPEM != "roots\n" || values.Namespace != namespace {
		t.Errorf("the values are %+v, %v", values, err)
	}
}
