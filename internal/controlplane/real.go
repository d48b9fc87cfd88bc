package controlplane

import (
	"context"
	"crypto/tls"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/proxy"
)

// RealProxies are the functions of a control plane that real proxies, as processes of this host, need.
type RealProxies struct {
	// PodProxy states how to run the proxy of a pod, with the pod's IP. It sends and receives
	// what it would in that pod.
	PodProxy func(pod *corev1.Pod, at ProxyPlace) (RealProxy, error)
	// Token requests a token bound to that very pod, of which only namespace, name, UID and service
	// account are read. Whoever starts the pod's proxy asks for it; nil: the proxies need none.
	Token func(ctx context.Context, pod *corev1.Pod) (proxy.Token, error)
	// Issuer is the certificate client of one proxy without an agent, which cannot request its
	// certificate itself. It does not connect yet. nil: the proxies request theirs themselves, or have one.
	Issuer func(spec proxy.Spec) (Issuer, error)
	Host   HostWorkloads // nil: workloads of this host cannot join
}

// HostWorkloads are workloads of this host that are no pods, each with a real
// proxy.
type HostWorkloads interface {
	// HostProxy returns how to run the proxy of a workload of this host.
	HostProxy(w HostWorkload, at ProxyPlace) (RealProxy, error)
	// HostToken requests a token of the workload's service account.
	HostToken(ctx context.Context, w HostWorkload) (proxy.Token, error)
	// HostObjects returns the objects that make services of this host, and workloads that serve
	// or call them, part of the mesh, accounts included. Namespaces exist
	// already. The objects have no run label yet.
	HostObjects(services []HostService, workloads []HostWorkload) []*unstructured.Unstructured
}

// HostService is a service whose workloads are on this host.
type HostService struct {
	Namespace, Name string
	Host            string // that requests name, such as "echo.default.host"
	Port            int    // that it is called at
	HTTP2           bool   // its protocol; false = HTTP/1.1
	// Strict refuses plaintext, and every caller but Callers, whatever the knobs
	// of the mesh are.
	Strict  bool
	Callers []string // service accounts of its namespace
}

// HostWorkload is a workload of this host with its proxy. The proxy listens at
// Address alone; the application listens at 127.0.0.1.
type HostWorkload struct {
	Namespace, Name string // Name is one workload's, as "server-0"
	Account         string // its service account
	Address         string // of its own, such as "127.0.1.7"
	Serves          string // Name of the HostService that it is part of; "" = none
	ListenPort      int    // where the proxy takes requests for Serves, with mutual TLS as the knobs say
	AppPort         int    // where the application takes them
	// Egress are the services that the application calls: the proxy takes its
	// requests, in plain text and by their Host, at Address and the service's
	// port. Services with the same port have the same protocol.
	Egress []HostService
}

// ProxyPlace states where a real proxy runs and what it may use there.
type ProxyPlace struct {
	Envoy     string // the program that is to be started as Envoy
	Discovery string // host:port of ADS and certificates; "" = the control plane's own
	Ports     ProxyPorts
	// Own reports that the proxy has the network namespace of its pod, to which the pod's connections
	// are redirected: its ports are as in that pod, so that Ports and Discovery do not count. Needs
	// LatencyPath.Intercepts.
	Own bool
	// Concurrency is the number of worker threads of Envoy; 0 = the default of the
	// control plane's proxies.
	Concurrency int
	// CertificateLifetime is the lifetime that its agent requests; 0 = 24 h, the agents'
	// default (SECRET_TTL). A proxy without an agent requests nothing.
	CertificateLifetime time.Duration
}

// Interception describes the network namespace of a pod with a proxy.
type Interception struct {
	// Rules are the rules of the table nat that the pod's init container sets, in the format of
	// iptables-restore.
	Rules string
	Admin int // port of the proxy's admin interface, on 127.0.0.1
	// Reaches are ports of 127.0.0.1 that are passed on to addresses of this host.
	Reaches map[int]string
	// OtherIdentity returns the TLS configuration with which a program with a certificate of the mesh, but of an identity
	// that no policy allows, connects to the proxy of a service; nil = that cannot be tried.
	OtherIdentity func(service topology.Service) *tls.Config
}

// ProxyPorts are ports of this host that nobody uses: no two proxies share one.
type ProxyPorts struct {
	Admin   int // Envoy's admin interface, on 127.0.0.1
	Metrics int // Envoy's own metrics
	Ready   int // Envoy's readiness
}

// RealProxy describes a real proxy that runs in a folder of its own. All paths in it
// are relative to that folder, which is the working folder of its programs.
type RealProxy struct {
	// Agent reports that an agent (component pilot-agent) is started, with Args and
	// Env, and starts Envoy itself; false: Envoy is started, with Args.
	Agent bool
	Args  []string
	Env   []string
	Files map[string][]byte
	// Cluster is the name, in Envoy's bootstrap, of the cluster of the ADS server.
	Cluster string
	// Certificate is the name of the secret with its certificate, over SDS; "" = it has one
	// from its start.
	Certificate string
	// HoldsSecret reports of a secret of Envoy's whether it came over ADS; nil = none does.
	HoldsSecret func(name string) bool
	// TokenFile holds the proxy's token, which is to be renewed before it
	// expires; "" = none is needed.
	TokenFile string
	// KeyFile and ChainFile, where not "", hold a private key and its certificate
	// for Identity, both PEM, which whoever starts the proxy gets from the Issuer
	// of Sidecar.
	KeyFile, ChainFile string
	Sidecar            proxy.Spec
	// Interception is the interception of its pod; nil without ProxyPlace.Own.
	Interception *Interception
}
