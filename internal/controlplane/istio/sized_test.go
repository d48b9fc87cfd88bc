package istio

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/analyse/capacity"
)

// The document sets GOMAXPROCS where the chart sets it, and no processor limit that was not asked for.
func TestSized(t *testing.T) {
	r := capacity.Request{Replicas: 2, Processors: 5, Resources: capacity.Resources{
		Requests: capacity.Amounts{CPU: "4900m", Memory: "4738Mi"}, Limits: capacity.Amounts{Memory: "4738Mi"},
	}}
	install := sized(capacity.Target{Version: "1.31.0"}, r)
	text, err := yaml.Marshal(install.Document)
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: install.istio.io/v1alpha1
kind: IstioOperator
spec:
  components:
    pilot:
      k8s:
        overlays:
        - kind: Deployment
          name: istiod
          patches:
          - path: spec.template.spec.containers.[name:discovery].env.[name:GOMAXPROCS]
            value:
              name: GOMAXPROCS
              value: "5"
  values:
    pilot:
      autoscaleEnabled: false
      replicaCount: 2
      resources:
        limits:
          memory: 4738Mi
        requests:
          cpu: 4900m
          memory: 4738Mi
`
	if string(text) != want {
		t.Errorf("the document is\n%swant\n%s", text, want)
	}
	if !strings.Contains(install.How, "istioctl 1.31.0") {
		t.Errorf("it says %q", install.How)
	}
}
