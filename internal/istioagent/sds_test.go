package istioagent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"

	"scaler.mesh/scaler/test/credential"
)

func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(30 * time.Second) // each waits for what must come
	os.Exit(m.Run())
}

func pack(m proto.Message) *anypb.Any { return credential.Must(anypb.New(m)) }

// ads returns the source of what comes over the stream itself.
func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}, ResourceApiVersion: corev3.ApiVersion_V3}
}

func secretOf(name string) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: ads()}
}

// common returns a TLS context whose certificate and roots come over SDS.
func common() *tlsv3.CommonTlsContext {
	return &tlsv3.CommonTlsContext{
		TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{secretOf("service-cert")},
		ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{
			CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
				DefaultValidationContext: &tlsv3.CertificateValidationContext{}, ValidationContextSdsSecretConfig: secretOf("root-cert"),
			},
		},
	}
}

func inline(b []byte) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: b}}
}

// certificateSecret returns a secret with a certificate for the workload.
func certificateSecret(a *authority, workload string) *tlsv3.Secret {
	key, uri := credential.NewKey(), credential.Must(url.Parse(workload))
	leaf := credential.EncodeCertificate(a.Sign(&x509.Certificate{URIs: []*url.URL{uri}}, key.Public()))
	private := credential.EncodeKey(key)
	return &tlsv3.Secret{Name: "service-cert", Type: &tlsv3.Secret_TlsCertificate{
		TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: inline(leaf), PrivateKey: inline(private)},
	}}
}

// meshWith returns a configuration whose clusters and listeners name the secrets.
func meshWith(a *authority, certificate *tlsv3.Secret) map[resource.Type][]types.Resource {
	socket := func(m proto.Message) *corev3.TransportSocket {
		return &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: pack(m)}}
	}
	return map[resource.Type][]types.Resource{
		resource.ClusterType: {&clusterv3.Cluster{
			Name: "a", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads()},
			TransportSocket:  socket(&tlsv3.UpstreamTlsContext{CommonTlsContext: common()}),
		}},
		resource.EndpointType: {&endpointv3.ClusterLoadAssignment{ClusterName: "a"}},
		resource.ListenerType: {&listenerv3.Listener{Name: "l", FilterChains: []*listenerv3.FilterChain{{
			TransportSocket: socket(&tlsv3.DownstreamTlsContext{CommonTlsContext: common()}),
		}}}},
		resource.SecretType: {certificate, &tlsv3.Secret{Name: "root-cert", Type: &tlsv3.Secret_ValidationContext{
			ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(a.RootPEM)},
		}}},
	}
}

// pair returns a certificate and its key, both PEM.
func pair(a *authority, template *x509.Certificate) (chain, key []byte) {
	private := credential.NewKey()
	chain = credential.EncodeCertificate(a.Sign(template, private.Public()))
	return chain, credential.EncodeKey(private)
}

// sotwOnly is a server that does not speak the delta variant.
type sotwOnly struct{ server.Server }

func (sotwOnly) DeltaAggregatedResources(discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return status.Error(codes.Unimplemented, "want the state of the world")
}

// both returns a server that speaks both variants.
func both(s server.Server) discoveryv3.AggregatedDiscoveryServiceServer { return s }

// mutualServer is go-control-plane's server, which takes no client without a
// certificate of the authority.
func mutualServer(t *testing.T, a *authority, speaking func(server.Server) discoveryv3.AggregatedDiscoveryServiceServer) (address string, snapshots cache.SnapshotCache) {
	chain, key := pair(a, &x509.Certificate{DNSNames: []string{"control-plane"}})
	own := credential.Must(tls.X509KeyPair(chain, key))
	clients := x509.NewCertPool()
	clients.AddCert(a.Root)
	snapshots = cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	})))
	ctx, cancel := context.WithCancel(context.Background())
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, speaking(server.NewServer(ctx, snapshots, nil)))
	listener := credential.Must(net.Listen("tcp", "127.0.0.1:0"))
	done := make(chan error, 1)
	go func() { done <- g.Serve(listener) }()
	t.Cleanup(func() {
		cancel()
		g.Stop()
		<-done
	})
	return listener.Addr().String(), snapshots
}

// A control plane that authenticates its clients by certificates and delivers the
// workloads' certificates over SDS, in the state of the world.
func TestSecretsOverMutualTLS(t *testing.T) {
	for _, variant := range []xdsprobe.Variant{xdsprobe.SotW, xdsprobe.Delta} {
		t.Run(string(variant), func(t *testing.T) {
			g := NewWithT(t)
			a := newAuthority(time.Hour)
			address, snapshots := mutualServer(t, a, both)
			serve := func(version string, certificate *tlsv3.Secret) {
				t.Helper()
				g.Expect(snapshots.SetSnapshot(t.Context(), "test", credential.Must(cache.NewSnapshot(version, meshWith(a, certificate))))).To(Succeed())
			}
			serve("1", certificateSecret(a, identity))

			spec := proxy.Spec{
				ID: "test", NodeID: "test", Identity: identity, XDS: string(variant),
				Address: address, ServerName: "control-plane", RootPEM: a.RootPEM,
			}
			stranger, _ := run(t, spec)
			g.Eventually(stranger.Ended).Should(ContainElement(HaveField("Class", proxy.Unreachable)), "without a client certificate")

			spec.ClientCertificatePEM, spec.ClientKeyPEM = pair(a, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			d, stop := run(t, spec)
			g.Eventually(d.Held).Should(Equal([]string{"CDS a", "EDS a", "LDS l", "SDS root-cert", "SDS service-cert"}))
			g.Eventually(d.Complete).Should(BeTrue())
			g.Eventually(d.Certificates).Should(HaveLen(1))
			first := d.Certificates()[0]
			g.Expect(first.Err).NotTo(HaveOccurred())
			g.Expect(first.Verified).To(BeTemporally(">=", first.Sent))
			g.Expect(first.Sent).NotTo(BeZero())
			g.Expect(first.Expires).To(BeTemporally("~", time.Now().Add(time.Hour), time.Minute))
			g.Expect(d.store.Counters().Certificates.Load()).To(BeEquivalentTo(1))
			g.Expect(d.store.Counters().Now().Subscribed()).To(ContainElement(
				And(HaveField("Type", convergence.SDS), HaveField("Responses", BeNumerically(">=", 1)))))
			g.Expect(d.agent.Holdings()[convergence.SDS].Resources).To(Equal(2))

			g.Expect(d.store.Counters().CertificateRequests.Load()).To(BeEquivalentTo(1))

			// A renewed certificate, for which there is no request, is reported; one for
			// somebody else is an error.
			serve("2", certificateSecret(a, identity))
			g.Eventually(d.Certificates).Should(HaveLen(2))
			g.Expect(d.Certificates()[1].Err).NotTo(HaveOccurred())
			g.Expect(d.Certificates()[1].Sent).To(BeZero())
			g.Expect(d.store.Counters().CertificateRequests.Load()).To(BeEquivalentTo(1))
			serve("3", certificateSecret(a, "spiffe://cluster.local/ns/default/sa/other"))
			g.Eventually(d.Certificates).Should(HaveLen(3))
			g.Expect(d.Certificates()[2].Err).To(MatchError(ContainSubstring(identity)))
			stop()
			g.Expect(d.Ended()).To(ConsistOf(HaveField("Class", proxy.Stopped)))

			// A sidecar that comes later, and one that comes back, get the certificate for a request of their own.
			serve("4", certificateSecret(a, identity))
			again, _ := run(t, spec)
			g.Eventually(again.Certificates).Should(ConsistOf(HaveField("Err", BeNil())))
			g.Expect(again.Certificates()[0].Sent).NotTo(BeZero())
			g.Expect(again.store.Counters().CertificateRequests.Load()).To(BeEquivalentTo(1))
		})
	}
}

// What is refused by a control plane with mutual TLS that speaks the state of the world alone has a class, and
// nothing is held.
func TestRefusedByMutualTLS(t *testing.T) {
	own, other := newAuthority(time.Hour), newAuthority(time.Hour)
	for name, c := range map[string]struct {
		signer *authority // of the client's certificate; nil = it has none
		xds    xdsprobe.Variant
		want   proxy.Class
	}{
		"no certificate":                     {nil, xdsprobe.SotW, proxy.Unreachable},
		"a certificate of another authority": {other, xdsprobe.SotW, proxy.Unreachable},
		"the delta variant":                  {own, xdsprobe.Delta, proxy.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			address, snapshots := mutualServer(t, own, func(s server.Server) discoveryv3.AggregatedDiscoveryServiceServer { return sotwOnly{s} })
			g.Expect(snapshots.SetSnapshot(t.Context(), "test", credential.Must(cache.NewSnapshot("1", meshWith(own, certificateSecret(own, identity)))))).To(Succeed())
			spec := proxy.Spec{
				ID: "test", NodeID: "test", Identity: identity, XDS: string(c.xds),
				Address: address, ServerName: "control-plane", RootPEM: own.RootPEM,
			}
			if c.signer != nil {
				spec.ClientCertificatePEM, spec.ClientKeyPEM = pair(c.signer, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			}
			d, _ := run(t, spec)
			g.Eventually(d.Ended).Should(ContainElement(HaveField("Class", c.want)))
			g.Expect(d.Held()).To(BeEmpty())
			g.Expect(d.Certificates()).To(BeEmpty())
		})
	}
}

// run runs an agent whose certificate comes over SDS until the test ends, or stop is
// called.
func run(t *testing.T, spec proxy.Spec) (d *diary, stop func()) {
	types := credential.Must(xdsprobe.NewTypes(xdsprobe.EnvoyTypesWithSecrets()))
	d = &diary{store: xdsprobe.NewStoreOf(types)}
	d.agent = credential.Must(New(spec, Services{Store: d.store, Observer: d, BackoffBase: time.Millisecond, BackoffMax: 4 * time.Millisecond}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var err error
	go func() { err = d.agent.Run(ctx); close(done) }()
	stop = func() {
		cancel()
		<-done
		if err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return d, stop
}
