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

// RealProxies are what real proxies, as processes of this host, need of a control plane.
type RealProxies struct {
	// PodProxy is how the proxy of a pod runs that has its IP. It sends and receives
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
	// HostProxy is how the proxy of a workload of this host runs.
	HostProxy(w HostWorkload, at ProxyPlace) (RealProxy, error)
	// HostToken requests a token of the workload's service account.
	HostToken(ctx context.Context, w HostWorkload) (proxy.Token, error)
	// HostObjects are what makes services of this host, and workloads that serve
	// or call them, part of the mesh, accounts included; namespaces are there
	// already. They carry no run label yet.
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

// ProxyPlace is where a real proxy runs and what it may use there.
type ProxyPlace struct {
	Envoy     string // the program that is to be started as Envoy
	Discovery string // host:port of ADS and certificates; "" = the control plane's own
	Ports     ProxyPorts
	// Own reports that the proxy has the network namespace of its pod, to which the pod's connections
	// are redirected: its ports are as in that pod, so that Ports and Discovery do not count. Needs
	// LatencyPath.Intercepts.
	Own bool
	// Concurrency is how many worker threads Envoy has; 0 = what the control
	// plane's proxies have by default.
	Concurrency int
	// CertificateLifetime is what its agent asks for; 0 = 24 h, as agents do by
	// themselves (SECRET_TTL). A proxy without an agent asks for nothing.
	CertificateLifetime time.Duration
}

// Interception is what the network namespace of a pod has for its proxy.
type Interception struct {
	// Rules are those of the table nat that the pod's init container sets, as iptables-restore reads
	// them.
	Rules string
	Admin int // port of the proxy's admin interface, on 127.0.0.1
	// Reaches are ports of 127.0.0.1 that are passed on to addresses of this host.
	Reaches map[int]string
	// OtherIdentity is how a program with a certificate of the mesh, but of an identity that no policy allows,
	// connects to the proxy of a service; nil = that cannot be tried.
	OtherIdentity func(service topology.Service) *tls.Config
}

// ProxyPorts are ports of this host that nobody uses: no two proxies share one.
type ProxyPorts struct {
	Admin   int // Envoy's admin interface, on 127.0.0.1
	Metrics int // Envoy's own metrics
	Ready   int // Envoy's readiness
}

// RealProxy is how a real proxy runs, in a folder of its own. All paths in it
// are relative to that folder, which is the working folder of what is started.
type RealProxy struct {
	// Agent reports that an agent (component pilot-agent) is started, with Args and
	// Env, and starts Envoy itself; false: Envoy is started, with Args.
	Agent bool
	Args  []string
	Env   []string
	Files map[string][]byte
	// Cluster is what Envoy's bootstrap calls the cluster that ADS comes over.
	Cluster string
	// Certificate is the secret that its certificate for others comes in, over SDS; "" = it has one
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
	// Interception is that of its pod; nil without ProxyPlace.Own.
	Interception *Interception
}
