package main

import "path/filepath"

// site has the parts of the machine that belong to a node. None of its addresses is one of fake nodes or pods
// (package kwok).
type site struct {
	name string // of the node
	// group is the node's control group in each hierarchy.
	group string
	// link is the machine's end of the pair of interfaces between machine and node.
	link            string
	machine, linked string // addresses of the machine's end and of the node's
	links           string // range of both
	pods            string // range of the addresses of its pods
	between         string // its address on the pair of interfaces between the nodes
}

// sites are the sites of all nodes that the machine can have. The cluster and its context have the
// name of the first, and the machine reaches Services through it.
var sites = []site{
	{
		name: name, group: "scaler-realnode", link: "scaler-realnode",
		machine: machineAddress, linked: "172.31.255.2", links: "172.31.255.0/30", pods: "10.2.0.0/24", between: "172.31.255.9",
	},
	{
		name: name + "-2", group: "scaler-realnode-2", link: "scaler-realnod2",
		machine: "172.31.255.5", linked: "172.31.255.6", links: "172.31.255.4/30", pods: "10.2.1.0/24", between: "172.31.255.10",
	},
}

const (
	// name is the name of the cluster, of its context, and of the first node.
	name = "realnode"
	// machineAddress is the address at which nodes and pods reach the API server and DNS.
	machineAddress = "172.31.255.1"
	podRange       = "10.2.0.0/23" // of the pods of all nodes
	serviceRange   = "10.0.0.0/16" // that of embedded clusters
)

// dir has the node's files. It is not below scaler's own folder, where `scaler cleanup` would
// remove what is left after a kill, but not the node's control groups.
func (s site) dir(o options) string { return o.state + "-" + s.name }

// file returns one of the node's files.
func (s site) file(o options, name string) string { return filepath.Join(s.dir(o), name) }

// logDir has the logs of the node, also after a start that failed.
func (s site) logDir(o options) string { return s.dir(o) + "-logs" }
