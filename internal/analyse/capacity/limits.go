package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// The limits that may bind a rollout, as in Plan.Binds.
const (
	Limiter     = "limiter"     // new streams admitted a second
	TokenReview = "tokenReview" // tokens reviewed a second
	Injection   = "injection"   // pods injected a second
	Throttle    = "throttle"    // proxies pushed to at once
	Processor   = "processor"   // processor time
	Memory      = "memory"      // more is needed than there is
	Arrival     = "arrival"     // pods do not come faster
	Machine     = "machine"     // the processors that runs shared with all else
)

// mesh holds the quantities that limits apply to: a rollout, and the control plane that
// serves it.
type mesh struct {
	pods       float64
	cpuSeconds float64 // of the control plane, for the rollout
	// cpuLeast and cpuMost are the interval of cpuSeconds; cpuMost 0 = cpuSeconds is
	// known.
	cpuLeast, cpuMost float64
	arrival           float64 // pods per second; 0 = as fast as they are served
	processors        int     // of one replica
	usable            float64 // those that it could use of the run's machine; 0 = as many as processors
	replicas          int
	others            float64        // CPU seconds of everything else on the same machine; 0 = nothing else runs there
	machine           float64        // processors of that machine, times the dilation
	limits            *record.Limits // nil = none is known
	// own is the number of pods that have a proxy each, which arrives with them.
	own float64
	// certificates is the largest number of certificates that nodes' proxies request for the other pods;
	// their streams were admitted before the rollout.
	certificates float64
}

// cores returns how many processors each replica can use.
func (m mesh) cores() float64 { return cmp.Or(m.usable, float64(m.processors)) }

// reviewsOfCertificate is the number of token reviews for a certificate of a node's
// proxy: one, for the request. The token of its stream was reviewed before the rollout.
const reviewsOfCertificate = 1

// mostCertificates returns the largest number of certificates that the proxies of nodes
// request: one for each identity on each node, if each service has an identity of its
// own, and no more than pods.
func mostCertificates(pods, services, nodes float64) float64 { return min(pods, services*nodes) }

// serve sets which pods have a proxy of their own, of a mesh of so many services and nodes with a proxy.
func (m *mesh) serve(own, services, nodes int) {
	m.own, m.certificates = float64(own), mostCertificates(m.pods-float64(own), float64(services), float64(nodes))
}

// times returns the shortest possible duration of a rollout under each limit, the longest
// first.
//
// A push keeps at most one processor busy at a time, so that the throttle binds before
// processors do only where it is the smaller number.
func (m mesh) times() []Limit {
	replicas := float64(m.replicas)
	all := []Limit{{
		Name: Processor, Seconds: m.cpuSeconds / (m.cores() * replicas),
		Rule: fmt.Sprintf("%.3g CPU seconds on %d x %.3g processors", m.cpuSeconds, m.replicas, m.cores()),
	}}
	if m.arrival > 0 {
		all = append(all, Limit{Arrival, m.pods / m.arrival, fmt.Sprintf("%.3g pods a second came, which is the cluster's pace or the burst's", m.arrival)})
	}
	if m.others > 0 && m.machine > 0 {
		work := m.others + m.cpuSeconds
		all = append(all, Limit{Machine, work / m.machine, fmt.Sprintf("%.3g CPU seconds of all programs on the machine's %g processors", work, m.machine)})
	}
	if l := m.limits; l != nil {
		if admission := m.admission(m.own); admission != nil && m.own > 0 {
			all = append(all, *admission)
		}
		if rate := l.TokenReviewsPerSecond; rate > 0 {
			var reviews float64
			var of []string
			if m.own > 0 {
				reviews, of = m.own*l.TokenReviewsPerSidecar, append(of, fmt.Sprintf("%.3g for each sidecar", l.TokenReviewsPerSidecar))
			}
			if m.certificates > 0 {
				reviews, of = reviews+m.certificates*reviewsOfCertificate, append(of, fmt.Sprintf("%d for each of at most %.0f certificates, one for each identity on each node", reviewsOfCertificate, m.certificates))
			}
			each := strings.Join(of, ", and ")
			all = append(all, Limit{TokenReview, max(0, reviews-l.TokenReviewsBurst*replicas) / (rate * replicas), fmt.Sprintf("%s x %.3g reviews a second after %.3g at once, %s",
				output.Many(m.replicas, "replica"), rate, l.TokenReviewsBurst, each)})
		}
		if rate := l.InjectionsPerSecond; rate > 0 && m.own > 0 {
			all = append(all, Limit{Injection, max(0, m.own-l.InjectionsBurst*replicas) / (rate * replicas), fmt.Sprintf("%s x %.3g pods a second injected after %.3g at once",
				output.Many(m.replicas, "replica"), rate, l.InjectionsBurst)})
		}
		if pushes := l.ConcurrentPushes.At(m.processors); pushes > 0 {
			all = append(all, Limit{Throttle, m.cpuSeconds / (pushes * replicas), fmt.Sprintf("%s x %.3g pushes at once, each on one processor at most", output.Many(m.replicas, "replica"), pushes)})
		}
	}
	slices.SortStableFunc(all, func(a, b Limit) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return all
}

// admission returns the shortest time in which this number of new streams can be
// admitted; nil if they are not limited.
func (m mesh) admission(streams float64) *Limit {
	if m.limits == nil {
		return nil
	}
	rate := m.limits.StreamsPerSecond.At(m.processors)
	if rate <= 0 {
		return nil
	}
	return &Limit{Limiter, (streams - 1) / (rate * float64(m.replicas)), fmt.Sprintf("%s x %.3g new streams a second", output.Many(m.replicas, "replica"), rate)}
}

// rate returns the sidecars per second that the control plane can serve in the long run;
// 0 if nothing limits it.
func (m mesh) rate() float64 {
	m.arrival = 0
	if m.limits != nil {
		without := *m.limits
		without.TokenReviewsBurst, without.InjectionsBurst = 0, 0
		m.limits = &without
	}
	if longest := m.times()[0].Seconds; longest > 0 {
		return m.pods / longest
	}
	return 0
}

// ProcessorsOf returns the GOMAXPROCS of each replica of a run's control plane.
func ProcessorsOf(r *record.Run) int {
	return max(1, cmp.Or(r.Environment.ControlPlane.GOMAXPROCS, r.Environment.CPUs))
}

// meshOf returns the quantities of a run that limits apply to.
func meshOf(r *record.Run, known map[string]*record.Limits) mesh {
	c := r.Environment.ControlPlane
	m := mesh{
		pods:       float64(r.PodCount()),
		processors: ProcessorsOf(r),
		usable:     c.Processors,
		replicas:   max(1, c.Replicas),
		limits:     cmp.Or(c.Limits, known[c.Name]),
	}
	m.serve(ownOf(r), r.ServiceCount(), nodesOf(r))
	if cpu := r.Value(rolloutCPU); cpu != nil {
		m.cpuSeconds = *cpu
	}
	m.machine = float64(r.Environment.CPUs) * r.Slowdown()
	for _, name := range slices.Sorted(maps.Keys(r.Cluster)) { // in one order: sums of floats depend on it
		if u := r.Cluster[name].Rollout; u != nil && u.CPUSeconds != nil {
			m.others += *u.CPUSeconds
		}
	}
	if seconds := r.RolloutSeconds(); seconds != nil && r.Instrument != nil && r.Instrument.Cores != nil {
		m.others += *r.Instrument.Cores * *seconds
	}
	if r.Arrival != nil && r.Arrival.AchievedPerSecond != nil {
		m.arrival = *r.Arrival.AchievedPerSecond
	}
	return m
}

// pace is the ratio of rollout times, without the start delay of the last pods, to the time of the limit that binds.
type pace struct {
	fit     stats.Fit
	scatter // of runs about it
	known   bool
	arrival float64         // pods a second at the largest size
	delay   *scenario.Delay // from when pods have addresses until their proxies start; nil = none
}

// after returns for how long the last of so many pods start, in seconds.
func (p pace) after(pods float64) float64 {
	if p.delay == nil {
		return 0
	}
	return p.delay.Longest(int(pods)).Seconds()
}

// measurePace fits the factor, from runs whose rollout was not saturated if there are
// enough of them; otherwise from all, with a warning.
func (s *sample) measurePace(known map[string]*record.Limits) pace {
	var quiet, all []*record.Run
	quietSizes := map[int]bool{}
	for _, r := range s.runs {
		if r.RolloutSeconds() == nil {
			continue
		}
		all = append(all, r)
		if calm(r) {
			quiet = append(quiet, r)
			quietSizes[r.PodCount()] = true
		}
	}
	chosen := quiet
	const warning = "saturated during the rollout, or it is not known whether: times depend on the machine as much as on the control plane"
	switch busy := output.Many(len(all)-len(quiet), "run"); {
	case len(quiet) == len(all):
	case len(quietSizes) < sizesNeeded:
		chosen = all
		s.warn(rolloutTime, "%s of %d are uncertain, and used because too few others are left: %s, so the forecast is an upper bound", busy, len(all), warning)
	default:
		s.warn(rolloutTime, "%s of %d are uncertain, and not used: %s", busy, len(all), warning)
	}
	if n := len(s.runs) - len(all); n > 0 {
		s.warn(rolloutTime, "%s of %d not used: rollouts that did not end by convergence", output.Many(n, "run"), len(s.runs))
	}
	var x [][]float64
	var y []float64
	var sizes []point
	var p pace
	for _, r := range chosen {
		m := meshOf(s.asMeasured(r), known) // its time is of its own machine
		if longest := m.times()[0].Seconds; longest > 0 {
			p.delay = r.Scenario.Mesh.Sidecars.StartDelay
			x, y, sizes = append(x, []float64{longest}), append(y, max(0, *r.RolloutSeconds()-p.after(float64(r.PodCount())))), append(sizes, pointOf(r).size())
			p.arrival = m.arrival // of the last, as the delay: runs are in order of size
		}
	}
	var err error
	p.fit, err = stats.LeastSquaresRelative(x, y, nil, confidence)
	p.known = err == nil
	if !p.known {
		return p
	}
	if p.fit.Spare < 1 {
		s.warn(rolloutTime, "no interval: only one run has it")
		return p
	}
	residuals := make([]residual, len(y))
	for i := range y {
		residuals[i] = residual{sizes[i], y[i]/p.fit.At(x[i]) - 1}
	}
	if p.scatter = scattered(residuals, len(p.fit.Terms)); p.astray {
		s.warn(rolloutTime, "the sizes deviate from the factor by more than repeats of one size differ: the interval is that of sizes, not of %s", output.Many(len(y), "run"))
	}
	return p
}

// calm reports whether a run's rollout is known not to have been saturated. It does not
// distinguish a control plane that was at its own limit for a second (AtLimit) from one
// that was for all of the phase: only the record warns of that.
func calm(r *record.Run) bool {
	share := r.Value("controlPlane.rollout.saturation")
	return share != nil && *share <= record.Saturated
}

// at returns the rollout time of a mesh. The interval includes the uncertainty of the
// factor and, where processors bind, that of the forecast of processor time.
func (p pace) at(m mesh) estimate {
	longest := []float64{m.times()[0].Seconds}
	value := p.fit.At(longest)
	if p.fit.Spare < 1 {
		return estimate{value: value + p.after(m.pods)}
	}
	half := p.half(p.fit, longest)
	up, down := 0.0, 0.0
	if most := m.cpuMost; most > 0 {
		m.cpuSeconds = most
		up = p.fit.At([]float64{m.times()[0].Seconds}) - value
		m.cpuSeconds = m.cpuLeast
		down = value - p.fit.At([]float64{m.times()[0].Seconds})
	}
	after := p.after(m.pods)
	return estimate{value + after, max(0, value-math.Hypot(half, down)) + after, value + math.Hypot(half, up) + after, true}
}

// duration converts seconds, rounded to milliseconds, for texts and flags.
func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
}
