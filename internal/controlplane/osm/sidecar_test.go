package osm

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"scaler.mesh/scaler/pkg/xdsprobe"
	"scaler.mesh/scaler/test/credential"
)

func TestSpec(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	key := credential.NewKey()
	chain := credential.EncodeCertificate(credential.NewAuthority(time.Hour).Sign(&x509.Certificate{Subject: pkix.Name{CommonName: "id.sidecar.a.m.cluster.local"}}, key.Public()))
	secret := func(name string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: bootstrapSecret + name, Labels: labels},
			Data:       map[string][]byte{"sds_cert.pem": chain, "sds_key.pem": credential.EncodeKey(key), "cacert.pem": []byte("roots")},
		}
	}
	client := fake.NewClientset(
		secret("watched", map[string]string{"app.kubernetes.io/name": "openservicemesh.io", "app.kubernetes.io/instance": meshName}),
		secret("late", nil), // as one that the watch has not brought yet
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: bootstrapSecret + "empty"}},
	)
	secrets, err := watchSecrets(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	c := &controlPlane{secrets: secrets, controller: &program{ports: ports{ads: 15128}}}
	for id, want := range map[string]string{
		"watched": "", "late": "",
		"empty": "reading secret m/envoy-bootstrap-config-empty: it has no certificate",
		"gone":  "reading the bootstrap certificate of pod m/p",
		"":      "pod m/p has no label osm-proxy-uuid: the injector has not changed it",
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: "p", Labels: map[string]string{}}, Spec: corev1.PodSpec{ServiceAccountName: "a"}}
		if id != "" {
			pod.Labels[uuidLabel] = id
		}
		spec, err := c.Spec(pod)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", id, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", id, err)
			continue
		}
		if spec.ID != "m/p" || spec.NodeID != "id.sidecar.a.m.cluster.local" || spec.Identity != "a.m.cluster.local" || spec.Address != "127.0.0.1:15128" ||
			spec.ServerName != "ads.cluster.local" || string(spec.RootPEM) != "roots" || spec.XDS != string(xdsprobe.SotW) || len(spec.ClientKeyPEM) == 0 {
			t.Errorf("%q: %+v", id, spec)
		}
	}
}
