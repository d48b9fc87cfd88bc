package proxy_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/proxy"
)

// Another process builds the same proxy of a Spec.
func TestSpecAsJSON(t *testing.T) {
	want := proxy.Spec{
		ID: "one/a-1", Address: "127.0.0.1:15012", ServerName: "istiod", RootPEM: []byte("roots"),
		ClientCertificatePEM: []byte("chain"), ClientKeyPEM: []byte("key"),
		XDS: "sotw", NodeID: "node", NodeCluster: "cluster", Build: []byte{1, 2, 0xff},
		Metadata: map[string]any{"LABELS": map[string]any{"app": "a"}, "PORT": 15021.0, "LIST": []any{"x"}},
		Headers:  map[string]string{"ClusterID": "one"}, Identity: "spiffe://cluster.local/ns/one/sa/a",
		Keepalive: 30 * time.Second, Drain: 45 * time.Second, CertificateLifetime: time.Hour, Slowdown: 2,
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got proxy.Spec
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after a round trip (-want +got):\n%s", diff)
	}
}

func TestSlowdown(t *testing.T) {
	for factor, want := range map[proxy.Slowdown]time.Duration{0: time.Second, 1: time.Second, 2.5: 2500 * time.Millisecond} {
		if got := factor.Of(time.Second); got != want {
			t.Errorf("a second slowed by %g is %s, want %s", factor, got, want)
		}
	}
}
