package component

import (
	_ "embed"
)

// The pinned module graphs of the programs of a real node.
var (
	//go:embed modules/kubernetes-node.mod
	kubernetesNodeMod string
	//go:embed modules/kubernetes-node.sum
	kubernetesNodeSum string
	//go:embed modules/containerd.mod
	containerdMod string
	//go:embed modules/containerd.sum
	containerdSum string
	//go:embed modules/cni.mod
	cniMod string
	//go:embed modules/cni.sum
	cniSum string
)

// The programs of a real node, which is for tests: Paths and Build know them by name; Names, List
// and a Build of all leave them out.
const (
	Kubelet        = "kubelet"
	KubeProxy      = "kube-proxy"
	Containerd     = "containerd"
	ContainerdShim = "containerd-shim-runc-v2"
	Ctr            = "ctr"        // the command-line client of containerd
	CNIPtp         = "ptp"        // the CNI plugin that connects a pod with its node
	CNIHostLocal   = "host-local" // the CNI plugin that gives pods addresses
)

const containerdVersion = "v2.4.2"

// nodeGraphs are the graphs of a real node's programs.
var nodeGraphs = []graph{
	{
		forTests: true, name: "kubernetes-node", title: "Kubernetes' node", mod: kubernetesNodeMod, sum: kubernetesNodeSum, minutes: 4,
		stamps: kubernetesStamps("1", "36", "v1.36.3"),
		programs: []program{
			{Kubelet, "v1.36.3", "k8s.io/kubernetes/cmd/kubelet", Kubelet, []string{"--version"}},
			{KubeProxy, "v1.36.3", "k8s.io/kubernetes/cmd/kube-proxy", KubeProxy, []string{"--version"}},
		},
	},
	{
		forTests: true, name: "containerd", title: "containerd", mod: containerdMod, sum: containerdSum, minutes: 2,
		tags:   "no_btrfs,no_devmapper", // these snapshotters need libraries in C
		stamps: []string{"github.com/containerd/containerd/v2/version.Version=" + containerdVersion},
		programs: []program{
			{Containerd, containerdVersion, "github.com/containerd/containerd/v2/cmd/containerd", Containerd, []string{"--version"}},
			{ContainerdShim, containerdVersion, "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", ContainerdShim, []string{"-v"}},
			{Ctr, containerdVersion, "github.com/containerd/containerd/v2/cmd/ctr", Ctr, []string{"--version"}},
		},
	},
	{
		forTests: true, name: "cni", title: "CNI plugins", mod: cniMod, sum: cniSum, minutes: 1,
		stamps: []string{"github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=v1.9.1"},
		programs: []program{
			{CNIPtp, "v1.9.1", "github.com/containernetworking/plugins/plugins/main/ptp", CNIPtp, []string{"--version"}},
			{CNIHostLocal, "v1.9.1", "github.com/containernetworking/plugins/plugins/ipam/host-local", CNIHostLocal, []string{"--version"}},
		},
	},
}
