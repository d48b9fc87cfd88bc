// Package nodeprograms pins the programs of a real node: kubelet, kube-proxy, containerd and CNI
// plugins. Package component builds them, with Graphs in its Options.
package nodeprograms

import (
	_ "embed"

	"scaler.mesh/scaler/internal/component"
)

// The pinned module graphs. hack/update-modules.sh writes the .sum files from the .mod files,
// hack/verify-modules.sh checks them.
var (
	//go:embed modules/kubernetes-node.mod
	kubernetesMod string
	//go:embed modules/kubernetes-node.sum
	kubernetesSum string
	//go:embed modules/containerd.mod
	containerdMod string
	//go:embed modules/containerd.sum
	containerdSum string
	//go:embed modules/cni.mod
	cniMod string
	//go:embed modules/cni.sum
	cniSum string
)

// The programs.
const (
	Kubelet        = "kubelet"
	KubeProxy      = "kube-proxy"
	Containerd     = "containerd"
	ContainerdShim = "containerd-shim-runc-v2"
	Ctr            = "ctr"        // the command-line client of containerd
	CNIPtp         = "ptp"        // the CNI plugin that connects a pod with its node
	CNIHostLocal   = "host-local" // the CNI plugin that gives pods addresses
)

const (
	containerdVersion = "v2.4.2"
	cniVersion        = "v1.9.1"
)

// Names lists all programs.
func Names() []string {
	var all []string
	for _, g := range Graphs() {
		for _, p := range g.Programs {
			all = append(all, p.Name)
		}
	}
	return all
}

// Graphs gives the module graphs, for component.Options. Kubernetes is that of the control plane.
func Graphs() []component.Graph {
	kubernetes := component.Version(component.KubeAPIServer)
	return []component.Graph{
		{
			Name: "kubernetes-node", Title: "Kubernetes' node", Mod: kubernetesMod, Sum: kubernetesSum,
			Stamps: component.KubernetesStamps(kubernetes),
			Programs: []component.Program{
				{Name: Kubelet, Version: kubernetes, Package: "k8s.io/kubernetes/cmd/kubelet", Output: Kubelet, Ask: []string{"--version"}},
				{Name: KubeProxy, Version: kubernetes, Package: "k8s.io/kubernetes/cmd/kube-proxy", Output: KubeProxy, Ask: []string{"--version"}},
			},
		},
		{
			Name: "containerd", Title: "containerd", Mod: containerdMod, Sum: containerdSum,
			Tags:   "no_btrfs,no_devmapper", // these snapshotters need libraries in C
			Stamps: []string{"github.com/containerd/containerd/v2/version.Version=" + containerdVersion},
			Programs: []component.Program{
				{Name: Containerd, Version: containerdVersion, Package: "github.com/containerd/containerd/v2/cmd/containerd", Output: Containerd, Ask: []string{"--version"}},
				{Name: ContainerdShim, Version: containerdVersion, Package: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", Output: ContainerdShim, Ask: []string{"-v"}},
				{Name: Ctr, Version: containerdVersion, Package: "github.com/containerd/containerd/v2/cmd/ctr", Output: Ctr, Ask: []string{"--version"}},
			},
		},
		{
			Name: "cni", Title: "CNI plugins", Mod: cniMod, Sum: cniSum,
			Stamps: []string{"github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=" + cniVersion},
			Programs: []component.Program{
				{Name: CNIPtp, Version: cniVersion, Package: "github.com/containernetworking/plugins/plugins/main/ptp", Output: CNIPtp, Ask: []string{"--version"}},
				{Name: CNIHostLocal, Version: cniVersion, Package: "github.com/containernetworking/plugins/plugins/ipam/host-local", Output: CNIHostLocal, Ask: []string{"--version"}},
			},
		},
	}
}
