// Package realnode has the suite that runs scaler in a cluster with a real node: containerd, kubelet
// and kube-proxy as processes of this machine, and istiod as a pod. It needs root, and is skipped
// where the machine lacks what a node needs. node starts and removes the node, nodeprograms pins its
// programs, app is what its images contain in addition to Istio's programs.
package realnode
