//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"scaler.mesh/scaler/internal/analyse/diff"
	"scaler.mesh/scaler/pkg/record"
)

// drainer is a real Envoy with one listener, which comes from a file.
type drainer struct {
	dir, admin string
	port       uint32
	echo       string // address of what the listener leads to
}

// chain returns a filter chain that leads to the echo server.
func (d drainer) chain(name string, idle time.Duration) *listenerv3.FilterChain {
	GinkgoHelper()
	filter, err := anypb.New(&tcpv3.TcpProxy{StatPrefix: name, ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: "echo"}, IdleTimeout: durationpb.New(idle)})
	Expect(err).NotTo(HaveOccurred())
	return &listenerv3.FilterChain{Name: name, Filters: []*listenerv3.Filter{{Name: "envoy.filters.network.tcp_proxy", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: filter}}}}
}

func socketAddress(port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port}}}}
}

// serve has the Envoy take a listener.
func (d drainer) serve(l *listenerv3.Listener) {
	GinkgoHelper()
	packed, err := anypb.New(l)
	Expect(err).NotTo(HaveOccurred())
	text, err := protojson.Marshal(&discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{packed}})
	Expect(err).NotTo(HaveOccurred())
	next := filepath.Join(d.dir, "next.json")
	Expect(os.WriteFile(next, text, 0o600)).To(Succeed())
	Expect(os.Rename(next, filepath.Join(d.dir, "lds.json"))).To(Succeed()) // which is what Envoy watches for
}

// start starts the Envoy. It drains for 5 s, which is long enough to be seen on a slow machine.
func (d *drainer) start(ctx SpecContext) {
	GinkgoHelper()
	_, echoPort, err := net.SplitHostPort(d.echo)
	Expect(err).NotTo(HaveOccurred())
	var port uint32
	_, err = fmt.Sscan(echoPort, &port)
	Expect(err).NotTo(HaveOccurred())
	cluster, err := protojson.Marshal(&clusterv3.Cluster{
		Name: "echo", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}, ConnectTimeout: durationpb.New(5 * time.Second),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{ClusterName: "echo", Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socketAddress(port)}},
		}}}}},
	})
	Expect(err).NotTo(HaveOccurred())
	bootstrap := fmt.Sprintf(`{"node": {"id": "drainer", "cluster": "drainer"}, "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
		"static_resources": {"clusters": [%s]}, "dynamic_resources": {"lds_config": {"path_config_source": {"path": %q}}}}`, cluster, filepath.Join(d.dir, "lds.json"))
	config, admin := filepath.Join(d.dir, "envoy.json"), filepath.Join(d.dir, "admin")
	Expect(os.WriteFile(config, []byte(bootstrap), 0o600)).To(Succeed())
	session, err := gexec.Start(exec.CommandContext(ctx, envoy(ctx), "-c", config, "--concurrency", "1", "--drain-time-s", "5", "--drain-strategy", "immediate",
		"--disable-hot-restart", "--admin-address-path", admin, "--log-level", "warning"), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Eventually(session.Kill(), "20s").Should(gexec.Exit()) })
	Eventually(func() ([]byte, error) { return os.ReadFile(admin) }, "60s").ShouldNot(BeEmpty())
	address, err := os.ReadFile(admin)
	Expect(err).NotTo(HaveOccurred())
	d.admin = strings.TrimSpace(string(address))
}

// stat returns a figure of the listener manager.
func (d drainer) stat(name string) (value int, err error) {
	response, err := http.Get("http://" + d.admin + "/stats?filter=^listener_manager." + name + "$")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil {
		_, err = fmt.Sscanf(string(text), "listener_manager."+name+": %d", &value)
	}
	return value, err
}

// awaitStat waits until a figure of the listener manager has a value.
func (d drainer) awaitStat(name string, value int) {
	GinkgoHelper()
	Eventually(func() (int, error) { return d.stat(name) }, "60s", "20ms").Should(Equal(value), name)
}

// open opens a connection through the listener, and tries it.
func (d drainer) open() net.Conn {
	GinkgoHelper()
	var c net.Conn
	Eventually(func() (err error) {
		c, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", d.port))
		return err
	}, "60s").Should(Succeed())
	DeferCleanup(c.Close)
	answers(c)
	return c
}

// answers checks that a connection is open as far as the echo server.
func answers(c net.Conn) {
	GinkgoHelper()
	Expect(c.SetDeadline(time.Now().Add(60 * time.Second))).To(Succeed())
	_, err := fmt.Fprintln(c, "hello")
	Expect(err).NotTo(HaveOccurred())
	Expect(bufio.NewReader(c).ReadString('\n')).To(Equal("hello\n"))
}

// isCut checks that a connection is closed by the other end.
func isCut(c net.Conn) {
	GinkgoHelper()
	Expect(c.SetDeadline(time.Now().Add(60 * time.Second))).To(Succeed())
	_, err := c.Read(make([]byte, 1))
	Expect(err).To(HaveOccurred())
	Expect(err).NotTo(MatchError(os.ErrDeadlineExceeded), "it is open")
}

// effect returns the effect that a diff states for a change of a listener.
func effect(from, to *listenerv3.Listener) diff.Effect {
	GinkgoHelper()
	side := func(l *listenerv3.Listener) *record.Configuration {
		message, err := proto.Marshal(l)
		Expect(err).NotTo(HaveOccurred())
		return &record.Configuration{
			Resources: []record.HeldResource{{Type: "LDS", Name: l.Name, Message: message}}, Sidecars: []record.HeldBy{{Namespace: "shop", Workload: "cart", Pod: "cart-1", Resources: []int{0}}},
		}
	}
	result, err := diff.Compare(side(from), side(to), diff.Options{})
	Expect(err).NotTo(HaveOccurred())
	Expect(result.Groups).To(HaveLen(1))
	return result.Groups[0].Effect
}

var _ = Describe("the effect that a diff states of a listener's change", func() {
	It("is what a real Envoy does with open connections", acceptance, func(ctx SpecContext) {
		echo, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(echo.Close)
		go func() {
			for {
				c, err := echo.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					_, _ = io.Copy(c, c)
				}()
			}
		}()
		free, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		d := &drainer{dir: GinkgoT().TempDir(), echo: echo.Addr().String(), port: uint32(free.Addr().(*net.TCPAddr).Port)}
		Expect(free.Close()).To(Succeed())
		now := &listenerv3.Listener{Name: "outbound", Address: socketAddress(d.port), FilterChains: []*listenerv3.FilterChain{d.chain("used", time.Hour)}}
		d.serve(now)
		d.start(ctx)
		first := d.open()
		change := func(want diff.Effect, edit func(l *listenerv3.Listener)) {
			GinkgoHelper()
			next := proto.Clone(now).(*listenerv3.Listener)
			edit(next)
			Expect(effect(now, next)).To(Equal(want))
			d.serve(next)
			now = next
		}

		By("adding a filter chain: in place, nothing is drained")
		change(diff.InPlace, func(l *listenerv3.Listener) {
			other := d.chain("other", time.Hour)
			other.FilterChainMatch = &listenerv3.FilterChainMatch{SourcePrefixRanges: []*corev3.CidrRange{{AddressPrefix: "10.0.0.0", PrefixLen: wrapperspb.UInt32(8)}}}
			l.FilterChains = append(l.FilterChains, other)
		})
		d.awaitStat("listener_in_place_updated", 1)
		Expect(d.stat("total_filter_chains_draining")).To(BeZero())
		Expect(d.stat("total_listeners_draining")).To(BeZero())
		answers(first)

		By("changing the other filter chain: that one is drained, connections of this one stay after it")
		change(diff.ChainDrained, func(l *listenerv3.Listener) {
			match := l.FilterChains[1].FilterChainMatch
			l.FilterChains[1] = d.chain("other", 2*time.Hour)
			l.FilterChains[1].FilterChainMatch = match
		})
		d.awaitStat("listener_in_place_updated", 2)
		d.awaitStat("total_filter_chains_draining", 0)
		Expect(d.stat("total_listeners_draining")).To(BeZero())
		answers(first)

		By("changing this filter chain: its connections are cut, and the listener is not drained")
		change(diff.ChainDrained, func(l *listenerv3.Listener) { l.FilterChains[0] = d.chain("used", 2*time.Hour) })
		d.awaitStat("listener_in_place_updated", 3)
		isCut(first)
		Expect(d.stat("total_listeners_draining")).To(BeZero())

		By("changing a field of the listener: it is drained, and its connections are cut")
		second := d.open()
		change(diff.ListenerDrained, func(l *listenerv3.Listener) { l.PerConnectionBufferLimitBytes = wrapperspb.UInt32(32768) })
		d.awaitStat("total_listeners_draining", 1)
		isCut(second)
		d.awaitStat("total_listeners_draining", 0)
		Expect(d.stat("listener_in_place_updated")).To(Equal(3))
		answers(d.open())
	})
})
