package fleet

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/topology"
)

// remembered is the time for which a pod that is gone can still be looked up.
const remembered = time.Minute

// Pods holds the pods of a run.
type Pods struct {
	// fixed after newPods
	latencies *Latencies // of the rollout's pods
	returned  func()     // is called when a sidecar has come back

	mu         sync.Mutex
	byID       map[string]*pod
	mesh       map[string]*pod        // of these, pods of the mesh
	simulated  map[string]*simulated  // of these, pods with a simulated proxy
	sidecars   map[string]*sidecarPod // of these, sidecars whose pod is not gone
	owners     map[string][]batch     // by service: when pods were requested
	seen       map[string]int         // by service: pods seen
	lastSeen   map[string]time.Time   // by service: when its last pod was seen
	total      int                    // pods ever seen
	arrivals   []time.Time            // of the rollout's pods, in order
	readies    []time.Time            // when they became ready, in order
	gone       []*pod                 // pods that ended, in order; they are dropped later
	away       int                    // sidecars that lost their stream and are not back
	background *Background            // the present one
	renewed    map[string]int         // by service: its pods of a background activity before this one must have been replaced for the mesh to have converged
	allRenewed int                    // likewise of all services
	answered   time.Time              // the last response of the control plane
	csr        firstCertificates
	unmet      bool // when the mesh was last at rest, sidecars did not hold what is expected
}

// batch records that a service was scaled.
type batch struct {
	replicas int
	sent     time.Time
}

// firstCertificates sums up the first certificates of the rollout's pods: when the first was requested,
// when the last was verified, and how many were issued.
type firstCertificates struct {
	first, last time.Time
	issued      int
}

func newPods(rollout *Latencies) *Pods {
	return &Pods{
		latencies:  rollout,
		returned:   func() {},
		byID:       map[string]*pod{},
		mesh:       map[string]*pod{},
		simulated:  map[string]*simulated{},
		sidecars:   map[string]*sidecarPod{},
		owners:     map[string][]batch{},
		seen:       map[string]int{},
		lastSeen:   map[string]time.Time{},
		renewed:    map[string]int{},
		background: &Background{Latencies: NewLatencies()},
	}
}

// Scaled records that a service is scaled to so many pods, by a request that was sent at that moment.
func (s *Pods) Scaled(service topology.Service, replicas int, sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners[service.Name] = append(s.owners[service.Name], batch{replicas, sent})
}

// owner returns when the n-th pod of a service was requested; zero if it was not. The caller holds mu.
func (s *Pods) owner(service string, n int) time.Time {
	for _, b := range s.owners[service] {
		if n <= b.replicas {
			return b.sent
		}
	}
	return time.Time{}
}

// Short returns the services that have fewer pods than they were scaled to, not counting pods that have yet to be
// replaced, and that no pod was added to for so long.
func (s *Pods) Short(since time.Duration) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]int{}
	for p := range s.workloads {
		if s.current(p) {
			there[p.service]++
		}
	}
	var short []string
	for service, batches := range s.owners {
		last := batches[len(batches)-1]
		if there[service] < last.replicas && time.Since(last.sent) >= since && time.Since(s.lastSeen[service]) >= since {
			short = append(short, service)
		}
	}
	slices.Sort(short)
	return short
}

// join adds a new pod to the mesh. It belongs to the rollout, if that is under way and
// requested it, else to the background activity. The caller holds mu.
func (s *Pods) join(p *pod, rollout bool) {
	s.mesh[p.id] = p
	s.forget(p.times.Seen)
	s.seen[p.service]++
	s.lastSeen[p.service] = p.times.Seen
	p.times.Owner, p.background = s.owner(p.service, s.seen[p.service]), s.background.number
	if p.rollout = rollout && !p.times.Owner.IsZero(); p.rollout {
		p.latencies = s.latencies
		s.arrivals = append(s.arrivals, p.times.Seen)
	} else {
		p.latencies = s.background.Latencies
		s.background.pods++
	}
}

// end records that a pod is gone, and reports whether that is new. The caller holds mu.
func (s *Pods) end(p *pod, at time.Time) bool {
	if !p.ended.IsZero() {
		return false
	}
	p.ended = at
	s.gone = append(s.gone, p)
	return true
}

// forget drops pods that have been gone for long: under churn they would
// outnumber the others. The caller holds mu.
func (s *Pods) forget(now time.Time) {
	for len(s.gone) > 0 && now.Sub(s.gone[0].ended) > remembered {
		p := s.gone[0]
		s.gone = s.gone[1:]
		if s.byID[p.id] == p {
			delete(s.byID, p.id)
			delete(s.mesh, p.id)
			delete(s.simulated, p.id)
		}
	}
}

// update changes a pod with a simulated proxy under the lock, and returns it with its times. It returns nil for one
// that was dropped: what comes so late is of no use.
func (s *Pods) update(id string, change func(*simulated)) (*simulated, startup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.simulated[id]
	if p == nil {
		return nil, startup{}
	}
	change(p)
	return p, p.times
}

// find returns a pod with a simulated proxy; nil for one that was dropped.
func (s *Pods) find(id string) *simulated {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.simulated[id]
}

// there iterates over the pods that are not gone, in no order. The caller holds mu meanwhile.
func (s *Pods) there(yield func(*pod) bool) {
	for _, p := range s.byID {
		if !p.gone && !yield(p) {
			return
		}
	}
}

// workloads iterates over the pods of the mesh that are not gone, in no order. The caller holds mu meanwhile.
func (s *Pods) workloads(yield func(*pod) bool) {
	for _, p := range s.mesh {
		if !p.gone && !yield(p) {
			return
		}
	}
}

// Arrivals returns the times at which the rollout's pods were seen, and first seen Ready, each in order.
func (s *Pods) Arrivals() (seen, ready []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.arrivals), slices.Clone(s.readies)
}

// LastResponse returns when a simulated proxy last received a response; zero if none ever did.
func (s *Pods) LastResponse() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered
}

// Pod names a pod.
type Pod struct {
	ID, Namespace, Name string // the ID is NAMESPACE/NAME
	Address             netip.Addr
}

// export names the pod for users of the package. The caller holds mu.
func (p *pod) export() Pod { return Pod{p.id, p.namespace, p.name, p.addr} }

// TakeOldest returns the oldest Ready pod that it has not returned before; false if there is none.
func (s *Pods) TakeOldest() (Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest *pod
	for p := range s.workloads {
		if p.ready && !p.chosen && (oldest == nil || p.order < oldest.order) {
			oldest = p
		}
	}
	if oldest == nil {
		return Pod{}, false
	}
	oldest.chosen = true
	return oldest.export(), true
}

// Nth returns the n-th pod of a service that has a proxy, by name and modulo their
// number, not counting pods on real nodes; false if there is none.
func (s *Pods) Nth(service string, n int) (Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*pod
	for p := range s.workloads {
		if p.stop != nil && p.fake && p.service == service {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return Pod{}, false
	}
	slices.SortFunc(all, func(a, b *pod) int { return strings.Compare(a.id, b.id) })
	return all[n%len(all)].export(), true
}

// At returns the id of the pod that had an address last; "" if none had.
func (s *Pods) At(addr netip.Addr) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var at *pod
	for _, p := range s.byID {
		if p.addr == addr && (at == nil || p.times.Seen.After(at.times.Seen)) {
			at = p
		}
	}
	if at == nil {
		return ""
	}
	return at.id
}

// issue counts a first certificate.
func (c *firstCertificates) issue(at time.Time) {
	c.issued++
	if at.After(c.last) {
		c.last = at
	}
}

// Certificates counts the certificates of a run's pods.
type Certificates struct {
	There       int       // pods that are there
	Without     int       // of those, pods without a certificate
	Issued      int       // first certificates of the rollout's pods
	First, Last time.Time // when the first of all was requested and the last of those was verified; zero if none was
}

// Certificates returns the present counts.
func (s *Pods) Certificates() Certificates {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Certificates{Issued: s.csr.issued, First: s.csr.first, Last: s.csr.last}
	for p := range s.workloads {
		c.There++
		if p.times.Certified.IsZero() {
			c.Without++
		}
	}
	return c
}
