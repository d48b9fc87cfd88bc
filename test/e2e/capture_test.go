//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/capture"
	"scaler.mesh/scaler/pkg/record"
)

// replay rolls a mesh out and captures what it became.
func replay(where place, file, into string) (record.Run, capture.Mesh) {
	GinkgoHelper()
	out := filepath.Join(where.out, into)
	session := where.start("rollout", "--mesh", file, "--baseline", "1s", "--settle", "3s", "--steady", "1s", "--no-calibrate", "--keep", "-o", "json", "--out", out)
	Expect(wait(session)).To(Equal(exitDone))
	return printed(session), captured(where, into)
}

// captured captures the mesh of the only cluster that runs, and stops it.
func captured(where place, name string) capture.Mesh {
	GinkgoHelper()
	clusters, err := filepath.Glob(filepath.Join(where.state, "clusters", "*"))
	Expect(err).NotTo(HaveOccurred())
	Expect(clusters).To(HaveLen(1))
	file := filepath.Join(filepath.Dir(where.state), name+".yaml")
	Expect(wait(where.start("capture", "--kubeconfig", filepath.Join(clusters[0], "kubeconfig"), "-o", file))).To(Equal(exitDone))
	Expect(wait(where.start("cluster", "down", filepath.Base(clusters[0])))).To(Equal(exitDone))
	return readMesh(file)
}

// readMesh reads the file of a mesh.
func readMesh(file string) capture.Mesh {
	GinkgoHelper()
	f, err := os.Open(file)
	Expect(err).NotTo(HaveOccurred())
	defer f.Close()
	mesh, err := capture.Read(file, f)
	Expect(err).NotTo(HaveOccurred())
	return mesh
}

// text is the file of a mesh without what was left out, which is about the cluster.
func text(mesh capture.Mesh) string {
	GinkgoHelper()
	mesh.LeftOut = nil
	var text strings.Builder
	Expect(mesh.Write(&text)).To(Succeed())
	return text.String()
}

var _ = Describe("a captured mesh", func() {
	It("of a rollout is rolled out as it was", func() {
		where := newPlace()
		session := where.rollout(20, "--mode", "strict", "--services", "4", "--namespaces", "2", "--keep")
		Expect(wait(session)).To(Equal(exitDone))
		first := printed(session)
		mesh := captured(where, "first")
		Expect(mesh.Services).To(HaveLen(4))
		Expect(mesh.Endpoints()).To(Equal(20))

		second, again := replay(where, filepath.Join(filepath.Dir(where.state), "first.yaml"), "second")
		Expect(text(again)).To(Equal(text(mesh)), "services, workloads and objects of the replay")
		Expect(*second.Pods.Converged).To(Equal(20))
		Expect(second.Mesh.Endpoints).To(Equal(20))
		for kind, bytes := range first.XDS.ConfigurationBytes.ByType {
			Expect(second.XDS.ConfigurationBytes.ByType[kind]).To(BeNumerically("~", bytes, bytes/50), "bytes of %s that a converged sidecar holds", kind)
		}
	})

	It("of Istio's samples converges", func() {
		where := newPlace()
		download := exec.Command("go", "mod", "download", "-json", "-modfile=pkg/component/modules/istio.mod", "istio.io/istio")
		download.Dir = filepath.Join("..", "..")
		printed, err := download.Output()
		Expect(err).NotTo(HaveOccurred())
		var module struct{ Dir string }
		Expect(json.Unmarshal(printed, &module)).To(Succeed())
		samples := filepath.Join(module.Dir, "samples")
		around := filepath.Join(filepath.Dir(where.state), "around.yaml")
		Expect(os.WriteFile(around, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {istio-injection: enabled}}\n"), 0o600)).To(Succeed())
		file := filepath.Join(filepath.Dir(where.state), "samples.yaml")
		Expect(wait(where.start("capture", "-o", file, around,
			filepath.Join(samples, "bookinfo/platform/kube/bookinfo.yaml"), filepath.Join(samples, "bookinfo/networking/bookinfo-gateway.yaml"),
			filepath.Join(samples, "bookinfo/networking/destination-rule-all.yaml"), filepath.Join(samples, "bookinfo/networking/virtual-service-all-v1.yaml"),
			filepath.Join(samples, "helloworld/helloworld.yaml"), filepath.Join(samples, "tcp-echo/tcp-echo.yaml"), filepath.Join(samples, "httpbin/httpbin.yaml"),
			filepath.Join(samples, "external/github.yaml"), filepath.Join(samples, "bookinfo/gateway-api/bookinfo-gateway.yaml"),
		))).To(Equal(exitDone))
		mesh := readMesh(file)

		run, again := replay(where, file, "samples-replayed")
		Expect(text(again)).To(Equal(text(mesh)))
		Expect(*run.Pods.Converged).To(Equal(10))
		var unchecked []string
		for _, n := range run.Mesh.NotChecked {
			unchecked = append(unchecked, string(n.What))
		}
		Expect(unchecked).To(ConsistOf("other-resources", "mesh-config", "address-listeners", "routes", "cluster-settings", "service-entries"))
	})
})
