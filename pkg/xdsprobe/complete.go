package xdsprobe

// complete reports whether the server has answered everything that the client subscribed
// to on its current stream: every wildcard, except one whose FetchTimeout has passed, and
// every name that a held resource names. No acknowledgement is pending except those being
// sent now. A server of the state-of-the-world variant cannot report that it does not
// have a name; a client that subscribes to such a name is never complete.
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
