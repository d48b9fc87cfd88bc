//go:build e2e

package e2e

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane/istio"
)

// Only what needs no istiod of another version: building one takes four minutes.
var _ = Describe("another version of Istio", func() {
	It("has its own programs and manifests", func(ctx SpecContext) {
		session, err := gexec.Start(newPlace().command("components", "list", "--istio-version", "1.29"), GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		Expect(wait(session)).To(Equal(exitDone))
		Expect(string(session.Out.Contents())).To(MatchRegexp(`(?m)^istiod +1\.29\.1 `))

		// Rendered by the pinned istioctl from the version's module.
		rendered := func(version string) string {
			paths, err := component.Paths(ctx, component.Options{
				CacheDir: os.Getenv("SCALER_CACHE_DIR"), Istio: version, Progress: func(msg string) { GinkgoWriter.Println(msg) },
			}, component.IstioManifests)
			Expect(err).NotTo(HaveOccurred())
			Expect(filepath.Join(paths[component.IstioManifests], component.IstioBootstrapFile)).To(BeAnExistingFile())
			Expect(filepath.Join(paths[component.IstioManifests], component.GatewayAPIFile)).To(BeAnExistingFile())
			text, err := os.ReadFile(filepath.Join(paths[component.IstioManifests], component.IstioManifestsFile))
			Expect(err).NotTo(HaveOccurred())
			return string(text)
		}
		// A function of 1.31's injection template, which an istiod 1.29 does not know.
		Expect(rendered(component.IstioDefault)).To(ContainSubstring("otelResourceAttributes"))
		Expect(rendered("1.29")).To(And(ContainSubstring("istio/pilot:1.29.1"), Not(ContainSubstring("otelResourceAttributes"))))
	})

	It("lists the variables that it reads", func(ctx SpecContext) {
		paths, err := component.Paths(ctx, component.Options{CacheDir: os.Getenv("SCALER_CACHE_DIR"), Progress: func(msg string) { GinkgoWriter.Println(msg) }}, component.Istiod)
		Expect(err).NotTo(HaveOccurred())
		// 1.29.1 has the second as well: an assessment of an upgrade refuses it.
		Expect(istio.Driver().Variables(ctx, paths)).To(And(HaveKeyWithValue("PILOT_DEBOUNCE_AFTER", "100ms"), Not(HaveKey("PILOT_SPAWN_UPSTREAM_SPAN_FOR_GATEWAY"))))
	})
})
