package kwok

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

func TestStagesAreWellFormed(t *testing.T) {
	var names []string
	for doc := range bytes.SplitSeq(Stages(), []byte("\n---\n")) {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal(doc, &object); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if object.Kind == "Stage" {
			names = append(names, object.Metadata.Name)
		}
	}
	if got, want := strings.Join(names, " "), "node-initialize node-heartbeat pod-accept pod-sandbox pod-init-start pod-init-done pod-initialized pod-sidecar-ready pod-run pod-ready pod-unready pod-delete pod-terminate"; got != want {
		t.Errorf("stages %s, want %s", got, want)
	}
}

// The names in the YAML are not made from the constants.
func TestStagesUseTheConstants(t *testing.T) {
	for _, want := range []string{
		`.metadata.labels["` + RunLabel + `"]`,
		`.metadata.annotations["` + SidecarAnnotation + `"] == "` + SidecarReady + `"`,
		`expressionFrom: '.metadata.annotations["` + GraceAnnotation + `"]'`,
		"manageNodesWithAnnotationSelector: " + NodeAnnotation + "=" + FakeNode + "\n",
	} {
		if !bytes.Contains(Stages(), []byte(want)) {
			t.Errorf("stages lack %q", want)
		}
	}
}

func TestStagesReturnsACopy(t *testing.T) {
	Stages()[0] = 'X'
	if Stages()[0] == 'X' {
		t.Error("a caller can change the embedded stages")
	}
}

func TestNodes(t *testing.T) {
	for pods, want := range map[int]int{0: 1, 1: 1, 100: 1, 101: 2, 1600: 16, 10000: 100} {
		if got := Nodes(pods); got != want {
			t.Errorf("Nodes(%d) = %d, want %d", pods, got, want)
		}
	}
}

func TestNode(t *testing.T) {
	seen := map[string]bool{}
	for _, i := range []int{0, 1, 254, 255, 256, 65533} {
		n := Node(i, "strict-200")
		address := n.Status.Addresses[0].Address
		if seen[n.Name] || seen[address] {
			t.Errorf("node %d shares its name %s or its address %s with another", i, n.Name, address)
		}
		seen[n.Name], seen[address] = true, true
		if errs := validation.IsDNS1123Subdomain(n.Name); errs != nil {
			t.Errorf("name %q: %v", n.Name, errs)
		}
		if errs := validation.IsValidIP(nil, address); errs != nil {
			t.Errorf("address %q: %v", address, errs)
		}
		toleration := Toleration()
		if len(n.Spec.Taints) != 1 || toleration.Key != n.Spec.Taints[0].Key || toleration.Value != n.Spec.Taints[0].Value || toleration.Effect != n.Spec.Taints[0].Effect {
			t.Errorf("taints %v, and simulated pods tolerate %v", n.Spec.Taints, toleration)
		}
		for k, v := range NodeSelector() {
			if n.Labels[k] != v {
				t.Errorf("label %s is %q, and simulated pods select %q", k, n.Labels[k], v)
			}
		}
		if n.Labels[RunLabel] != "strict-200" || n.Labels[corev1.LabelHostname] != n.Name || n.Annotations[NodeAnnotation] != FakeNode {
			t.Errorf("labels %v, annotations %v", n.Labels, n.Annotations)
		}
		if pods := n.Status.Allocatable.Pods().Value(); pods != 1000 {
			t.Errorf("room for %d pods, want 1000", pods)
		}
	}
}

func TestSlowedStages(t *testing.T) {
	if got := string(SlowedStages(1)); got != string(Stages()) {
		t.Error("stages that are not slower differ")
	}
	got := string(SlowedStages(2.5))
	for _, want := range []string{" durationMilliseconds: 750000\n", "jitterDurationMilliseconds: 825000\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	if strings.Contains(string(Stages()), "750000") {
		t.Error("the stages themselves were changed")
	}
}

// Only pods that have a grace period run on; it is whole seconds for the API, not less than it is.
func TestSetGracePeriod(t *testing.T) {
	var none, some corev1.PodTemplateSpec
	SetGracePeriod(&none, 0)
	SetGracePeriod(&some, 2500*time.Millisecond)
	if none.Annotations != nil || none.Spec.TerminationGracePeriodSeconds != nil || HasGracePeriod(&corev1.Pod{ObjectMeta: none.ObjectMeta}) {
		t.Errorf("without: %+v", none)
	}
	if some.Annotations[GraceAnnotation] != "2.5s" || *some.Spec.TerminationGracePeriodSeconds != 3 || !HasGracePeriod(&corev1.Pod{ObjectMeta: some.ObjectMeta}) {
		t.Errorf("with: %+v", some)
	}
}
