package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/convergence"
)

func (f *Fleet) converged() bool {
	sidecars := 0
	for _, t := range f.trackers() {
		counts := t.Counts()
		if counts.Converged < counts.Sidecars {
			return false
		}
		sidecars += counts.Sidecars
	}
	pods := f.states()
	wanted := int(f.wanted.Load())
	return pods.away == 0 && pods.proxies == "" && sidecars == pods.shared+wanted-pods.served && pods.ready == wanted && f.Endpoints.healthy() == int(f.healthy.Load())
}

// completeInterval is the time between two counts of AwaitComplete.
const completeInterval = 100 * time.Millisecond

// AwaitComplete returns once so many sidecars are complete.
func (f *Fleet) AwaitComplete(ctx context.Context, sidecars int) error {
	for f.Count().Complete < sidecars {
		if !task.Sleep(ctx, completeInterval) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// AwaitQuiet returns once the control plane has sent nothing for its QuietTime.
func (f *Fleet) AwaitQuiet(ctx context.Context) error {
	for {
		quiet := f.Pods.LastResponse().Add(f.quietTime())
		if !time.Now().Before(quiet) {
			return nil
		}
		if err := task.WaitUntil(ctx, quiet); err != nil {
			return err
		}
	}
}

// Counts counts pods and proxies by the states that they have reached.
type Counts struct {
	// A pod that its node's proxy serves counts as connected and converged when that proxy is.
	Created   int // pods of the mesh that are not gone
	Ready     int // of these, pods that were ever Ready
	Connected int // pods whose proxy was ever connected
	Simulated int // proxies that were ever connected and are simulated
	Nodes     int // of those, the proxies of nodes
	Complete  int // pods whose proxy holds what was expected at its first request
	Converged int // pods whose proxy holds all that is expected now
}

// add counts a sidecar.
func (c *Counts) add(s convergence.Stand) {
	if s.Complete {
		c.Complete++
	}
	if s.Converged {
		c.Converged++
	}
}

// Count returns the present counts.
func (f *Fleet) Count() Counts {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	var c Counts
	for p := range f.Pods.workloads {
		c.Created++
		if !p.times.Ready.IsZero() {
			c.Ready++
		}
	}
	for p := range f.Pods.there {
		p.member.count(&c)
	}
	return c
}

// ResetStreams cuts the streams of a share of the connected sidecars, from 0 to 1,
// one at least. Which ones, the seed decides.
func (f *Fleet) ResetStreams(share float64, seed uint64) error {
	s := f.Pods
	s.mu.Lock()
	defer s.mu.Unlock()
	connected := s.connected()
	if len(connected) == 0 {
		return errors.New("no sidecar is connected")
	}
	random := rand.New(rand.NewPCG(seed, uint64(s.background.number)))
	random.Shuffle(len(connected), func(i, j int) { connected[i], connected[j] = connected[j], connected[i] })
	now := time.Now()
	var chosen []*simulated
	for _, id := range connected[:int(math.Ceil(share*float64(len(connected))))] {
		s.loseStream(s.simulated[id], now)
		chosen = append(chosen, s.simulated[id])
	}
	act(worker.Reset, chosen)
	return nil
}

// connected is Connected for a caller that holds mu.
func (s *Pods) connected() []string {
	var connected []string
	for _, id := range slices.Sorted(maps.Keys(s.simulated)) {
		if p := s.simulated[id]; !p.gone && p.connection.answered {
			connected = append(connected, id)
		}
	}
	return connected
}

// Connected returns the ids of the pods whose simulated proxies are connected and were answered, sorted. Real
// sidecars cannot be acted on.
func (f *Fleet) Connected() []string {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	return f.Pods.connected()
}

// Act acts on the simulated proxy of a pod, if there still is one. After worker.Reset convergence waits for the
// proxy as for one that lost its stream.
func (f *Fleet) Act(action worker.Action, id string) {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	p := f.Pods.simulated[id]
	if p == nil || p.gone {
		return
	}
	if action == worker.Reset {
		f.Pods.loseStream(p, time.Now())
	}
	act(action, []*simulated{p})
}

// explained is the most proxies that Lacking names.
const explained = 3

// Lacking describes what the mesh still lacks to have converged, one line for each
// kind; nothing if it has.
func (f *Fleet) Lacking() []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }

	sidecars := 0
	var missing []string
	for _, t := range f.trackers() {
		sidecars += t.Counts().Sidecars
		missing = append(missing, t.Missing(explained)...)
	}
	healthy := f.Endpoints.healthy()
	pods := f.states()
	if wanted := int(f.wanted.Load()); pods.there != wanted {
		add("%d pods are there, want %d", pods.there, wanted)
	}
	if pods.old > 0 {
		add("%d pods were not replaced yet", pods.old)
	}
	if pods.proxies != "" {
		add("%s", pods.proxies)
	}
	if pods.ready+pods.old < pods.there {
		add("%d pods are not ready", pods.there-pods.ready-pods.old)
	}
	if proxies := pods.shared + pods.there - pods.served; sidecars != proxies {
		add("%d proxies were started, want %d", sidecars, proxies)
	}
	if wanted := int(f.healthy.Load()); healthy != wanted {
		add("the API server lists %d healthy endpoints, want %d", healthy, wanted)
	}
	if pods.away > 0 {
		add("%d sidecars lost their stream and are not back", pods.away)
	}
	for _, line := range missing {
		add("sidecar %s", line)
	}
	return lines
}

// states counts the pods of the mesh by their present states.
type states struct {
	there  int // that are not gone
	ready  int // of those, and need not be replaced
	old    int // of those, that have yet to be replaced
	served int // of those, that have the proxy of their node
	shared int // proxies that there should be besides those of pods of the mesh
	away   int // sidecars that lost their stream

	proxies string // see nodes.lacks
}

func (f *Fleet) states() states {
	s := f.Pods
	s.mu.Lock()
	defer s.mu.Unlock()
	n := states{away: s.away, served: len(f.nodes.pods), shared: f.nodes.expected(), proxies: f.nodes.lacks()}
	for p := range s.workloads {
		switch {
		case !s.current(p):
			n.old++
		case p.ready:
			n.ready++
		}
		n.there++
	}
	return n
}
