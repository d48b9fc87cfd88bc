package doctor

// CheckSidecars checks what so many simulated sidecars need that run by
// themselves, without a cluster beside them: open files, whose limit it raises
// where that is allowed, and outgoing ports.
func CheckSidecars(n int) []Result {
	return []Result{checkOpenFiles(n), checkOutgoingPorts(n)}
}
