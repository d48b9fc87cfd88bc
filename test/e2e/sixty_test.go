//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/analyse/diff"
)

var _ = Describe("a mesh of sixty pods in ten namespaces", func() {
	It("is the same in a replay, and in a replay of its capture", acceptance, func() {
		where := newPlace()
		file := filepath.Join(filepath.Dir(where.state), "sixty.yaml")
		objects, err := filepath.Glob(filepath.Join("testdata", "sixty", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(wait(where.start(append([]string{"capture", "--output-file", file}, objects...)...))).To(Equal(exitDone))
		mesh := readMesh(file)

		// Each sidecar connects to the converged mesh, and starts after the greatest debounce, 5 s: see the spec of one that is rolled out as it was.
		storm := []string{"--fault", "reset-streams:100%@steady", "--start-delay", "7s"}
		first := replayed(where, file, "first", append(storm, "--keep")...)
		Expect(known(first.Pods.Converged)).To(Equal(60))
		is := first.Environment.ControlPlane
		Expect([]any{is.Version, is.Replicas, is.GOMAXPROCS, is.MemoryLimitBytes}).To(Equal([]any{"1.29.1", 2, 2, int64(2 << 30)}))
		Expect(is.Settings).To(And(HaveKeyWithValue("meshConfig.outboundTrafficPolicy.mode", "REGISTRY_ONLY"), HaveKeyWithValue("injection.templates", "team-tuning")))
		settings := []string{"PILOT_DEBOUNCE_AFTER=150ms", "PILOT_DEBOUNCE_MAX=5s", "PILOT_PUSH_THROTTLE=40", "PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS=true"}
		for _, name := range []string{"istiod-0", "istiod-1"} {
			environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", where.child(name)))
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Split(string(environ), "\x00")).To(ContainElements(settings))
		}

		again := captured(where, "again")
		Expect(text(again)).To(Equal(text(mesh)))
		args := append(storm, "--istio-version", "1.29.1", "--replicas", "2", "--control-plane-cpus", "2", "--control-plane-memory", "2Gi")
		for _, kv := range settings { // a control plane without a Deployment has none that could be captured
			args = append(args, "--control-plane-env", kv)
		}
		second := replayed(where, filepath.Join(filepath.Dir(where.state), "again.yaml"), "second", args...)
		Expect(known(second.Pods.Converged)).To(Equal(60))
		held := known(first.XDS.ConfigurationBytes).ByType
		Expect(held).NotTo(BeEmpty())
		for kind, bytes := range held {
			Expect(known(second.XDS.ConfigurationBytes).ByType[kind]).To(BeNumerically("~", bytes, bytes/100), "bytes of %s that a sidecar holds", kind)
		}
	})

	It("has gateways, which a diff of two versions compares as it does sidecars", acceptance, func() {
		where := newPlace()
		file := filepath.Join(filepath.Dir(where.state), "sixty.yaml")
		objects, err := filepath.Glob(filepath.Join("testdata", "sixty", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(wait(where.start(append([]string{"capture", "--output-file", file}, objects...)...))).To(Equal(exitDone))
		result := where.diff(exitDone, "--mesh", file, "--from", "1.29.1", "--to", "1.31.0")
		Expect([]int{result.Sidecars, result.Gateways, result.Changed}).To(Equal([]int{60, 5, 60}))
		panics := slices.IndexFunc(result.Groups, func(g diff.Group) bool { return g.Path == "common_lb_config.healthy_panic_threshold" })
		Expect(panics).To(BeNumerically(">=", 0))
		Expect(result.Groups[panics].Workloads).To(ContainElements(
			diff.Workload{Namespace: "istio-ingress", Name: "istio-ingressgateway", Sidecars: 2, Of: 2}, diff.Workload{Namespace: "istio-ingress", Name: "istio-egressgateway", Sidecars: 1, Of: 1}))
	})
})
