// Package cluster runs embedded Kubernetes clusters: etcd, the API server,
// controller-manager, scheduler and KWOK as processes of this machine, each
// cluster on ports and in a folder of its own, so that several run side by
// side. There are no real nodes; KWOK plays those annotated for it.
//
// Its settings remove limits that would otherwise be measured instead of the mesh:
// client-side rate limits, fsync, queueing of requests by fairness. They are all in
// components.go, each with its stock value, reason and effect, from where
// [Settings], the record and docs/reference/embedded-cluster.md have them.
//
// It is given the programs and what KWOK plays; it creates no nodes and no
// workloads.
package cluster
