package capacity

import (
	"fmt"
	"math"
	"time"
)

// Request is the request for replicas and resources.
type Request struct {
	Replicas int `json:"replicas"`
	// Processors is the GOMAXPROCS of each replica that the forecasts are of. It is to be
	// set explicitly: without a limit a container takes it from its node.
	Processors int       `json:"gomaxprocs"`
	Resources  Resources `json:"resources"` // of each replica, as Kubernetes reads them
	// RolloutSeconds is the duration of the rollout with that request; nil if it cannot
	// be forecast from the runs.
	RolloutSeconds *Bounds `json:"rolloutSeconds,omitempty"`
	// Met reports that the rollout ends in time, by its upper bound, and that processors
	// and memory carry the upper bound of every state.
	Met   bool  `json:"met"`
	Burst Burst `json:"burst"`
}

// Bounds are a forecast and its interval. Low and High are nil if it is not known.
type Bounds struct {
	Forecast float64  `json:"forecast"`
	Low      *float64 `json:"low"`
	High     *float64 `json:"high"`
}

// Resources are the resources of a container, in Kubernetes' units.
type Resources struct {
	Requests Amounts `json:"requests"`
	Limits   Amounts `json:"limits"`
}

// Amounts are processors and memory; "" means that none is set, for memory because the
// runs do not determine it.
type Amounts struct {
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
}

// Burst is the shortest arrival of pods with which no sidecar, or no pod that its node's
// proxy serves, waits for longer than allowed.
type Burst struct {
	Pods            int     `json:"pods"`            // at once
	IntervalSeconds float64 `json:"intervalSeconds"` // between
	Flag            string  `json:"flag"`            // the same, as in --burst
	WaitSeconds     float64 `json:"waitSeconds"`     // longest that a sidecar waits to be served
	TotalSeconds    float64 `json:"totalSeconds"`    // until the last pods have come
}

// most is the largest number of processors for a replica if none is given: Go programs
// were not measured with more.
const most = 64

// need is the processors that one replica of a mesh needs on average in the state in
// which it needs most: by the upper bound of its forecast, without headroom.
type need struct {
	rollout float64 // processor time of the rollout, in seconds, of all replicas
	others  float64 // cores in the worst of the other states, of all replicas
	pace    pace
}

// of returns the need of a mesh with its processors, of each replica.
func (n need) of(m mesh) float64 {
	return max(n.others, n.rollout/n.pace.seconds(m)) / float64(m.replicas)
}

// seconds returns the forecast duration of a rollout; the shortest possible if the runs
// do not show it.
func (p pace) seconds(m mesh) float64 {
	if p.known {
		return p.at(m).value
	}
	return m.times()[0].Seconds
}

// ask finds the fewest processors that carry every state with headroom, and with which
// the rollout is done in time or, without a time, with which processors are not what
// binds. If nothing suffices it requests the fastest and reports false.
func (p *Plan) ask(m mesh, pace pace, estimates map[string]estimate, o Options) (suffices bool) {
	busy := estimates[rolloutCPU]
	_, others := p.worst(func(s State) *Bounds { return s.Cores }) // that of the rollout follows from the processors
	need := need{busy.upper(), others, pace}
	modelled := m.processors
	m, suffices = m.place(need, o)
	carried := need.of(m) <= float64(m.processors)
	met := (suffices || o.Within == 0) && carried
	suffices = suffices && carried
	p.Limits = m.times()
	p.Binds = p.Limits[0].Name
	if p.Target.Proxies > 0 {
		p.Reconnect = m.admission(float64(p.Target.Proxies))
	}
	more := 1 + o.Headroom
	request, limit, enough := p.memory(estimates, more, o)
	if !enough {
		suffices, met = false, false
	}
	p.Request = Request{Replicas: m.replicas, Processors: m.processors, Met: met, Burst: m.burst(pace, o.Wait)}
	rollout := pace.seconds(m)
	if pace.known {
		p.Request.RolloutSeconds = pace.at(m).bounds()
		if !o.Validate {
			p.settle(m, pace, nil)
		}
	}
	for i := range p.States {
		if p.States[i].Name == stateRollout {
			p.States[i].Cores = estimate{busy.value / rollout, busy.low / rollout, busy.high / rollout, busy.bounded}.bounds()
		}
	}
	state, cores := p.worst(func(s State) *Bounds { return s.Cores })
	p.Decides.CPU = state
	cores /= float64(m.replicas)
	p.Request.Resources = Resources{
		Requests: Amounts{CPU: millicores(cores * more), Memory: request},
		Limits:   Amounts{Memory: limit},
	}
	peaking, peak := p.worst(func(s State) *Bounds { return s.PeakCores })
	if o.LimitProcessors {
		p.Request.Resources.Limits.CPU = fmt.Sprint(math.Ceil(max(float64(m.processors), cores*more, peak)))
		p.warn("request.resources.limits.cpu", "a control plane is throttled: once it has used its quota of 100 ms, it stands still until the next. What that costs was measured with 200 pods alone (docs/results/limits-and-tuning.md)")
		if peaking == "" {
			p.warn("request.resources.limits.cpu", "no run has the cores of a control plane over 100 ms, so that the limit is that of GOMAXPROCS")
		}
	}
	p.warnOfProcessors(m.processors, modelled, cores, more, state, peak, peaking)
	return suffices
}

// warnOfProcessors adds warnings about the processors of each replica: of a need that they
// do not carry, and of what the runs, which had the modelled ones, do not show of them.
func (p *Plan) warnOfProcessors(processors, modelled int, cores, more float64, state string, peak float64, peaking string) {
	const about = "request.gomaxprocs"
	switch least := fmt.Sprintf("%.0f", math.Ceil(cores*more)); {
	case cores > float64(processors):
		p.warn(about, "up to %s cores are needed in %s, and a replica has %d: plan for %s or more", coresText(&cores), state, processors, least)
	case cores*more > float64(processors):
		p.warn(about, "with headroom %s cores are requested, for %s, and GOMAXPROCS lets a replica use %d: plan for %s or more", coresText(new(cores*more)), state, processors, least)
	}
	if peak > float64(processors) {
		p.warn(about, "over 100 ms up to %s cores are used in %s, as the runs used them, and GOMAXPROCS lets a replica use %d: what is due then takes longer, by how much was not measured", coresText(&peak), peaking, processors)
	}
	if processors != modelled {
		p.warn(about, "the runs had GOMAXPROCS %d: memory, processor time and pushes change with it: 800 pods used 23 %% more memory and 13 %% less processor time with 2 than with 8, in one run each", modelled)
	}
}

// slowest returns the upper bound of the rollout's duration; infinite if it is not known.
func (r Request) slowest() float64 {
	if r.RolloutSeconds == nil {
		return math.Inf(1)
	}
	return r.RolloutSeconds.upper()
}

// memory returns the memory to request and the limit to set, and whether the memory that
// is available is known to be enough. Without a forecast of both phases it requests
// nothing.
func (p *Plan) memory(estimates map[string]estimate, more float64, o Options) (request, limit string, enough bool) {
	steady, settled := estimates[steadyMemory]
	_, peaked := estimates[rolloutMemory]
	available := float64(o.MemoryBytes)
	if !settled || !peaked {
		p.warn("request.resources", "no memory request: the runs do not show how much is needed")
		if available > 0 {
			return "", mebibytes(available), false
		}
		return "", "", true
	}
	var needed float64
	p.Decides.Memory, needed = p.worst(func(s State) *Bounds { return s.MemoryBytes })
	if available == 0 {
		return mebibytes(steady.upper() * more), mebibytes(needed * more), true
	}
	if needed > available {
		p.Binds = Memory
		p.warn("request.resources", "up to %s are needed and %s are there: a control plane that exceeds its limit is killed", mebibytes(needed), mebibytes(available))
	}
	return mebibytes(min(steady.upper()*more, available)), mebibytes(available), needed <= available
}

func (p *Plan) warn(about, format string, args ...any) {
	p.Warnings = append(p.Warnings, Warning{about, fmt.Sprintf(format, args...)})
}

// place sets the processors of each replica of the mesh, and reports whether they
// suffice.
func (m mesh) place(need need, o Options) (placed mesh, suffices bool) {
	best, bestTime := m, math.Inf(1)
	fewest, most := 1, most
	if o.Processors > 0 {
		fewest, most = o.Processors, o.Processors
	}
	for processors := fewest; processors <= most; processors++ {
		m.processors = processors
		carries := o.Processors > 0 || need.of(m)*(1+o.Headroom) <= float64(processors)
		if o.Within == 0 && (o.Processors > 0 || m.times()[0].Name != Processor && carries) {
			return m, true
		}
		seconds := m.times()[0].Seconds
		if need.pace.known {
			seconds = need.pace.at(m).upper()
		}
		if o.Within > 0 && seconds <= o.Within.Seconds() && carries {
			return m, true
		}
		if seconds < bestTime {
			best, bestTime = m, seconds
		}
	}
	return best, false
}

// refusedWait is the wait of sidecars in a burst unless another one is asked for or
// known.
const refusedWait = time.Second

// burst returns the largest number of pods at once whose last sidecar is served in time.
// Up to the wait after which streams are refused, they are served one after another.
// Beyond it sidecars are refused and come back later, so that serving them takes longer
// by the same factor as whole rollouts.
func (m mesh) burst(pace pace, wait time.Duration) Burst {
	refused := refusedWait.Seconds()
	if m.limits != nil && m.limits.StreamWaitSeconds > 0 {
		refused = m.limits.StreamWaitSeconds
	}
	b := Burst{WaitSeconds: wait.Seconds()}
	if wait == 0 {
		b.WaitSeconds = refused
	}
	rate := m.rate()
	if rate == 0 {
		b.Pods, b.Flag = int(m.pods), "all"
		return b
	}
	if b.WaitSeconds > refused && pace.known {
		rate /= max(1, pace.fit.Terms[0].Value)
	}
	b.Pods = int(min(m.pods, max(1, math.Floor(rate*b.WaitSeconds))))
	b.IntervalSeconds = math.Ceil(float64(b.Pods)/rate*1000) / 1000
	b.Flag = fmt.Sprintf("%d/%s", b.Pods, duration(b.IntervalSeconds))
	b.TotalSeconds = (math.Ceil(m.pods/float64(b.Pods)) - 1) * b.IntervalSeconds
	return b
}

// mebibytes formats an amount of memory, rounded up.
func mebibytes(bytes float64) string { return fmt.Sprintf("%.0fMi", math.Ceil(bytes/(1<<20))) }

// millicores formats an amount of processors, rounded up to a tenth.
func millicores(cores float64) string { return fmt.Sprintf("%.0fm", math.Ceil(cores*10)*100) }
