package cluster

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"scaler.mesh/scaler/internal/process"
)

// Names of the components, as in [Component.Name], states and metrics.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

// serviceRange overlaps neither with the addresses that KWOK gives pods,
// 10.64.0.0/10, nor with those of fake nodes, 10.1.0.0/16.
const serviceRange = "10.0.0.0/16"

// kubernetesServiceIP is the first of serviceRange, which is the address of
// the service "kubernetes".
var kubernetesServiceIP = net.IPv4(10, 0, 0, 1)

// Controllers that a mesh of Deployments and Services needs. The others would
// watch the same objects and only cost: among them the one that writes each
// EndpointSlice a second time, as Endpoints.
var controllers = []string{
	"deployment-controller",
	"replicaset-controller",
	"endpointslice-controller",
	"serviceaccount-controller",
	"root-ca-certificate-publisher-controller",
	"namespace-controller",
	"garbage-collector-controller",
	"pod-garbage-collector-controller",
	"node-lifecycle-controller", // takes the not-ready taint off new nodes
	"daemonset-controller",
	"statefulset-controller",
	"job-controller",
	"clusterrole-aggregation-controller",
}

// ports are the TCP ports of one cluster, all on 127.0.0.1.
type ports struct{ etcd, etcdPeer, apiServer, controllerManager, scheduler, kwok int }

func choosePorts() (ports, error) {
	p, err := process.FreePorts(6)
	if err != nil {
		return ports{}, err
	}
	return ports{p[0], p[1], p[2], p[3], p[4], p[5]}, nil
}

// layout says where a cluster keeps what.
type layout struct {
	dir, logDir string
	ports       ports
	pki         pki
}

func (l layout) kubeconfig() string      { return kubeconfigIn(l.dir) }
func (l layout) kwokConfig() string      { return filepath.Join(l.dir, "kwok.yaml") }
func (l layout) log(name string) string  { return filepath.Join(l.logDir, name+".log") }
func (l layout) server() string          { return "https://" + address(l.ports.apiServer) }
func (l layout) pkiDir() string          { return filepath.Join(l.dir, "pki") }
func (l layout) dataDir() string         { return filepath.Join(l.dir, "etcd") }
func kubeconfigIn(dir string) string     { return filepath.Join(dir, "kubeconfig") }
func address(port int) string            { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
func httpsMetrics(port int) string       { return "https://" + address(port) + "/metrics" }
func flag(name string, value any) string { return fmt.Sprintf("--%s=%v", name, value) }

// files are all files and folders that a cluster makes, except its logs.
func (l layout) files() []string {
	return []string{l.kubeconfig(), l.kwokConfig(), filepath.Join(l.dir, aboutName), l.pkiDir(), l.dataDir()}
}

func (l layout) etcdArgs() []string {
	client, peer := "http://"+address(l.ports.etcd), "http://"+address(l.ports.etcdPeer)
	return []string{
		flag("name", "default"),
		flag("data-dir", l.dataDir()),
		flag("listen-client-urls", client),
		flag("advertise-client-urls", client),
		flag("listen-peer-urls", peer),
		flag("initial-advertise-peer-urls", peer),
		flag("initial-cluster", "default="+peer),
		// The data need not outlive the machine, and a slow disk is not what is
		// measured.
		"--unsafe-no-fsync",
		flag("quota-backend-bytes", 8<<30),
	}
}

func (l layout) apiServerArgs() []string {
	return []string{
		flag("etcd-servers", "http://"+address(l.ports.etcd)),
		flag("bind-address", "127.0.0.1"),
		flag("secure-port", l.ports.apiServer),
		// Endpoints cannot be loopback addresses: the service "kubernetes" has
		// none, and the address is stated only because it would otherwise be
		// looked for on other interfaces, which there may not be.
		flag("advertise-address", "127.0.0.1"),
		flag("endpoint-reconciler-type", "none"),
		flag("service-cluster-ip-range", serviceRange),
		flag("tls-cert-file", l.pki.ServerCert),
		flag("tls-private-key-file", l.pki.ServerKey),
		flag("client-ca-file", l.pki.CA),
		flag("authorization-mode", "Node,RBAC"),
		flag("allow-privileged", true),
		flag("service-account-issuer", "https://kubernetes.default.svc.cluster.local"),
		flag("service-account-key-file", l.pki.ServiceAccountVerifierKey),
		flag("service-account-signing-key-file", l.pki.ServiceAccountKey),
		// No limits: a rollout of everything at once is what is asked for.
		flag("max-requests-inflight", 0),
		flag("max-mutating-requests-inflight", 0),
		flag("enable-priority-and-fairness", false),
	}
}

// unlimited are the flags of the Kubernetes programs that lift their clients'
// own rate limits.
func unlimited() []string {
	return []string{flag("kube-api-qps", 5000), flag("kube-api-burst", 10000)}
}

// secureServing are the flags of controller-manager and scheduler for an HTTPS
// port that any client of the cluster's authority may scrape.
func (l layout) secureServing(port int) []string {
	return []string{
		flag("bind-address", "127.0.0.1"),
		flag("secure-port", port),
		flag("tls-cert-file", l.pki.ServerCert),
		flag("tls-private-key-file", l.pki.ServerKey),
		flag("client-ca-file", l.pki.CA),
		flag("authentication-skip-lookup", true),
		flag("authorization-always-allow-paths", "/healthz,/readyz,/livez,/metrics"),
	}
}

func (l layout) controllerManagerArgs() []string {
	args := []string{
		flag("kubeconfig", l.kubeconfig()),
		flag("leader-elect", false),
		flag("controllers", strings.Join(controllers, ",")),
		flag("root-ca-file", l.pki.CA),
		flag("service-account-private-key-file", l.pki.ServiceAccountKey),
		// KWOK refreshes its nodes every 5 minutes and holds no leases.
		flag("node-monitor-grace-period", "1h"),
		// With the default, 5 at a time, a rollout waits for the round trips of
		// its webhook rather than for a processor.
		flag("concurrent-deployment-syncs", 20),
		flag("concurrent-replicaset-syncs", 20),
		flag("concurrent-service-endpoint-syncs", 20),
		flag("concurrent-namespace-syncs", 20),
		// A ReplicaSet that is synced again before the watch delivered its own
		// last write would be put off by a limiter that all of them share, at 10
		// a second: a rollout of hundreds at once ran into it, as into a wall.
		flag("feature-gates", "StaleControllerConsistencyReplicaSet=false"),
	}
	return append(append(args, unlimited()...), l.secureServing(l.ports.controllerManager)...)
}

func (l layout) schedulerArgs() []string {
	args := []string{
		flag("kubeconfig", l.kubeconfig()),
		flag("leader-elect", false),
	}
	return append(append(args, unlimited()...), l.secureServing(l.ports.scheduler)...)
}

func (l layout) kwokArgs() []string {
	return []string{
		flag("kubeconfig", l.kubeconfig()),
		flag("config", l.kwokConfig()),
		flag("server-address", address(l.ports.kwok)),
	}
}
