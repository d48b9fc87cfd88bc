package fleet

import "time"

// Background is an activity whose pods and connections are not in the run's own figures, as
// churn or a fault: pods that replace others, and sidecars that reconnect. The one of number 0 is
// before the first.
type Background struct {
	Latencies *Latencies

	// guarded by Pods.mu
	number   int
	pods     int // of the mesh, created in place of others
	proxies  int // likewise proxies of nodes, and waypoints
	starts   int // of these, pods whose proxy's start is in the figures: those with a simulated sidecar
	returned int // sidecars that came back
}

// Begin begins another background activity.
func (s *Pods) Begin() *Background {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := NewLatencies()
	l.Starts = s.latencies.Starts
	s.background = &Background{Latencies: l, number: s.background.number + 1}
	return s.background
}

// End counts missing observations of an activity as lost, and returns the numbers of pods that
// were replaced and of sidecars that reconnected.
func (s *Pods) End(b *Background) (replaced, returned int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	away := 0
	if b == s.background {
		away = s.away
	}
	b.Latencies.Reconnect.Lose(int64(away))
	if b.pods > 0 {
		if s.unmet {
			b.Latencies.Forgo(b.starts)
		}
		LoseIn(b.pods, b.Latencies.PodReady, b.Latencies.PodReadyWithoutKwok)
		b.Latencies.loseStarts(b.starts)
	}
	return b.pods + b.proxies, b.returned
}

// Renew makes convergence wait until every present pod of these services was
// replaced; without a name, of all services. [Fleet.RenewNodes] and [Fleet.RenewWaypoints] are for pods of no service.
func (s *Pods) Renew(services ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(services) == 0 {
		clear(s.renewed)
		s.allRenewed = s.background.number
	}
	for _, service := range services {
		s.renewed[service] = s.background.number
	}
}

// current reports whether convergence does not wait for a pod to be replaced. The caller holds mu.
func (s *Pods) current(p *pod) bool {
	return p.background >= s.allRenewed && s.renewedSince(p)
}

// renewedSince reports whether a pod came after its service was last named in Renew. The caller holds mu.
func (s *Pods) renewedSince(p *pod) bool { return p.background >= s.renewed[p.service] }

// reconnects returns the latencies that a sidecar's second connection, and its way back to one, are
// recorded in: the run's own before any background activity. The caller holds mu.
func (s *Pods) reconnects() *Latencies {
	if s.background.number == 0 {
		return s.latencies
	}
	return s.background.Latencies
}

// connection is a sidecar's connection to the control plane, over its life. It is
// guarded by Pods.mu.
type connection struct {
	streams  int       // opened so far
	server   string    // that the last one was opened to
	answered bool      // it had a response on the one that is open
	away     bool      // it lost a stream and is not back
	since    time.Time // when it was lost
	missed   bool      // its worker was lost, not the stream
	after    int       // streams when it was lost: only a later one brings it back
	returned int       // number of the background activity in which it last came back
}

// Streams counts the streams that are open and have been answered, those of terminating pods too.
func (s *Pods) Streams() int {
	n := 0
	for _, streams := range s.StreamsTo() {
		n += streams
	}
	return n
}

// StreamsTo counts the streams of simulated sidecars that are open and have been answered
// by the address that was dialled, those of terminating pods too.
func (s *Pods) StreamsTo() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := map[string]int{}
	for _, p := range s.simulated {
		if p.connection.answered && p.ended.IsZero() {
			to[p.connection.server]++
		}
	}
	return to
}

// loseStream records that a proxy has lost a stream that had been answered. The caller
// holds mu.
func (s *Pods) loseStream(p *simulated, at time.Time) {
	c := &p.connection
	c.after, c.answered, p.whole = c.streams, false, false
	if p.gone || c.away {
		return
	}
	c.away, c.since = true, at
	s.away++
}

// regainStream records that a proxy has all that it requests on a stream. It counts if the stream was
// opened after the loss. The caller holds mu.
func (s *Pods) regainStream(p *simulated, at time.Time) {
	c := &p.connection
	if !c.away || c.streams <= c.after {
		return
	}
	c.away = false
	s.away--
	if c.missed { // the control plane did not lose it
		c.missed = false
		s.returned()
		return
	}
	s.reconnects().Reconnect.Record(at.Sub(c.since))
	if c.returned != s.background.number {
		c.returned = s.background.number
		s.background.returned++
	}
	s.returned()
}
