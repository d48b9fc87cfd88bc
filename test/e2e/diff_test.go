//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"scaler.mesh/scaler/internal/analyse/diff"
	"scaler.mesh/scaler/internal/component"
)

// diff runs `scaler diff` to its end and returns its result.
func (p place) diff(code int, args ...string) diff.Result {
	GinkgoHelper()
	session := p.start(append([]string{"diff", "--out", p.out, "--converge-timeout", "90s", "-o", "json"}, args...)...)
	Expect(wait(session)).To(Equal(code))
	var result diff.Result
	Expect(json.Unmarshal(session.Out.Contents(), &result)).To(Succeed())
	p.expectNothingLeft()
	return result
}

// captureFile makes a mesh file of manifests.
func (p place) captureFile(manifests string) string {
	GinkgoHelper()
	file := filepath.Join(filepath.Dir(p.state), filepath.Base(manifests))
	Expect(wait(p.start("capture", filepath.Join("testdata", "diff", manifests), "--output-file", file))).To(Equal(exitDone))
	return file
}

var _ = Describe("a diff", func() {
	It("of one version and itself is empty", func() {
		where := newPlace()
		result := where.diff(exitDone, "--from", "1.31.0", "--to", "1.31.0", "--pods", "20", "--profile", "typical", "--fail-on", "removed,listener-drain,filter-chain-drain,cluster-warm,added,in-place,endpoints")
		Expect(result.Groups).To(BeEmpty())
		Expect(result.Sidecars).To(Equal(20))
	})

	It("of two captured meshes finds each edit, on the sidecars that it concerns alone", func() {
		where := newPlace()
		result := where.diff(exitMissed, "--mesh", where.captureFile("before.yaml"), "--mesh-to", where.captureFile("after.yaml"), "--fail-on", "filter-chain-drain")
		Expect(result.Sidecars).To(Equal(8))
		var found []string
		for _, g := range result.Groups {
			var workloads []string
			for _, w := range g.Workloads {
				workloads = append(workloads, fmt.Sprintf("%s %d", w.Name, w.Sidecars))
			}
			found = append(found, fmt.Sprintf("%s %s %s %s %v", g.Effect, g.Class, g.Op, g.Path, workloads))
		}
		slices.Sort(found)
		Expect(found).To(Equal([]string{
			"added listener added  [cart 2 orders 2 users 2]",
			"added outbound cluster added  [cart 2 orders 2 users 2]",
			"cluster-warm cluster changed connect_timeout [users 2]",
			"cluster-warm inbound cluster added metadata.filter_metadata[istio][*] [orders 2]",
			"cluster-warm inbound cluster changed circuit_breakers.thresholds[*].max_connections [orders 2]",
			"cluster-warm inbound cluster changed connect_timeout [users 2]",
			"cluster-warm outbound cluster added metadata.filter_metadata[istio][*] [cart 2 orders 2 users 2]",
			"cluster-warm outbound cluster changed circuit_breakers.thresholds[*].max_connections [cart 2 orders 2 users 2]",
			"filter-chain-drain listener added default_filter_chain.filters[envoy.filters.network.tcp_proxy].typed_config.access_log [jobs 2]",
			"filter-chain-drain listener added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.access_log [jobs 2]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.access_log [jobs 2]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.http_filters[envoy.filters.http.jwt_authn] [cart 2]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.http_filters[envoy.filters.http.rbac] [users 2]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.rbac] [users 2]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.tcp_proxy].typed_config.access_log [jobs 2]",
			"filter-chain-drain listener virtualInbound removed filter_chains[*] [orders 2]",
			"filter-chain-drain listener virtualInbound removed filter_chains[*].filter_chain_match.application_protocols [orders 2]",
			"filter-chain-drain listener virtualInbound removed filter_chains[*].filter_chain_match.application_protocols [orders 2]",
			"filter-chain-drain listener virtualOutbound added filter_chains[*].filters[envoy.filters.network.tcp_proxy].typed_config.access_log [jobs 2]",
			"in-place route configuration added virtual_hosts[*].routes[*].metadata [cart 2 orders 2 users 2]",
			"in-place route configuration changed virtual_hosts[*].routes[*].route.max_grpc_timeout [cart 2 orders 2 users 2]",
			"in-place route configuration changed virtual_hosts[*].routes[*].route.timeout [cart 2 orders 2 users 2]",
			"in-place route configuration removed virtual_hosts[*] [jobs 2]",
			"in-place route configuration removed virtual_hosts[*].routes[*].name [cart 2 orders 2 users 2]",
			"listener-drain listener virtualInbound added access_log [jobs 2]",
			"listener-drain listener virtualInbound removed listener_filters[envoy.filters.listener.http_inspector] [orders 2]",
			"listener-drain listener virtualOutbound added access_log [jobs 2]",
			"removed listener removed  [jobs 2]",
			"removed outbound cluster removed  [jobs 2]",
			"removed outbound endpoint list removed  [jobs 2]",
			"removed route configuration removed  [jobs 2]",
		}))

		By("comparing the records again")
		again := where.start("diff", where.out, "-o", "markdown")
		Expect(wait(again)).To(Equal(exitDone))
		Expect(again.Out).To(gbytes.Say("8 of 8 sidecars change"))
	})

	It("of a setting of the mesh's configuration finds it on every sidecar of a synthetic mesh", func() {
		where := newPlace()
		result := where.diff(exitDone, "--pods", "8", "--services", "4", "--mode", "strict", "--to-set", "controlPlane.set=meshConfig.accessLogFile=/dev/stdout")
		Expect([]int{result.Changed, result.Sidecars}).To(Equal([]int{8, 8}))
		for _, g := range result.Groups {
			Expect(g.Path).To(HaveSuffix("access_log"))
			Expect(g.Op).To(Equal(diff.Added))
		}
	})

	It("of a captured mesh in ambient mode asks ztunnels and waypoints, too", func() {
		where := newPlace()
		file, edited := filepath.Join(filepath.Dir(where.state), "mesh.yaml"), filepath.Join(filepath.Dir(where.state), "edited.yaml")
		Expect(wait(where.start("capture", "testdata/ambient.yaml", "--output-file", file))).To(Equal(exitDone))
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		policy := strings.Replace(string(text), "- legacy", "- other", 1) // who may call the cart
		Expect(policy).NotTo(Equal(string(text)))
		Expect(os.WriteFile(edited, []byte(policy), 0o600)).To(Succeed())
		result := where.diff(exitMissed, "--mesh", file, "--mesh-to", edited, "--fail-on", "policy-check")
		Expect(result.Sidecars).To(Equal(4 + 2 + 4))
		Expect(result.Gateways).To(Equal(1))
		Expect(result.Ztunnels).To(Equal(4))
		Expect(result.Waypoints).To(Equal(2))
		Expect(result.Opaque).To(BeEmpty())
		Expect(result.Groups).To(HaveLen(1))
		Expect(result.Groups[0].Effect).To(Equal(diff.PoliciesChecked))
		Expect(result.Groups[0].Workloads).To(Equal([]diff.Workload{{Namespace: "istio-system", Name: "ztunnel", Sidecars: 4, Of: 4}}))
		Expect(result.Groups[0].Values).To(Equal([]diff.Value{{From: `"legacy"`, To: `"other"`}}))
	})

	It("that is interrupted leaves nothing running", func(ctx SpecContext) {
		where := newPlace()
		where.hold(ctx, component.Istiod)
		session := where.start("diff", "--out", where.out, "--to-env", "PILOT_ENABLE_CDS_CACHE=false", "--pods", "5")
		Eventually(session.Err).Should(gbytes.Say("starting istiod"))
		sockets := where.sockets(session)
		interrupt(session)
		Expect(wait(session)).To(Equal(exitInterrupted))
		where.expectNothingLeft(sockets...)
	})
})
