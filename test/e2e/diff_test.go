//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"scaler.mesh/scaler/internal/analyse/diff"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/pkg/record"
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
func (p place) captureFile(name string, manifests ...string) string {
	GinkgoHelper()
	file, args := filepath.Join(filepath.Dir(p.state), name), []string{"capture"}
	for _, one := range manifests {
		args = append(args, filepath.Join("testdata", "diff", one))
	}
	Expect(wait(p.start(append(args, "--output-file", file)...))).To(Equal(exitDone))
	return file
}

// described returns the groups of a result, sorted: effect, class, operation and path, the workloads with the numbers of their
// proxies, the resources, and what [*] stands for.
func described(groups []diff.Group) (all []string) {
	few := func(names []string) string {
		if len(names) > 5 {
			return fmt.Sprintf("%d names", len(names))
		}
		return fmt.Sprint(names)
	}
	for _, g := range groups {
		var workloads []string
		for _, w := range g.Workloads {
			workloads = append(workloads, fmt.Sprintf("%s %d", w.Name, w.Sidecars))
		}
		all = append(all, fmt.Sprintf("%s %s %s %s %v %s %s", g.Effect, g.Class, g.Op, g.Path, workloads, few(g.Resources), few(g.Elements)))
	}
	slices.Sort(all)
	return all
}

var _ = Describe("a diff", func() {
	It("of one version and itself is empty, and so it is when one of them was restarted", func() {
		where := newPlace()
		result := where.diff(exitDone, "--from", "1.31.0", "--to", "1.31.0", "--pods", "20", "--profile", "typical", "--to-set", "load.faults=restart-control-plane@steady",
			"--fail-on", strings.Join(diff.EffectNames(), ","))
		Expect(result.Groups).To(BeEmpty())
		Expect(result.Sidecars).To(Equal(20))

		restarted := must(record.Read(filepath.Join(where.out, "to")))[0]
		Expect(restarted.Faults).To(HaveLen(1))
		again := restarted.Faults[0].At.Add(time.Duration(known(restarted.Faults[0].Seconds) * float64(time.Second)))
		kept := must(os.Stat(filepath.Join(restarted.Dir, "configuration.json.gz")))
		Expect(kept.ModTime()).To(BeTemporally(">", again), "what is compared is from before the restart")
	})

	It("of two captured meshes finds each edit, on the sidecars that it concerns alone", func() {
		where := newPlace()
		before, after := where.captureFile("before.yaml", "before.yaml"), where.captureFile("after.yaml", "before.yaml", "added.yaml")
		result := where.diff(exitMissed, "--mesh", before, "--mesh-to", after, "--fail-on", "filter-chain-drain")
		Expect([]int{result.Sidecars, result.Gateways}).To(Equal([]int{14, 2}))
		Expect(described(result.Groups)).To(Equal([]string{
			"added extension configuration added  [web 2] [extensions.istio.io/trafficextension/lab.wasm~istio-translated-wasmplugin] []",
			"added listener added  [api-istio 1] [0.0.0.0_443 0.0.0.0_81 0.0.0.0_82 0.0.0.0_9000] []",
			"added listener added  [cart 2 orders 2 users 2] [0.0.0.0_8443] []",
			"added listener added  [ingress 1] [0.0.0.0_8080] []",
			"added outbound cluster added  [api-istio 1 ingress 1 cart 2 orders 2 users 2] [outbound|8443||bank.example.com] []",
			"added route configuration added  [api-istio 1] [http.81 http.82] []",
			"added route configuration added  [ingress 1] [http.8080] []",
			"cluster-warm cluster changed connect_timeout [users 2] [InboundPassthroughCluster] []",
			"cluster-warm inbound cluster added metadata.filter_metadata[istio][*] [orders 2] [inbound|8080||] [config]",
			"cluster-warm inbound cluster added metadata.filter_metadata[istio][*] [web 2] [inbound|8080||] [config]",
			"cluster-warm inbound cluster changed circuit_breakers.thresholds[*].max_connections [orders 2] [inbound|8080||] []",
			"cluster-warm inbound cluster changed connect_timeout [users 2] [inbound|8080||] []",
			"cluster-warm outbound cluster added metadata.filter_metadata[istio][*] [api-istio 1 ext 2 ingress 1 web 2] [outbound|80||secure.lab.svc.cluster.local] [alpn_override config]",
			"cluster-warm outbound cluster added metadata.filter_metadata[istio][*] [api-istio 1 ingress 1 cart 2 orders 2 users 2] [outbound|80||orders.shop.svc.cluster.local] [config]",
			"cluster-warm outbound cluster added transport_socket [api-istio 1 ext 2 ingress 1 web 2] [outbound|80||secure.lab.svc.cluster.local] []",
			"cluster-warm outbound cluster changed circuit_breakers.thresholds[*].max_connections [api-istio 1 ingress 1 cart 2 orders 2 users 2] [outbound|80||orders.shop.svc.cluster.local] []",
			"cluster-warm outbound cluster removed transport_socket_matches [api-istio 1 ext 2 ingress 1 web 2] [outbound|80||secure.lab.svc.cluster.local] []",
			`endpoints outbound endpoint list added endpoints[*].lb_endpoints[*] [api-istio 1 ext 2 ingress 1 web 2] [outbound|80||vm.example.com] [{} / {socket_address: {address: "192.0.2.2", port_value: 80}}]`,
			"endpoints outbound endpoint list changed endpoints[*].load_balancing_weight [api-istio 1 ext 2 ingress 1 web 2] [outbound|80||vm.example.com] [{}]",
			`endpoints outbound endpoint list removed endpoints[*].lb_endpoints[*].metadata.filter_metadata[envoy.transport_socket_match] [api-istio 1 ext 2 ingress 1 web 2] [outbound|80||secure.lab.svc.cluster.local] [{} / {socket_address: {address: "pod(web.lab)", port_value: 8080}}]`,
			"filter-chain-drain listener added default_filter_chain.filters[envoy.filters.network.tcp_proxy].typed_config.access_log [jobs 2] [0.0.0.0_80] []",
			"filter-chain-drain listener added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.access_log [jobs 2] [0.0.0.0_80] []",
			"filter-chain-drain listener added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.http_filters[extensions.istio.io/trafficextension/lab.lua] [ext 2] [0.0.0.0_80 api-istio.lab_81 api-istio.lab_82] []",
			"filter-chain-drain listener added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.http_filters[extensions.istio.io/trafficextension/lab.wasm~istio-translated-wasmplugin] [web 2] [0.0.0.0_80 api-istio.lab_81 api-istio.lab_82] []",
			"filter-chain-drain listener added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.http_protocol_options [ext 2] [0.0.0.0_80 api-istio.lab_81 api-istio.lab_82] []",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.access_log [jobs 2] [virtualInbound] [0.0.0.0_8080 virtualInbound-catchall-http]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.http_filters[envoy.filters.http.jwt_authn] [cart 2] [virtualInbound] [0.0.0.0_8080 virtualInbound-catchall-http]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.http_filters[envoy.filters.http.rbac] [users 2] [virtualInbound] [0.0.0.0_8080 virtualInbound-catchall-http]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.http_filters[extensions.istio.io/trafficextension/lab.lua] [ext 2] [virtualInbound] [0.0.0.0_8080 virtualInbound-catchall-http]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.http_filters[extensions.istio.io/trafficextension/lab.wasm~istio-translated-wasmplugin] [web 2] [virtualInbound] [0.0.0.0_8080 virtualInbound-catchall-http]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.http_protocol_options [ext 2] [virtualInbound] [0.0.0.0_8080 virtualInbound-catchall-http]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.rbac] [users 2] [virtualInbound] [virtualInbound]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.tcp_proxy].typed_config.access_log [jobs 2] [virtualInbound] [virtualInbound]",
			"filter-chain-drain listener virtualInbound removed filter_chains[*] [orders 2] [virtualInbound] [0.0.0.0_8080 virtualInbound virtualInbound-catchall-http]",
			"filter-chain-drain listener virtualInbound removed filter_chains[*].filter_chain_match.application_protocols [orders 2] [virtualInbound] [0.0.0.0_8080]",
			"filter-chain-drain listener virtualInbound removed filter_chains[*].filter_chain_match.application_protocols [orders 2] [virtualInbound] [virtualInbound]",
			"filter-chain-drain listener virtualOutbound added filter_chains[*].filters[envoy.filters.network.tcp_proxy].typed_config.access_log [jobs 2] [virtualOutbound] [virtualOutbound-catchall-tcp]",
			"in-place route configuration added virtual_hosts[*] [api-istio 1] [http.80] [grpc.example.com:80 http.example.com:80]",
			"in-place route configuration added virtual_hosts[*].routes[*] [ext 2 web 2] [80] [web.lab.svc.cluster.local:80 / lab.mesh.0]",
			"in-place route configuration added virtual_hosts[*].routes[*].metadata [cart 2 orders 2 users 2] [80] [cart.shop.svc.cluster.local:80 / default]",
			"in-place route configuration changed virtual_hosts[*].routes[*].decorator.operation [api-istio 1] [http.80] [jobs.example.com:80 / lab.jobs.0]",
			"in-place route configuration changed virtual_hosts[*].routes[*].route.cluster [api-istio 1] [http.80] [jobs.example.com:80 / lab.jobs.0]",
			"in-place route configuration changed virtual_hosts[*].routes[*].route.max_grpc_timeout [cart 2 orders 2 users 2] [80] [cart.shop.svc.cluster.local:80 / default]",
			"in-place route configuration changed virtual_hosts[*].routes[*].route.timeout [cart 2 orders 2 users 2] [80] [cart.shop.svc.cluster.local:80 / default]",
			"in-place route configuration removed virtual_hosts[*] [jobs 2] [80] [api-istio.lab.svc.cluster.local:80 cart.shop.svc.cluster.local:80 ingress.lab.svc.cluster.local:80 orders.shop.svc.cluster.local:80 users.shop.svc.cluster.local:80]",
			"in-place route configuration removed virtual_hosts[*].routes[*] [ext 2 web 2] [80] [web.lab.svc.cluster.local:80 / default]",
			"in-place route configuration removed virtual_hosts[*].routes[*].name [cart 2 orders 2 users 2] [80] [cart.shop.svc.cluster.local:80 / default]",
			"listener-drain listener virtualInbound added access_log [jobs 2] [virtualInbound] []",
			"listener-drain listener virtualInbound removed listener_filters[envoy.filters.listener.http_inspector] [orders 2] [virtualInbound] []",
			"listener-drain listener virtualOutbound added access_log [jobs 2] [virtualOutbound] []",
			"removed listener removed  [jobs 2] 9 names []",
			"removed outbound cluster removed  [jobs 2] 14 names []",
			"removed outbound endpoint list removed  [jobs 2] 14 names []",
			"removed route configuration removed  [jobs 2] [15010 15014 api-istio.lab.svc.cluster.local:81 api-istio.lab.svc.cluster.local:82] []",
		}))

		By("comparing the records again")
		again := where.start("diff", where.out, "-o", "markdown")
		Expect(wait(again)).To(Equal(exitDone))
		Expect(again.Out).To(gbytes.Say("14 of 14 sidecars change"))
	})

	It("of settings finds what each changes, and on which sidecars of a synthetic mesh", func() {
		where := newPlace()
		result := where.diff(exitDone, "--pods", "8", "--services", "4", "--mode", "strict",
			"--to-set", "controlPlane.set=meshConfig.accessLogFile=/dev/stdout",
			"--to-env", "PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS=false", // on the sidecars of the three services that call another one
			"--to-set", "controlPlane.set=values.global.meshID=other", // of which a sidecar tells istiod
			"--to-set", "controlPlane.set=values.global.proxy.logLevel=debug") // of which it does not
		Expect(result.Sidecars).To(Equal(8))
		Expect(described(result.Groups)).To(Equal([]string{
			"cluster-warm outbound cluster removed common_lb_config.healthy_panic_threshold [svc-0 2 svc-1 2 svc-2 2] [outbound|80||svc-1.mesh-0.svc.cluster.local outbound|80||svc-2.mesh-0.svc.cluster.local outbound|80||svc-3.mesh-0.svc.cluster.local] []",
			"filter-chain-drain listener added default_filter_chain.filters[envoy.filters.network.tcp_proxy].typed_config.access_log [svc-0 2 svc-1 2 svc-2 2] [0.0.0.0_80] []",
			"filter-chain-drain listener added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.access_log [svc-0 2 svc-1 2 svc-2 2] [0.0.0.0_80] []",
			"filter-chain-drain listener changed filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.tracing.custom_tags[*].literal.value [svc-0 2 svc-1 2 svc-2 2] [0.0.0.0_80] []",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.access_log [svc-0 2 svc-1 2 svc-2 2 svc-3 2] [virtualInbound] [0.0.0.0_8080 virtualInbound-catchall-http]",
			"filter-chain-drain listener virtualInbound added filter_chains[*].filters[envoy.filters.network.tcp_proxy].typed_config.access_log [svc-0 2 svc-1 2 svc-2 2 svc-3 2] [virtualInbound] [virtualInbound]",
			"filter-chain-drain listener virtualInbound changed filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.tracing.custom_tags[*].literal.value [svc-0 2 svc-1 2 svc-2 2 svc-3 2] [virtualInbound] [0.0.0.0_8080 virtualInbound-catchall-http]",
			"filter-chain-drain listener virtualOutbound added filter_chains[*].filters[envoy.filters.network.tcp_proxy].typed_config.access_log [svc-0 2 svc-1 2 svc-2 2 svc-3 2] [virtualOutbound] [virtualOutbound-catchall-tcp]",
			"listener-drain listener virtualInbound added access_log [svc-0 2 svc-1 2 svc-2 2 svc-3 2] [virtualInbound] []",
			"listener-drain listener virtualOutbound added access_log [svc-0 2 svc-1 2 svc-2 2 svc-3 2] [virtualOutbound] []",
		}))
	})

	It("of a captured mesh in ambient mode asks ztunnels and waypoints, too", acceptance, func() {
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
