//go:build e2e

package browser

import (
	"fmt"
	"path/filepath"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// services of a side, each of which is the workload of one sidecar; every second one is in another namespace.
const services = 60

// side writes the record of one side of a diff. On a later one each sidecar's own cluster has another timeout, its endpoint
// is gone, those of one namespace have another listener, and one has no listener.
func side(dir string, later bool) {
	GinkgoHelper()
	w, err := record.Create(dir, "run")
	Expect(err).NotTo(HaveOccurred())
	run := &record.Run{Status: record.StatusCompleted, Scenario: scenario.Default()}
	run.Environment.ControlPlane = record.ControlPlaneSource{Name: "istiod", Version: "1.31.0"}
	Expect(w.Save(run)).To(Succeed())
	c := new(record.Configuration)
	for i := range services {
		by := record.HeldBy{Namespace: []string{"shop", "web"}[i%2], Workload: fmt.Sprintf("w-%d", i), Pod: fmt.Sprintf("w-%d-a", i)}
		hold := func(kind, name string, message proto.Message) {
			encoded, err := proto.Marshal(message)
			Expect(err).NotTo(HaveOccurred())
			by.Resources = append(by.Resources, len(c.Resources))
			c.Resources = append(c.Resources, record.HeldResource{Type: kind, Name: name, Message: encoded})
		}
		name := fmt.Sprintf("outbound|80||w-%d.mesh", i)
		cluster := &clusterv3.Cluster{Name: name, AltStatName: fmt.Sprintf("of w-%d", i)}
		listener := &listenerv3.Listener{Name: "virtualInbound", FilterChains: []*listenerv3.FilterChain{{Name: "a"}}}
		assignment := &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "/a"}}}}},
		}}}}}
		if later {
			cluster.ConnectTimeout = durationpb.New(1e9)
			assignment.Endpoints[0].LbEndpoints = nil
			if i%2 > 0 {
				listener.PerConnectionBufferLimitBytes = wrapperspb.UInt32(uint32(i))
			}
		}
		hold("CDS", name, cluster)
		hold("EDS", name, assignment)
		if i > 0 || !later {
			hold("LDS", "virtualInbound", listener)
		}
		c.Sidecars = append(c.Sidecars, by)
	}
	Expect(w.Configuration(c)).To(Succeed())
	Expect(w.Close()).To(Succeed())
}

// difference returns the page of a diff of two sides.
func difference(laterFrom, laterTo bool) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	side(filepath.Join(dir, "from"), laterFrom)
	side(filepath.Join(dir, "to"), laterTo)
	return pageOf("diff", dir)
}

var _ = Describe("the page of a diff", func() {
	// visible are the numbers of the differences that are shown.
	visible := func(s *shown) []string {
		return ask[[]string](s, `[...document.querySelectorAll(".difference")].filter(d => d.checkVisibility()).map(d => d.dataset.effect)`)
	}
	// set changes an input of the filter as a reader does.
	set := func(s *shown, selector, change string) {
		ask[bool](s, fmt.Sprintf(`(e => { %s; e.dispatchEvent(new Event("input", {bubbles: true})); return true; })(document.querySelector(%q))`, change, selector))
	}

	It("searches and filters without a network, in light and dark, on a phone", func() {
		s := show(difference(false, true))
		Expect(s.trouble).To(BeEmpty())
		Expect(visible(s)).To(ConsistOf("removed", "listener-drain", "cluster-warm", "endpoints"))
		Expect(ask[string](s, `document.querySelector("#shown").textContent`)).To(Equal("4 of 4 shown"))
		s.picture("diff")

		By("filtering by effect, type and namespace")
		set(s, `#filter [value="cluster-warm"]`, "e.checked = false")
		Expect(visible(s)).To(ConsistOf("removed", "listener-drain", "endpoints"))
		set(s, `#filter [value="EDS"]`, "e.checked = false")
		Expect(visible(s)).To(ConsistOf("removed", "listener-drain"))
		set(s, "#namespace", `e.value = "web"`)
		Expect(visible(s)).To(ConsistOf("listener-drain"))
		Expect(ask[string](s, `document.querySelector("#shown").textContent`)).To(Equal("1 of 4 shown"))

		By("showing all again, and following a link to one that a search leaves out")
		ask[bool](s, `document.querySelector("#reset").click(), true`)
		Expect(visible(s)).To(HaveLen(4))
		set(s, "#search", `e.value = "Connect_TIMEOUT w-7.mesh"`)
		Expect(visible(s)).To(ConsistOf("cluster-warm"))
		set(s, "#search", `e.value = "nowhere"`)
		Expect(visible(s)).To(BeEmpty())
		ask[bool](s, `location.hash = "difference-2", true`)
		Eventually(func() []string { return visible(s) }).Should(HaveLen(4))

		By("looking at it in several ways")
		s.openAll()
		for _, scheme := range []string{"light", "dark"} {
			s.prefer(scheme, "")
			for _, pixels := range []int64{390, 1280} {
				s.width(pixels)
				Expect(ask[float64](s, "document.documentElement.scrollWidth")).To(BeNumerically("<=", pixels))
				Expect(s.serious()).To(BeEmpty(), "%s, %d", scheme, pixels)
				s.picture(fmt.Sprintf("diff-%s-%d", scheme, pixels))
			}
		}
		Expect(s.trouble).To(BeEmpty())
		Expect(s.requests).To(HaveEach(Or(HavePrefix("file://"), HavePrefix("data:"))), "it needs no network")
	})

	It("states that nothing differs, and has no filter then", func() {
		s := show(difference(true, true))
		Expect(ask[string](s, `document.querySelector(".answer").textContent`)).To(HavePrefix("No difference. Compared: 60 sidecars"))
		Expect(s.count("#filter")).To(Equal(0))
		Expect(s.serious()).To(BeEmpty())
		Expect(s.trouble).To(BeEmpty())
		s.picture("diff-none")
	})
})
