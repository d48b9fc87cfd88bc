package convergence

// Kind is a kind of change of a service's endpoints.
type Kind uint8

// The kinds of change of an endpoint.
const (
	EndpointAdded Kind = iota
	EndpointRemoved
	EndpointHealth
	kinds = iota
)

// changes counts, by kind, the endpoints that changed from one version of a service to
// the next.
type changes [kinds]int32

func (c *changes) count(was, is state) {
	switch {
	case was == absent:
		c[EndpointAdded]++
	case is == absent:
		c[EndpointRemoved]++
	default:
		c[EndpointHealth]++
	}
}

// deliver counts the versions that the content of a slot is the first to bring to it. A
// sidecar's first content of a resource does not count, because it is no push.
func (t *Tracker) deliver(sl *slot) {
	if t.Delivered == nil || sl.held == nil || sl.held.target.service == nil {
		return
	}
	svc := sl.held.target.service
	newest := sl.held.newest
	if !sl.pushed {
		sl.delivered = max(sl.delivered, newest, svc.versionAt(sl.received))
		if from, had := sl.sidecar.before[sl]; had {
			delete(sl.sidecar.before, sl)
			t.missVersions(svc, from, sl.delivered)
		}
		return
	}
	for v := sl.delivered; v < newest; v++ { // version v+1
		for kind, n := range svc.changes[v] {
			if n > 0 {
				t.Delivered(Kind(kind), int(n), sl.received-svc.times[v])
			}
		}
	}
	sl.delivered = max(sl.delivered, newest)
}
