package kwok

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ZoneName returns the name of a zone of a synthetic mesh, by its number from 0.
func ZoneName(zone int) string { return fmt.Sprintf("zone-%d", zone+1) }

// SetZone puts a node into the zone with this number.
func SetZone(node *corev1.Node, zone int) {
	node.Labels[corev1.LabelTopologyRegion] = "region-1"
	node.Labels[corev1.LabelTopologyZone] = ZoneName(zone)
}

// SpreadOverZones has the scheduler place the pods of a workload evenly over zones, those that are left over one each
// in the first of them. own are labels of these pods and of no others in their namespace.
//
// The number of pods in each zone is then the same in every run. Without this the scheduler chooses at random
// among nodes that are equally good, and endpoints have other localities in each run.
func SpreadOverZones(spec *corev1.PodSpec, zones []string, own map[string]string) {
	if len(zones) == 0 {
		return
	}
	affinity := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: inZones(zones...)}},
	}}
	spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
	if len(zones) == 1 {
		return
	}
	// Nodes have room for a thousand times what pods request, so no other score outweighs the preference.
	for i, zone := range zones[:min(len(zones)-1, maxPreference)] {
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: int32(min(len(zones)-1, maxPreference) - i), Preference: corev1.NodeSelectorTerm{MatchExpressions: inZones(zone)}})
	}
	spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector:  &metav1.LabelSelector{MatchLabels: own},
		MatchLabelKeys: []string{"pod-template-hash"}, // during a restart the new pods are spread by themselves
	}}
}

// OutsideZones keeps pods on nodes that are in no zone.
func OutsideZones(spec *corev1.PodSpec) {
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpDoesNotExist,
		}}}},
	}}}
}

// maxPreference is the largest weight that the API server accepts.
const maxPreference = 100

func inZones(names ...string) []corev1.NodeSelectorRequirement {
	return []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: names}}
}
