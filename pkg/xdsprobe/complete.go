package xdsprobe

// complete reports whether everything that the client subscribed to on its current
// stream was answered: every wildcard, except one whose FetchTimeout has passed, and every
// name that a resource held names.
// Nothing but what is being sent now waits to be acknowledged. A server of the
// state-of-the-world variant cannot report that it does not have a name; a client
// that subscribes to one is not complete.
func (st *state) complete() bool {
	if len(st.waiting) > 0 {
		return false
	}
	for _, k := range st.types.kinds {
		switch t := &st.tables[k.index]; {
		case k.wildcard() && t.nonce == "" && !t.overdue, !k.wildcard() && !t.answered():
			return false
		}
	}
	return true
}
