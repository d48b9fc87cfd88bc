package doctor

// CheckSidecars checks what so many simulated sidecars, with so many connections
// each, need that run by themselves, without a cluster beside them: open files,
// whose limit it raises where that is allowed, and outgoing ports.
func CheckSidecars(n, connections int) []Result {
	return []Result{checkConnections(n, connections), checkOutgoingPorts(n)}
}
