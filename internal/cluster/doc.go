// Package cluster runs embedded Kubernetes clusters: etcd, the API server,
// controller-manager, scheduler and KWOK as processes of this machine, each cluster with
// its own ports and folder, so that several can run at the same time. There are no real
// nodes; KWOK simulates the nodes annotated for it.
//
// Its settings remove limits that would otherwise be measured instead of the mesh:
// client-side rate limits, fsync, queueing of requests by fairness. All of them are in
// components.go, each with its stock value, reason and effect; [Settings], the record and
// docs/reference/embedded-cluster.md are made from there.
//
// Its caller provides the programs and KWOK's configuration; it creates no nodes and no
// workloads.
package cluster
