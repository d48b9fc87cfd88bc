package osm

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/test/credential"
)

// written is a bootstrap as the injector writes it, of what is changed.
const written = `admin:
  address:
    socket_address:
      address: 127.0.0.1
      port_value: 15000
static_resources:
  clusters:
  - name: osm-controller
    address: osm-controller.osm-system.svc.cluster.local
    port_value: 15128
    path: /etc/envoy/tls_certificate_sds_secret.yaml
`

func TestPodProxy(t *testing.T) {
	key := credential.NewKey()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: bootstrapSecret + "u"},
		Data: map[string][]byte{
			bootstrapFile: []byte(written), "tls_certificate_sds_secret.yaml": []byte("filename: /etc/envoy/sds_cert.pem\n"),
			"sds_cert.pem": credential.EncodeCertificate(credential.NewAuthority(time.Hour).Sign(&x509.Certificate{Subject: pkix.Name{CommonName: "node"}}, key.Public())),
			"sds_key.pem":  credential.EncodeKey(key), "cacert.pem": []byte("roots"),
		},
	}
	c := &controlPlane{secrets: func(string, string) (*corev1.Secret, error) { return secret, nil }, controller: &program{ports: ports{ads: 20001}}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: "p", Labels: map[string]string{uuidLabel: "u"}},
		Spec: corev1.PodSpec{ServiceAccountName: "a", Containers: []corev1.Container{{Name: "app"}, {
			Name: sidecarContainer, Args: []string{"--config-path", "/etc/envoy/bootstrap.yaml", "--service-cluster", "a.m"},
			Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
		}}},
	}
	real, err := c.PodProxy(pod, controlplane.ProxyPlace{Ports: controlplane.ProxyPorts{Admin: 20002}})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("15000", "20002", "osm-controller.osm-system.svc.cluster.local", "127.0.0.1", "15128", "20001", "/etc/envoy/", "./").Replace(written)
	if got := string(real.Files[bootstrapFile]); got != want {
		t.Errorf("its bootstrap is\n%s\nwant\n%s", got, want)
	}
	if got := string(real.Files["tls_certificate_sds_secret.yaml"]); got != "filename: ./sds_cert.pem\n" {
		t.Errorf("its secret is %q", got)
	}
	if got := strings.Join(real.Args, " "); got != "--config-path ./bootstrap.yaml --service-cluster a.m --disable-hot-restart" {
		t.Errorf("its arguments are %s", got)
	}
	if !slices.Contains(real.Env, "POD_NAME=p") || real.Agent || real.Cluster != "osm-controller" || real.Certificate != "service-cert:m/a" || real.Sidecar.NodeID != "node" {
		t.Errorf("it is %+v", real)
	}
	if real.HoldsSecret("tls_sds") || !real.HoldsSecret("root-cert-for-mtls-inbound:m/a") {
		t.Error("it does not distinguish secrets of its files from those of ADS")
	}

	secret.Data[bootstrapFile] = []byte("admin: {}\n")
	if _, err := c.PodProxy(pod, controlplane.ProxyPlace{}); err == nil || !strings.Contains(err.Error(), `reading bootstrap.yaml of secret m/envoy-bootstrap-config-u: "address: osm-controller.osm-system.svc.cluster.local" is in it 0 times: want once`) {
		t.Errorf("another bootstrap: %v", err)
	}
	pod.Spec.Containers = nil
	if _, err := c.PodProxy(pod, controlplane.ProxyPlace{}); err == nil || !strings.Contains(err.Error(), "has no container envoy") {
		t.Errorf("a pod that was not injected: %v", err)
	}
}

// init is the command of the injector's container for a pod (pkg/injector/iptables.go), whose rules are taken as they are.
func TestInterception(t *testing.T) {
	key := credential.NewKey()
	identity := proxy.Spec{
		Address:              "127.0.0.1:20001",
		ClientCertificatePEM: credential.EncodeCertificate(credential.NewAuthority(time.Hour).Sign(&x509.Certificate{Subject: pkix.Name{CommonName: "node"}}, key.Public())),
		ClientKeyPEM:         credential.EncodeKey(key),
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{
		Name: initContainer, Args: []string{"-c", "iptables-restore --noflush <<EOF\n*nat\n-A OUTPUT -j RETURN\nCOMMIT\nEOF\n"},
	}}}}
	c := &controlPlane{}
	got, err := c.interception(pod, identity)
	if err != nil {
		t.Fatal(err)
	}
	if got.Rules != "*nat\n-A OUTPUT -j RETURN\nCOMMIT" || got.Admin != 15000 || got.Reaches[15128] != "127.0.0.1:20001" {
		t.Errorf("it is %+v", got)
	}
	other := got.OtherIdentity(topology.Service{Namespace: "m", Name: "s"})
	if other.ServerName != "s.m.svc.cluster.local" || len(other.Certificates) != 1 || other.NextProtos[0] != "osm" {
		t.Errorf("a caller with another identity connects with %+v", other)
	}
	pod.Spec.InitContainers[0].Args = []string{"-c", "true"}
	if _, err := c.interception(pod, identity); err == nil || !strings.Contains(err.Error(), `parsing "true": want iptables-restore`) {
		t.Errorf("another command: %v", err)
	}
	pod.Spec.InitContainers = nil
	if _, err := c.interception(pod, identity); err == nil || !strings.Contains(err.Error(), "the injector has not changed the pod") {
		t.Errorf("a pod that was not injected: %v", err)
	}
}
