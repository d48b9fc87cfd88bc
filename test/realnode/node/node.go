package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/test/realnode/nodeprograms"
)

// apiPort is the port of machineAddress that leads to the API server, which listens on loopback.
const apiPort = 6443

// nodeUp starts the node's processes, and returns when the node is ready.
func (s site) nodeUp(ctx context.Context, o options, paths map[string]string, kubeconfig string) error {
	if err := os.RemoveAll(s.logDir(o)); err != nil {
		return err
	}
	tools, err := findTools(ctx, o)
	if err != nil {
		return err
	}
	group, err := process.OpenGroup(s.dir(o), process.GroupOptions{Keep: true})
	if err != nil {
		return err
	}
	n := node{o: o, site: s, paths: paths, tools: tools, group: group, kubeconfig: kubeconfig}
	if err := n.start(ctx); err != nil {
		// What nodeDown finds: the caller undoes.
		return errors.Join(fmt.Errorf("starting the node: %w", err), group.MarkKept())
	}
	return group.MarkKept()
}

// node is one that is being started.
type node struct {
	o          options
	site       site
	paths      map[string]string
	tools      tools
	group      *process.Group
	kubeconfig string // of the cluster, as the machine reaches it
	groups     string // the control group of its processes
	holder     int    // the process that has its namespaces
}

func (n *node) start(ctx context.Context) (err error) {
	if err := n.site.saveSettings(n.o); err != nil {
		return err
	}
	if n.groups, err = n.site.makeGroups(); err != nil {
		return err
	}
	if err := n.openNamespaces(ctx); err != nil {
		return err
	}
	if err := n.site.makeLink(ctx, n.holder); err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(n.kubeconfig)
	if err != nil {
		return err
	}
	for _, c := range config.Clusters {
		server := strings.TrimPrefix(c.Server, "https://")
		if n.site.name == name {
			if err := n.serve(ctx, server); err != nil {
				return err
			}
		}
		c.Server, c.TLSServerName = "https://"+net.JoinHostPort(machineAddress, strconv.Itoa(apiPort)), "localhost"
	}
	if err := clientcmd.WriteToFile(*config, n.file("kubeconfig")); err != nil {
		return err
	}
	if err := n.writeFiles(); err != nil {
		return err
	}
	if err := publishAPIServer(ctx, n.kubeconfig); err != nil {
		return err
	}
	progress("starting containerd")
	containerd, err := n.run(nodeprograms.Containerd, "--config", n.file("containerd.toml"))
	if err != nil {
		return err
	}
	err = containerd.WaitReady(ctx, func(ctx context.Context) error {
		_, err := command(ctx, n.paths[nodeprograms.Ctr], "--address", n.file("containerd.sock"), "version")
		return err
	})
	if err != nil {
		return err
	}
	progress("starting kubelet and kube-proxy")
	proxy, err := n.run(nodeprograms.KubeProxy, "--kubeconfig", n.file("kubeconfig"), "--proxy-mode=iptables", "--cluster-cidr="+podRange, "--hostname-override="+n.site.name,
		"--healthz-bind-address=127.0.0.1:10256", "--metrics-bind-address=127.0.0.1:10249", "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s")
	if err != nil {
		return err
	}
	args := []string{
		"--config", n.file("kubelet.yaml"), "--kubeconfig", n.file("kubeconfig"), "--root-dir", n.file("kubelet"),
		"--cert-dir", n.file("kubelet-pki"), "--hostname-override=" + n.site.name, "--node-ip=" + n.site.linked,
		"--containerd=" + n.file("containerd.sock"), // where its cAdvisor asks for the names of containers
	}
	if n.o.housekeeping > 0 {
		// On a busy machine cAdvisor misses the start of a container, and finds it by its global housekeeping.
		args = append(args, "--housekeeping-interval="+n.o.housekeeping.String(), "--global-housekeeping-interval="+n.o.housekeeping.String())
	}
	kubelet, err := n.run(nodeprograms.Kubelet, args...)
	if err != nil {
		return err
	}
	client, err := newClient(n.kubeconfig)
	if err != nil {
		return err
	}
	if err := kubelet.WaitReady(ctx, func(ctx context.Context) error { return n.ready(ctx, client) }); err != nil {
		return err
	}
	// Its service is the API server's, which pods on the node need.
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return proxy.WaitReady(ctx, func(ctx context.Context) error {
		_, err := command(ctx, "nsenter", "--target", strconv.Itoa(n.holder), "--net", self, "reach", "--to", "10.0.0.1:443")
		return err
	})
}

// file returns one of the node's files.
func (n *node) file(name string) string { return n.site.file(n.o, name) }

// ready fails until the node is.
func (n *node) ready(ctx context.Context, client kubernetes.Interface) error {
	node, err := client.CoreV1().Nodes().Get(ctx, n.site.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return errors.New(c.Message)
		}
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("it has taints: %v", node.Spec.Taints)
	}
	return nil
}

// child starts a process of the node on the machine.
func (n *node) child(name string, args ...string) (*process.Process, error) {
	return n.group.Start(process.Spec{
		Name: name, Path: "/bin/sh", Dir: n.site.dir(n.o), Log: filepath.Join(n.site.logDir(n.o), name+".log"),
		Args: append([]string{"-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, n.groups}, args...),
		Env:  []string{"PATH=" + n.tools.path(), "HOME=" + os.Getenv("HOME")},
	})
}

// run starts a program in the namespaces of the node.
func (n *node) run(program string, args ...string) (*process.Process, error) {
	return n.child(program, append([]string{"nsenter", "--target", strconv.Itoa(n.holder), "--net", "--mount", "--wd=" + n.site.dir(n.o), n.paths[program]}, args...)...)
}

// holder is the name of the process that has the namespaces of a node.
const holder = "namespaces"

// openNamespaces starts the process that has the node's namespaces.
func (n *node) openNamespaces(ctx context.Context) error {
	script := "mount --make-rshared /"
	for _, dir := range hiddenDirs {
		script += " && mount -t tmpfs -o mode=755 " + n.site.group + " " + dir
	}
	opened := n.file("namespaces")
	script += ` && echo 1 >/proc/sys/net/ipv4/ip_forward && : >"$0" && exec sleep infinity`
	opener, err := n.child(holder, "unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", script, opened)
	if err != nil {
		return err
	}
	n.holder = opener.PID()
	return opener.WaitReady(ctx, func(context.Context) error {
		_, err := os.Stat(opened)
		return err
	})
}

// serve starts this program as that which connects the node with what listens on loopback of
// the machine.
func (n *node) serve(ctx context.Context, server string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child, err := n.child("serve", self, "serve", "--to", server, "--kubeconfig", n.kubeconfig)
	if err != nil {
		return err
	}
	return child.WaitReady(ctx, func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(machineAddress, strconv.Itoa(apiPort)))
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// publishAPIServer makes the endpoint of the service kubernetes, which embedded clusters lack:
// their API server listens on loopback only.
func publishAPIServer(ctx context.Context, kubeconfig string) error {
	client, err := newClient(kubeconfig)
	if err != nil {
		return err
	}
	_, err = client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{machineAddress}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(apiPort))}},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func newClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Timeout = 10 * time.Second
	config.QPS = -1 // DNS queries are answered with it: a limit would be measured as the time of connections
	return kubernetes.NewForConfig(config)
}

// writeFiles writes the configuration of containerd, of CNI and of kubelet.
func (n *node) writeFiles() error {
	plugins := n.file("cni-plugins")
	for _, dir := range []string{plugins, n.file("cni"), n.file("bin")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, program := range []string{nodeprograms.CNIPtp, nodeprograms.CNIHostLocal} {
		if err := os.Symlink(n.paths[program], filepath.Join(plugins, program)); err != nil {
			return err
		}
	}
	files := map[string]string{
		"containerd.toml":     fmt.Sprintf(containerdConfig, n.site.dir(n.o), n.tools.wrapper("runc"), n.paths[nodeprograms.ContainerdShim], appImage),
		"cni/10-ptp.conflist": fmt.Sprintf(cniConfig, n.site.pods),
		"kubelet.yaml":        fmt.Sprintf(kubeletConfig, n.site.dir(n.o), n.site.linked, machineAddress, n.site.group),
	}
	for name, text := range files {
		if err := os.WriteFile(n.file(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// containerdConfig has the node's folder, runc, the shim, and the image of a pod's own container.
const containerdConfig = `version = 3
root = "%[1]s/containerd"
state = "/run/containerd"

[grpc]
  address = "%[1]s/containerd.sock"

[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/containerd-opt"

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "%[4]s"

[plugins."io.containerd.cri.v1.runtime"]
  # A negative score needs CAP_SYS_RESOURCE.
  restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["%[1]s/cni-plugins"]
  conf_dir = "%[1]s/cni"
  use_internal_loopback = true

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  runtime_path = "%[3]s"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "%[2]s"
`

// cniConfig has the addresses of pods. A pod is connected by a pair of interfaces, and packets to
// the machine keep its address.
const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "realnode",
  "plugins": [{
    "type": "ptp",
    "ipMasq": false,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`

// kubeletConfig has the node's folder, the node's address, that of DNS, and the node's control
// group. Only this machine reaches the node's address, so that any request is allowed.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[2]s
authentication:
  anonymous:
    enabled: true
  webhook:
    enabled: false
authorization:
  mode: AlwaysAllow
cgroupDriver: cgroupfs
cgroupRoot: /%[4]s
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix://%[1]s/containerd.sock
clusterDNS: [%[3]s]
clusterDomain: cluster.local
resolvConf: ""
makeIPTablesUtilChains: false
podLogsDir: %[1]s/pods
volumePluginDir: %[1]s/volume-plugins
imageGCHighThresholdPercent: 100
evictionHard:
  memory.available: 1Mi
`
