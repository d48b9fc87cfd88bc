package kwok

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestSpreadOverZones(t *testing.T) {
	own := map[string]string{"app": "cart"}
	for _, test := range []struct {
		name, want string
		zones      []string
	}{
		{"no zones", "{containers: null}", nil},
		{"one zone", `
containers: null
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [b]}]}]
`, []string{"b"}},
		{"three zones, the first preferred", `
containers: null
affinity:
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - {weight: 2, preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [b]}]}}
    - {weight: 1, preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [c]}]}}
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [b, c, a]}]}]
topologySpreadConstraints:
- {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: cart}}, matchLabelKeys: [pod-template-hash]}
`, []string{"b", "c", "a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got, want corev1.PodSpec
			SpreadOverZones(&got, test.zones, own)
			if err := yaml.UnmarshalStrict([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The API server accepts weights of 1 to 100.
func TestSpreadOverManyZones(t *testing.T) {
	var spec corev1.PodSpec
	SpreadOverZones(&spec, make([]string, 300), nil)
	preferred := spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if n := len(preferred); n != 100 || preferred[0].Weight != 100 || preferred[n-1].Weight != 1 {
		t.Errorf("%d preferences, the first of weight %d, want 100 from 100 to 1", n, preferred[0].Weight)
	}
}
