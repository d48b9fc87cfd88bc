package cluster

import (
	"net"
	"path/filepath"
	"slices"
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

// podGC deletes pods whose node the API server does not know.
const podGC = "pod-garbage-collector-controller"

// controllers are the controllers that a mesh of Deployments and Services needs. The
// others would watch the same objects and only add cost, for example the one that writes
// each EndpointSlice a second time, as Endpoints.
var controllers = []string{
	"deployment-controller",
	"replicaset-controller",
	"endpointslice-controller",
	"serviceaccount-controller",
	"root-ca-certificate-publisher-controller",
	"namespace-controller",
	"garbage-collector-controller",
	podGC,
	"node-lifecycle-controller", // takes the not-ready taint off new nodes
	"daemonset-controller",
	"statefulset-controller",
	"job-controller",
	"clusterrole-aggregation-controller",
}

// controllers returns the controllers to run.
func (o Options) controllers() []string {
	all := slices.Concat(controllers, o.Controllers)
	if o.WithoutPodGC {
		all = slices.DeleteFunc(all, func(name string) bool { return name == podGC })
	}
	return all
}

// etcdSocket is the Unix socket by which the API server reaches etcd. It is in the folder of the cluster, in which the programs run: its
// whole path could be longer than the 107 bytes that the path of a socket may have.
const (
	etcdSocket     = "unix://" + etcdSocketFile
	etcdSocketFile = "etcd.sock"
)

// ports are the TCP ports of one cluster, all on 127.0.0.1. That of etcd is for its metrics.
type ports struct{ etcd, etcdPeer, apiServer, controllerManager, scheduler, kwok int }

func choosePorts() (ports, error) {
	p, err := process.FreePorts(6)
	if err != nil {
		return ports{}, err
	}
	return ports{p[0], p[1], p[2], p[3], p[4], p[5]}, nil
}

// layout states where a cluster keeps what.
type layout struct {
	dir, logDir string
	ports       ports
	pki         pki
	controllers []string // that run
}

func (l layout) kubeconfig() string { return kubeconfigIn(l.dir) }

// clientKubeconfig returns the path of the kubeconfig of controller-manager and
// scheduler.
func (l layout) clientKubeconfig() string { return filepath.Join(l.dir, "client.kubeconfig") }
func (l layout) kwokConfig() string       { return filepath.Join(l.dir, "kwok.yaml") }
func (l layout) log(name string) string   { return filepath.Join(l.logDir, name+".log") }
func (l layout) server() string           { return "https://" + address(l.ports.apiServer) }
func (l layout) pkiDir() string           { return filepath.Join(l.dir, "pki") }
func (l layout) dataDir() string          { return filepath.Join(l.dir, "etcd") }
func kubeconfigIn(dir string) string      { return filepath.Join(dir, "kubeconfig") }
func address(port int) string             { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
func httpsMetrics(port int) string        { return "https://" + address(port) + "/metrics" }

// files returns all files and folders that a cluster makes, except its logs.
func (l layout) files() []string {
	return []string{
		l.kubeconfig(), l.clientKubeconfig(), l.kwokConfig(), filepath.Join(l.dir, aboutName), l.pkiDir(), l.dataDir(), filepath.Join(l.dir, etcdSocketFile),
	}
}

func (l layout) etcdArgs() []arg {
	client, peer := "https://"+address(l.ports.etcd), "https://"+address(l.ports.etcdPeer)
	return []arg{
		wire("name", "default"),
		wire("data-dir", l.dataDir()),
		wire("listen-client-urls", client+","+etcdSocket),
		wire("advertise-client-urls", client),
		wire("listen-peer-urls", peer),
		wire("initial-advertise-peer-urls", peer),
		wire("initial-cluster", "default="+peer),
		// As in kubeadm: other users of this machine can reach the port.
		wire("client-cert-auth", true),
		wire("trusted-ca-file", l.pki.CA),
		wire("cert-file", l.pki.ServerCert),
		wire("key-file", l.pki.ServerKey),
		wire("peer-client-cert-auth", true),
		wire("peer-trusted-ca-file", l.pki.CA),
		wire("peer-cert-file", l.pki.ServerCert),
		wire("peer-key-file", l.pki.ServerKey),
		differs("enable-grpc-gateway", false, "true",
			"It is a second API of etcd, over HTTP, that nothing here uses, and a client that would need a certificate.",
			"None: the API server uses the first."),
		differs("unsafe-no-fsync", true, "false",
			"The data need not outlive the machine, and the speed of its disk is not what is measured.",
			"A write does not wait for the disk: the API server answers sooner than with a synced etcd, and pod admission, endpoint changes and the rollout as a whole are faster on slow disks."),
		differs("quota-backend-bytes", 8<<30, "2 GiB",
			"A large rollout can write more between two compactions than a stock etcd may hold.",
			"None, unless a run would exceed the stock limit: then it would fail."),
	}
}

func (l layout) apiServerArgs() []arg {
	return []arg{
		differs("etcd-servers", etcdSocket, "https://HOST:2379",
			"The API server has a connection to etcd for each kind of object. TLS for them took an eighth of the processor time of both programs in runs of 5 pods. The socket is in a folder that only the user may enter.",
			"API server and etcd use less processor time."),
		wire("bind-address", "127.0.0.1"),
		wire("secure-port", l.ports.apiServer),
		// The address is given only because the program would otherwise look for one on
		// other interfaces, which may not exist.
		wire("advertise-address", "127.0.0.1"),
		differs("endpoint-reconciler-type", "none", "lease",
			"Endpoints cannot be loopback addresses, so the service kubernetes has none.",
			"None: no simulated pod calls the API server through it."),
		wire("service-cluster-ip-range", serviceRange),
		differs("service-node-port-range", "1-65535", "30000-32767",
			"A captured mesh, or several copies of one, may have more ports of Services of type NodePort.",
			"None: node ports are numbers that no simulated pod uses."),
		wire("tls-cert-file", l.pki.ServerCert),
		wire("tls-private-key-file", l.pki.ServerKey),
		wire("client-ca-file", l.pki.CA),
		wire("authorization-mode", "Node,RBAC"),                                   // as kubeadm has it
		wire("allow-privileged", true),                                            // as kubeadm has it
		wire("kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname"), // as kubeadm has it
		wire("service-account-issuer", "https://kubernetes.default.svc.cluster.local"),
		wire("service-account-key-file", l.pki.ServiceAccountVerifierKey),
		wire("service-account-signing-key-file", l.pki.ServiceAccountKey),
		differs("max-requests-inflight", 0, "400",
			"A rollout of everything at once is what is asked for; a limit would be measured instead of the mesh.",
			"Reads are never refused: they are limited by processors alone, and the API server has higher peaks of cores and memory."),
		differs("max-mutating-requests-inflight", 0, "200",
			"As max-requests-inflight.",
			"The same for writes: pods are admitted as fast as the injection webhook and etcd allow."),
		differs("enable-priority-and-fairness", false, "true",
			"It shares the API server fairly between users. scaler is one user that stands for thousands, so it would be slowed down where real proxies are not.",
			"Token requests and status updates are not queued: the latencies of tokens, certificates and pod readiness do not include such a queue."),
	}
}

// unlimited returns the flags of the Kubernetes programs that lift their clients' own
// rate limits.
func unlimited(qps, burst string) []arg {
	const reason = "Objects are to be processed as fast as processors allow; the stock limit would set the rollout's pace."
	return []arg{
		differs("kube-api-qps", 5000, qps, reason,
			"Pods, ReplicaSets, endpoints and bindings are written without waiting: the rollout takes less time, and the control plane gets its changes at a higher rate."),
		differs("kube-api-burst", 10000, burst, reason, "As kube-api-qps."),
	}
}

// seldomCollected is the environment of all programs.
var seldomCollected = []arg{
	differs("GOGC", 300, "100",
		"Collecting garbage is an eighth of what the API server uses. With this, its heap may grow to four times what is live instead of twice.",
		"The programs of the cluster use less processor time and more memory. The control plane is not one of them."),
}

// standalone returns the flag that disables the leader election of a program with one
// replica.
func standalone() arg {
	return differs("leader-elect", false, "true",
		"There is one replica.",
		"It starts at once, and the API server has no lease updates from it, one every 2 s.")
}

// secureServing returns the flags of controller-manager and scheduler for an HTTPS port
// that any client with a certificate of the cluster's authority may scrape.
func (l layout) secureServing(port int) []arg {
	return []arg{
		wire("bind-address", "127.0.0.1"),
		wire("secure-port", port),
		wire("tls-cert-file", l.pki.ServerCert),
		wire("tls-private-key-file", l.pki.ServerKey),
		wire("client-ca-file", l.pki.CA),
		wire("authentication-skip-lookup", true),
		wire("authorization-always-allow-paths", "/healthz,/readyz,/livez,/metrics"), // the last is added, to be scraped
	}
}

func (l layout) controllerManagerArgs() []arg {
	// With the default, a rollout waits for the round trips of its webhook rather
	// than for a processor.
	workers := func(name, stock string) arg {
		return differs(name, 20, stock,
			"With the stock number, controllers wait for the round trips of the injection webhook instead of for a processor.",
			"Objects are created by more workers at once: more requests and webhook calls at the same time, and a shorter rollout.")
	}
	args := []arg{
		wire("kubeconfig", l.clientKubeconfig()),
		standalone(),
		differs("controllers", strings.Join(l.controllers, ","), "*",
			"These are what a mesh of Deployments and Services needs. Each of the others watches the same objects; one of them writes every EndpointSlice a second time, as Endpoints.",
			"Controller-manager and API server use less processor time and memory, and etcd has fewer writes."),
		wire("root-ca-file", l.pki.CA),
		wire("service-account-private-key-file", l.pki.ServiceAccountKey),
		differs("node-monitor-grace-period", "1h", "50s",
			"KWOK refreshes its nodes every 5 minutes and holds no leases.",
			"Fake nodes never become NotReady, so pods are not evicted when the machine is overloaded."),
		workers("concurrent-deployment-syncs", "5"),
		workers("concurrent-replicaset-syncs", "5"),
		workers("concurrent-service-endpoint-syncs", "5"),
		differs("concurrent-namespace-syncs", 20, "10",
			"The namespaces of a run are deleted together at its end.",
			"None: that is after the last phase."),
		differs("feature-gates", "StaleControllerConsistencyReplicaSet=false", "StaleControllerConsistencyReplicaSet=true",
			"A ReplicaSet that is synced again before the watch delivered its own last write would be put off by a limiter that all of them share, at 10 a second.",
			"A rollout of hundreds of Deployments at once is not held to that rate."),
	}
	return append(append(args, unlimited("20", "30")...), l.secureServing(l.ports.controllerManager)...)
}

func (l layout) schedulerArgs() []arg {
	args := []arg{
		wire("kubeconfig", l.clientKubeconfig()),
		standalone(),
	}
	return append(append(args, unlimited("50", "100")...), l.secureServing(l.ports.scheduler)...)
}

func (l layout) kwokArgs() []arg {
	return []arg{
		wire("kubeconfig", l.kubeconfig()),
		wire("config", l.kwokConfig()),
		wire("server-address", address(l.ports.kwok)),
	}
}
