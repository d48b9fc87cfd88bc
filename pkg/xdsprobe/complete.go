package xdsprobe

import "scaler.mesh/scaler/pkg/convergence"

// complete reports whether everything that the sidecar asked for on its current
// stream was answered: both wildcards, and every name that what it holds names.
// Nothing waits to be acknowledged beside what is being sent now. A server of
// the state-of-the-world variant that does not have a name cannot say so; asked
// for it, a sidecar is not complete.
func (st *state) complete() bool {
	if len(st.waiting) > 0 || st.tables[convergence.CDS].nonce == "" || st.tables[convergence.LDS].nonce == "" {
		return false
	}
	for _, t := range []convergence.Type{convergence.EDS, convergence.RDS, convergence.ECDS} {
		if !st.tables[t].answered() {
			return false
		}
	}
	return true
}
