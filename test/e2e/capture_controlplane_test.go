//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/pkg/record"
)

// configured are settings of istiod that a stock installation does not have.
var configured = []string{"PILOT_PUSH_THROTTLE=7", "PILOT_DEBOUNCE_AFTER=130ms", "PILOT_ENABLE_CDS_CACHE=false"}

// configure makes a cluster one whose istiod has been configured: its mesh configuration, a template of injection, and
// the Deployment of two replicas, which the embedded cluster has no pods for.
func configure(ctx context.Context, kubeconfig string) {
	GinkgoHelper()
	_, client := connection(kubeconfig)
	maps := client.CoreV1().ConfigMaps("istio-system")
	change := func(name, key string, change func(map[string]any)) {
		GinkgoHelper()
		object, err := maps.Get(ctx, name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		content := map[string]any{}
		Expect(yaml.Unmarshal([]byte(object.Data[key]), &content)).To(Succeed())
		change(content)
		text, err := yaml.Marshal(content)
		Expect(err).NotTo(HaveOccurred())
		object.Data[key] = string(text)
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	change("istio", "mesh", func(mesh map[string]any) {
		mesh["accessLogFile"] = "/dev/stdout"
		mesh["outboundTrafficPolicy"] = map[string]any{"mode": "REGISTRY_ONLY"}
		mesh["defaultConfig"].(map[string]any)["concurrency"] = 3
	})
	change("istio-sidecar-injector", "config", func(config map[string]any) {
		config["templates"].(map[string]any)["team-tuning"] = "metadata: {annotations: {team: tuned}}\n"
	})
	labels := map[string]string{"app": "istiod", "istio": "pilot", "istio.io/rev": "default"}
	container := corev1.Container{Name: "discovery", Image: "istio/pilot:1.31.0", Args: []string{"discovery"}}
	for _, kv := range configured {
		name, value, _ := strings.Cut(kv, "=")
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	container.Env = append(container.Env, corev1.EnvVar{Name: "VENDOR_TOKEN", Value: "hunter2"})
	container.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	_, err := client.AppsV1().Deployments("istio-system").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "istiod", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Paused: true,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("a captured control plane", func() {
	It("runs in the replay of its mesh: settings, mesh configuration, templates, replicas and limits", func(ctx SpecContext) {
		where := newPlace()
		dir := filepath.Dir(where.state)
		args := []string{"--services", "3", "--namespaces", "2", "--calibrate=false", "--keep"}
		for _, kv := range configured {
			args = append(args, "--control-plane-env", kv)
		}
		Expect(wait(where.rollout(6, args...))).To(Equal(exitDone))
		configure(ctx, where.kubeconfig())
		mesh := captured(where, "first")
		file := filepath.Join(dir, "first.yaml")
		content, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(content)).NotTo(ContainSubstring("hunter2"))
		served := mesh.Served()
		Expect(served.Pods).To(Equal(6))
		Expect(mesh.ControlPlane.Masked).To(Equal(1), "nothing of the stock templates and values looks like a credential")

		By("as it was")
		run := replayed(where, file, "second", "--keep")
		Expect(known(run.Pods.Converged)).To(Equal(6))
		is := run.Environment.ControlPlane
		Expect([]any{is.Version, is.Replicas, is.GOMAXPROCS, is.MemoryLimitBytes}).To(Equal([]any{"1.31.0", 2, 2, int64(1 << 30)}))
		for _, kv := range configured {
			name, value, _ := strings.Cut(kv, "=")
			Expect(is.Settings).To(HaveKeyWithValue(name, value))
		}
		for name, value := range map[string]string{
			"meshConfig.accessLogFile": "/dev/stdout", "meshConfig.outboundTrafficPolicy.mode": "REGISTRY_ONLY", "meshConfig.defaultConfig.concurrency": "3",
			"injection.templates": "team-tuning",
		} {
			Expect(is.Settings).To(HaveKeyWithValue(name, value))
		}
		Expect(is.Settings).NotTo(HaveKey(HavePrefix("values.")), "values are those of a stock installation")
		Expect(run.Mesh.NotReproduced).To(ConsistOf(record.NotReproduced{What: "setting VENDOR_TOKEN", Changes: "what depends on its value, which is not captured"}))
		Expect(unchecked(run)).NotTo(ContainElement("mesh-config"))
		for _, name := range []string{"istiod-0", "istiod-1"} {
			environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", where.child(name)))
			Expect(err).NotTo(HaveOccurred())
			env := strings.Split(string(environ), "\x00")
			Expect(env).To(ContainElements(configured))
			Expect(env).To(ContainElement("GOMAXPROCS=2"))
		}

		By("and is captured again")
		again := captured(where, "second")
		Expect(again.Served().MeshConfig).To(Equal(served.MeshConfig))
		Expect(again.Served().Injection).To(Equal(served.Injection))
		Expect(text(again)).To(Equal(text(mesh)))

		By("unless it is replaced")
		stock := replayed(where, file, "stock", "--set", "controlPlane.configuration=stock")
		Expect([]any{stock.Environment.ControlPlane.Replicas, stock.Environment.ControlPlane.GOMAXPROCS}).To(Equal([]any{1, 8}))
		Expect(stock.Environment.ControlPlane.Settings).NotTo(Or(HaveKey("PILOT_PUSH_THROTTLE"), HaveKey("meshConfig.accessLogFile")))
		Expect(stock.Mesh.NotReproduced).To(BeEmpty())

		By("and as one of two revisions, with its own settings and pods")
		two := again.ControlPlane
		moved := two.Revisions[0].Namespaces[1:]
		two.Revisions[0].Namespaces = two.Revisions[0].Namespaces[:1]
		two.Revisions = append(two.Revisions, capture.Revision{
			Name: "canary", Namespaces: moved, Version: "1.31.0", Replicas: 1, Limits: map[string]string{"cpu": "3"}, Env: []capture.Variable{{Name: "PILOT_PUSH_THROTTLE", Value: "9"}},
		})
		of := 0
		for _, w := range again.Workloads {
			if slices.Contains(moved, w.Namespace) {
				of += w.Spec.Replicas
			}
		}
		Expect(of).To(And(BeNumerically(">", 0), BeNumerically("<", 6)))
		var written strings.Builder
		Expect(again.Write(&written)).To(Succeed())
		Expect(os.WriteFile(file, []byte(written.String()), 0o600)).To(Succeed())
		canary := replayed(where, file, "canary", "--set", "mesh.revision=canary")
		is = canary.Environment.ControlPlane
		Expect([]any{is.Version, is.Replicas, is.GOMAXPROCS, is.MemoryLimitBytes}).To(Equal([]any{"1.31.0", 1, 3, int64(0)}))
		Expect(is.Settings).To(HaveKeyWithValue("PILOT_PUSH_THROTTLE", "9"))
		Expect([]int{known(canary.Pods.Converged), canary.Mesh.OtherRevisions, canary.Mesh.Outside}).To(Equal([]int{of, 6 - of, 0}))
		Expect(canary.Mesh.Endpoints).To(Equal(run.Mesh.Endpoints), "other revisions' pods are endpoints")
		whole, own := known(run.XDS.ConfigurationBytes).ByType["EDS"], known(canary.XDS.ConfigurationBytes).ByType["EDS"]
		Expect(own).To(BeNumerically("~", whole, whole/100), "with the labels of their injection")
	})
})
