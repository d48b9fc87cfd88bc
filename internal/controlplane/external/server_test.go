package external_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachetypes "github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/external"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"

	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/credential"
)

func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(30 * time.Second) // each waits for what must come
	os.Exit(m.Run())
}

// tracked is an Observer that passes what comes to a tracker, as a fleet does.
type tracked struct {
	tracker *convergence.Tracker
	ended   chan proxy.StreamEnded
}

func (t tracked) TokenFetched(string, proxy.TokenFetched) {}
func (t tracked) Certified(string, proxy.Certificate)     {}
func (t tracked) StreamOpened(id string, e proxy.StreamOpened) {
	t.tracker.FirstRequest(id, e.Requested)
}
func (t tracked) StreamEnded(_ string, e proxy.StreamEnded) {
	select {
	case t.ended <- e:
	default:
	}
}
func (t tracked) Updated(id string, e proxy.Update) { t.tracker.Update(id, e.Update) }

// files are a root and a pair that it signed, as PEM files, and what a server serves
// with.
type files struct {
	root, cert, key string
	serving         *tls.Config
}

func makeFiles(t *testing.T) files {
	g := NewWithT(t)
	dir := t.TempDir()
	a := credential.NewAuthority(time.Hour)
	own := a.Pair("ads.example")
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		g.Expect(os.WriteFile(path, b, 0o600)).To(Succeed())
		return path
	}
	return files{
		root: write("root.pem", a.RootPEM), cert: write("cert.pem", credential.EncodeCertificate(own.Certificate[0])),
		key:     write("key.pem", credential.EncodeKey(own.PrivateKey)),
		serving: &tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: a.Pool()},
	}
}

// served returns the resources that the server has for every sidecar: one cluster and its endpoint.
func served() map[resource.Type][]cachetypes.Resource {
	ads := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}, ResourceApiVersion: corev3.ApiVersion_V3}
	return map[resource.Type][]cachetypes.Resource{
		resource.ClusterType: {&clusterv3.Cluster{
			Name: "a/one:http", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads},
		}},
		resource.EndpointType: {&endpointv3.ClusterLoadAssignment{ClusterName: "a/one:http", Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: "10.0.0.9", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080},
				}}},
			}}}},
		}}}},
	}
}

// serveADS serves until the test ends. token "" = tokens are not looked at.
func serveADS(t *testing.T, config *tls.Config, token string) (address string) {
	g := NewWithT(t)
	snapshot, err := cache.NewSnapshot("1", served())
	g.Expect(err).NotTo(HaveOccurred())
	snapshots := cache.NewSnapshotCache(false, cache.IDHash{}, nil)
	g.Expect(snapshots.SetSnapshot(t.Context(), "a.one-x", snapshot)).To(Succeed())
	options := []grpc.ServerOption{grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		sent, _ := metadata.FromIncomingContext(s.Context())
		if got := sent.Get("authorization"); token != "" && (len(got) != 1 || got[0] != "Bearer "+token) {
			return status.Error(codes.Unauthenticated, "want the token")
		}
		return next(srv, s)
	})}
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	s := grpc.NewServer(options...)
	ctx, cancel := context.WithCancel(context.Background())
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s, serverv3.NewServer(ctx, snapshots, nil))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	t.Cleanup(func() {
		cancel()
		s.Stop()
		<-done
	})
	return listener.Addr().String()
}

// Sidecars reach a server in every way that the flags offer, and have converged when
// they hold the endpoints that the cluster lists.
func TestSidecarsOfAnADSServer(t *testing.T) {
	expect := filepath.Join(t.TempDir(), "expect.yaml")
	if err := os.WriteFile(expect, []byte("sidecars: [{resources: [{type: EDS, name: \"{{.Namespace}}/{{.Service}}:{{.Port}}\", each: \"a/*\", endpoints: true}]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := makeFiles(t)
	mutual := f.serving.Clone()
	mutual.ClientAuth = tls.RequireAndVerifyClientCert
	secure := controlplane.Remote{TLSCA: f.root, ServerName: "ads.example"}
	with := func(change func(*controlplane.Remote)) controlplane.Remote {
		r := secure
		change(&r)
		return r
	}
	certificate := func(r *controlplane.Remote) { r.TLSCert, r.TLSKey = f.cert, f.key }
	for name, c := range map[string]struct {
		config *tls.Config
		token  string
		remote controlplane.Remote
		refuse proxy.Class // "" = the sidecar converges
	}{
		"plaintext":                    {nil, "", controlplane.Remote{Plaintext: true}, ""},
		"TLS":                          {f.serving, "", secure, ""},
		"client certificate":           {mutual, "", with(certificate), ""},
		"token":                        {f.serving, "secret", with(func(r *controlplane.Remote) { r.TokenFile = token }), ""},
		"client certificate and token": {mutual, "secret", with(func(r *controlplane.Remote) { certificate(r); r.TokenFile = token }), ""},
		"no client certificate":        {mutual, "", secure, proxy.Unreachable},
		"no token":                     {f.serving, "secret", secure, proxy.Unauthorized},
		"another name of the server":   {f.serving, "", with(func(r *controlplane.Remote) { r.ServerName = "other.example" }), proxy.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c.remote.Address, c.remote.Expect, c.remote.NodeID = serveADS(t, c.config, c.token), expect, "{{.Namespace}}.{{.Pod}}"
			driver := external.Driver()
			g.Expect(driver.External(c.remote)).To(Succeed())
			parts, err := driver.Start(t.Context(), controlplane.StartOptions{Remote: c.remote})
			g.Expect(err).NotTo(HaveOccurred())

			only := topology.Mesh{Services: []topology.Service{{Namespace: "a", Name: "one", Ports: []topology.Port{{Name: "http", Number: 80}}}}}
			tracker := convergence.New()
			complete := make(chan struct{}, 1)
			tracker.OnComplete = func(string, time.Time) { complete <- struct{}{} }
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "one-x", Labels: map[string]string{kwok.ServiceLabel: "one"}},
				Status:     corev1.PodStatus{PodIP: "10.0.0.1"},
			}
			spec, err := parts.Proxies.Spec(pod)
			g.Expect(err).NotTo(HaveOccurred())
			tracker.Add(spec.ID, tracker.Scope(parts.Mesh.Wants(only, scenario.Settings{}, 0)))
			health, sent := parts.Mesh.EndpointHealth(true, true, false)
			g.Expect(sent).To(BeTrue())
			tracker.SetEndpoints("a/one:http", convergence.Endpoints{netip.MustParseAddrPort("10.0.0.9:8080"): health}, time.Now())

			store, err := driver.NewStore()
			g.Expect(err).NotTo(HaveOccurred())
			observer := tracked{tracker, make(chan proxy.StreamEnded, 1)}
			sidecar, err := driver.Proxy.New(spec, controlplane.ProxyServices{Store: store, Observer: observer})
			g.Expect(err).NotTo(HaveOccurred())
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- sidecar.Run(ctx) }()
			defer func() {
				cancel()
				g.Eventually(done, time.Minute).Should(Receive(Succeed()))
			}()
			if c.refuse != "" {
				g.Eventually(observer.ended, time.Minute).Should(Receive(HaveField("Class", c.refuse)))
				g.Expect(complete).To(BeEmpty())
				return
			}
			g.Eventually(complete, time.Minute).Should(Receive())
		})
	}
}
