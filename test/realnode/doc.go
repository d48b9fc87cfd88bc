// Package realnode has the programs of a real node, which test/e2e runs scaler with: containerd,
// kubelet and kube-proxy as processes of this machine, and istiod as a pod. node starts and removes
// the node, nodeprograms pins its programs, app is what its images contain in addition to Istio's
// programs.
package realnode
