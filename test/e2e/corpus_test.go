//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/test/corpus"
)

// distinct are objects of meshes without those that are given twice.
type distinct struct {
	seen    map[string]bool
	objects []*unstructured.Unstructured
}

func (d *distinct) add(mesh *capture.Mesh) {
	GinkgoHelper()
	all := append(mesh.Surroundings(map[string]string{"istio-injection": "enabled"}), mesh.Objects...)
	for _, w := range mesh.Workloads {
		labels := map[string]string{"scaler.mesh/service": "one"}
		template := w.Template()
		template.Labels["scaler.mesh/service"] = "one"
		o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Name: w.Name, Namespace: w.Namespace, Annotations: w.Annotations()},
			Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
		})
		Expect(err).NotTo(HaveOccurred())
		all = append(all, &unstructured.Unstructured{Object: o})
	}
	for _, o := range all {
		if o.GetKind() == "Namespace" && (o.GetName() == "default" || o.GetName() == "istio-system" || strings.HasPrefix(o.GetName(), "kube-")) {
			continue // the cluster has them
		}
		if o.GetNamespace() != "" {
			o = o.DeepCopy()
			o.SetNamespace("corpus")
		}
		text, err := json.Marshal(o)
		Expect(err).NotTo(HaveOccurred())
		if !d.seen[string(text)] {
			d.seen[string(text)] = true
			d.objects = append(d.objects, o)
		}
	}
}

// refusals tries to create the objects, without effect, and returns the answers of the API server and the control plane's webhook that are refusals, by object.
func (d *distinct) refusals(ctx context.Context, kubeconfig string) map[string]string {
	GinkgoHelper()
	kinds := newResources(kubeconfig)
	var mu sync.Mutex
	all := map[string]string{}
	tries, ctx := errgroup.WithContext(ctx)
	tries.SetLimit(8)
	for _, o := range d.objects {
		tries.Go(func() error {
			client, err := kinds.of(o)
			if err == nil {
				_, err = client.Create(ctx, o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				all[o.GetKind()+" "+o.GetName()] = err.Error()
			}
			return ctx.Err()
		})
	}
	Expect(tries.Wait()).To(Succeed())
	return all
}

// refusedOfCorpus are the objects that no API server with Istio's definitions takes, and why; those of the release's tests of its definitions,
// which are refused on purpose, are not among them.
var refusedOfCorpus = map[string]string{
	"Gateway alpha":                     "spec.servers[0].port: Required value",
	"Gateway beta":                      "spec.servers[0].port: Required value",
	"ServiceEntry service-entry-ignore": "hostname cannot be wildcard",
	"Telemetry telemetry-effective":     "only one of targetRefs or selector can be set",
	"VirtualService reviews-bogushost":  "spec.http[0].route[0].destination: Required value",
}

var _ = Describe("the corpus", func() {
	It("is taken by the API server of a replay, or a run is not begun", acceptance, func(ctx SpecContext) {
		where := newPlace()
		objects, invalid := distinct{seen: map[string]bool{}}, distinct{seen: map[string]bool{}}
		kinds := capture.Mesh{Namespaces: []capture.Namespace{{Name: "corpus"}}}
		kinds.Workloads = []capture.Workload{{Namespace: "corpus", Name: "one", Spec: capture.WorkloadSpec{Owner: "Deployment", Replicas: 1, Proxy: capture.Sidecar}}}
		served := map[string]bool{} // versions of the kinds of the Gateway API
		for _, folder := range []corpus.Folder{corpus.Cases(GinkgoTB()), corpus.Istio(GinkgoTB())} {
			for _, file := range folder.Files {
				mesh, err := capture.FromFiles(ctx, filepath.Join(folder.Path, file))
				if err != nil {
					continue // a test of package capture checks why
				}
				if strings.HasSuffix(file, "-invalid.yaml") {
					invalid.add(&mesh)
				} else {
					objects.add(&mesh)
				}
				for _, o := range mesh.Objects {
					if kind := o.GroupVersionKind(); capture.IsGatewayAPI(kind) && !served[kind.String()] {
						served[kind.String()] = true
						one := o.DeepCopy()
						one.SetName(fmt.Sprintf("one-%d", len(served)))
						if one.GetNamespace() != "" {
							one.SetNamespace("corpus")
						}
						kinds.Objects = append(kinds.Objects, one)
					}
				}
			}
		}

		By("being refused before anything is measured")
		session := where.startReplay(filepath.Join("testdata", "unaccepted.yaml"), "unaccepted")
		Expect(wait(session)).To(Equal(exitFailed))
		failed := place{out: filepath.Join(where.out, "unaccepted")}.recorded()
		Expect(failed.Status).To(Equal(record.StatusFailed))
		Expect(failed.Phases).To(BeEmpty())
		Expect(failed.Reason).To(And(
			ContainSubstring("2 objects of the mesh refused by the API server: "),
			MatchRegexp(`unaccepted.yaml: document \d+: ServiceEntry shop/wide: .*port must be between 1-65535`),
			MatchRegexp(`unaccepted.yaml: document \d+: VirtualService shop/nowhere: .*destination: Required value`),
		))

		By("being tried in a cluster that has all kinds")
		file := filepath.Join(filepath.Dir(where.state), "kinds.yaml")
		f, err := os.Create(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(kinds.Write(f)).To(Succeed())
		Expect(f.Close()).To(Succeed())
		replayed(where, file, "kinds", "--probes", "0", "--keep")
		refused := objects.refusals(ctx, where.kubeconfig())
		AddReportEntry("objects", fmt.Sprintf("%d of %d refused: %v", len(refused), len(objects.objects), refused))
		Expect(slices.Sorted(maps.Keys(refused))).To(Equal(slices.Sorted(maps.Keys(refusedOfCorpus))))
		for object, why := range refusedOfCorpus {
			Expect(refused[object]).To(ContainSubstring(why))
		}
		Expect(len(invalid.refusals(ctx, where.kubeconfig()))).To(BeNumerically(">", len(invalid.objects)/2), "or nothing is checked")
	})
})
