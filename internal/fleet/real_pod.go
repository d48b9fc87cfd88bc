package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

const (
	// askEvery is the interval at which Envoy is queried for the bytes that it received: the
	// times of a real sidecar have this resolution. Its whole configuration is read
	// only if there were more, and not more often than dumpEvery, as that costs it some
	// milliseconds.
	askEvery  = 200 * time.Millisecond
	dumpEvery = time.Second
	// refusalTimeout limits the time for which an Envoy refuses a resource. Then the run
	// fails, as it would never converge.
	refusalTimeout = 20 * time.Second
)

// realPod is a pod of the mesh with a real sidecar, whose Envoy is queried for what it holds. Members embed it.
type realPod struct {
	*pod
	as     realMember
	real   *realSidecars
	starts *Latencies // where its start is recorded

	sidecar *sidecar.Sidecar // nil until it is there. Guarded by Pods.mu.

	reporting sync.Mutex // held while what it holds is reported; taken before Pods.mu
	crashes   int        // so far. Guarded by reporting.

	mu   sync.Mutex
	held sidecar.Configuration // as last read, nothing since a crash
}

// enter makes a pod of the mesh a member with a real sidecar. The caller holds Pods.mu.
func (p *realPod) enter(of *pod, as realMember) {
	of.member = as
	p.pod, p.as, p.real = of, as, of.fleet.real
	p.starts = p.real.others
	if p.rollout {
		p.starts = p.real.latencies
	}
	p.real.all = append(p.real.all, as)
}

func (p *realPod) envoy() *realPod { return p }

// expect has convergence wait for the sidecar. The caller holds Pods.mu.
func (p *realPod) expect() { p.real.tracker.Add(p.id, p.real.scopes[p.service]) }

func (p *realPod) leave() { p.real.tracker.Remove(p.id) }

func (p *realPod) count(c *Counts) {
	if !p.times.Connected.IsZero() {
		c.Connected++
	}
	c.add(p.real.tracker.StandOf(p.id))
}

// complete takes from the tracker that the sidecar is complete. Scaler's own metrics are of simulated ones.
func (p *realPod) complete(at time.Time) {
	var requested time.Time
	p.update(func() {
		setOnce(&p.times.Complete, at)
		requested = p.times.Requested
	})
	p.starts.CompleteConfiguration.Record(at.Sub(requested))
}

// began takes that a life of the sidecar was started.
func (p *realPod) began(life sidecar.Life, event record.RealSidecarStarted) {
	p.update(func() {
		setOnce(&p.times.Dialed, life.At)
		setOnce(&p.times.Requested, life.At)
	})
	p.real.tracker.FirstRequest(p.id, life.At)
	event.Pod, event.Life = p.id, life.Number
	p.fleet.Event(event)
}

// crashed takes that the sidecar ended by itself: its Envoy holds nothing any more.
func (p *realPod) crashed(at time.Time, said, why string) {
	p.drop(at)
	p.real.Say(fmt.Sprintf("the real sidecar of pod %s ended%s", p.id, said))
	p.real.Warn(record.Warning{
		About: "sidecars.real", Reason: record.ReasonSidecarCrashed, Component: "the sidecar of pod " + p.id, Detail: why,
		Values: map[string]float64{"times": 1},
	})
	p.fleet.Event(record.RealSidecarEnded{Pod: p.id, Error: why})
}

// startFollowing has the sidecar followed until end is called, which returns when nothing of that runs any more.
func (p *realPod) startFollowing(ctx context.Context, s *sidecar.Sidecar) (end func()) {
	p.update(func() { p.sidecar = s })
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { p.follow(ctx) })
	return func() {
		cancel()
		following.Wait()
	}
}

// follow reads what an Envoy holds whenever it received something, until
// ctx is done. While nothing is touched it is not asked: that would be part of
// what it is measured to need.
func (p *realPod) follow(ctx context.Context) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	var (
		life          int
		bytes         int64     // received as of the last dump
		changed       time.Time // when it was last seen to have received more
		dumped        time.Time
		refusing      time.Time // since when
		seen          int64
		unreadable    time.Time // since when its configuration cannot be read
		settled       bool      // what was last read lacks nothing that comes without more bytes
		readCompletes bool
		initialized   bool // once in all lives
	)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		current := p.as.life()
		if current.Number == 0 {
			continue // it does not run yet
		}
		if readCompletes && current.Number == life && refusing.IsZero() && p.real.Quiet() {
			continue
		}
		now := time.Now()
		total, err := p.sidecar.Received(ctx)
		if err != nil {
			continue // it does not run yet, or not now
		}
		if current.Number != life {
			life, bytes, seen, refusing, settled = current.Number, 0, 0, time.Time{}, false
			unreadable = time.Time{}
			p.as.answered(current)
		}
		if total > seen {
			seen, changed = total, now
		}
		if !initialized && p.sidecar.Ready(ctx) {
			initialized = true
			p.update(func() { p.initialize(now) })
		}
		readCompletes = initialized && total == bytes && settled
		if readCompletes && refusing.IsZero() || now.Sub(dumped) < dumpEvery || total == 0 {
			continue
		}
		crashes := p.crashedSoFar()
		configuration, err := p.sidecar.Configuration(ctx)
		if cannot, ok := errors.AsType[*sidecar.UnreadableError](err); ok {
			dumped = now
			if unreadable.IsZero() {
				unreadable = now
				p.real.Say(fmt.Sprintf("the Envoy of pod %s does not print what it holds: %v", p.id, cannot))
			}
			if now.Sub(unreadable) > refusalTimeout {
				p.fleet.Fail(p.refuses(sidecar.Refusal{Resource: "one that it cannot print, which its log names", Words: cannot.Answer}, now.Sub(unreadable)))
				return
			}
		}
		if err != nil {
			continue
		}
		unreadable = time.Time{}
		at := changed
		if total == bytes {
			at = now // its certificate came another way, and what waited for it
		}
		bytes, dumped = total, now
		settled = !configuration.Warming && (p.real.Certified || !configuration.Certificate.IsZero())
		p.take(reading{configuration, changed, at, crashes})
		if len(configuration.Refused) == 0 {
			refusing = time.Time{}
			continue
		}
		if refusing.IsZero() {
			refusing = now
			p.fleet.Event(refusedEvent(p.id, configuration.Refused))
			p.real.Say(fmt.Sprintf("the Envoy of pod %s refused %s", p.id, configuration.Refused[0]))
			p.real.Warn(record.Warning{About: "sidecars.real", Reason: record.ReasonSidecarRefused, Component: p.id, Detail: configuration.Refused[0].String()})
		}
		if now.Sub(refusing) > refusalTimeout {
			p.fleet.Fail(p.refuses(configuration.Refused[0], now.Sub(refusing)))
			return
		}
	}
}

// refuses returns the error of an Envoy that does not take a resource.
func (p *realPod) refuses(what sidecar.Refusal, since time.Duration) error {
	err := fmt.Errorf("the Envoy of pod %s has refused its configuration for %.0f s: %s", p.id, since.Seconds(), what)
	if len(p.real.Patches) > 0 {
		err = fmt.Errorf("%w; objects of the mesh that change it: %s", err, strings.Join(p.real.Patches, ", "))
	}
	return err
}

// refusedEvent returns the event of what a pod's Envoy refused.
func refusedEvent(pod string, refused []sidecar.Refusal) record.ConfigurationRefused {
	e := record.ConfigurationRefused{Pod: pod}
	for _, r := range refused {
		e.Refused = append(e.Refused, record.RefusedResource(r))
	}
	return e
}

// reading is the configuration of an Envoy as it was read once.
type reading struct {
	sidecar.Configuration
	heard   time.Time // when it was last seen to receive something
	at      time.Time // since when it holds what it does, as near as is known
	crashes int       // of its sidecar before it was read
}

// take reports what the Envoy holds, which it has acknowledged, to the tracker; nothing
// if it has crashed since.
func (p *realPod) take(r reading) {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	if p.crashes != r.crashes {
		return
	}
	var firstTime, certified bool
	var started time.Time
	p.update(func() {
		started = p.times.Dialed
		setOnce(&p.times.Connected, r.heard)
		firstTime = !r.First.IsZero() && setOnce(&p.times.Answered, r.First)
		certificate := r.Certificate
		if p.real.Certified {
			certificate = started
		}
		certified = !certificate.IsZero() && setOnce(&p.times.Certified, certificate)
		p.whole = true
		p.fleet.Readiness.reportIfDue(p.pod)
	})
	p.report(r.Configuration, r.at)
	if firstTime {
		p.starts.FirstConfiguration.Record(r.First.Sub(started))
	}
	if certified {
		if !p.real.Certified {
			p.starts.Certificate.Record(r.Certificate.Sub(started))
		}
		p.real.tracker.Certified(p.id, r.at)
	}
	p.fleet.notify()
}

// drop reports that the sidecar ended, so that its Envoy holds nothing any more.
func (p *realPod) drop(at time.Time) {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	p.crashes++
	p.report(sidecar.Configuration{}, at)
}

// report reports to the tracker that the Envoy holds this, and nothing else any more. The
// caller holds p.reporting.
func (p *realPod) report(c sidecar.Configuration, at time.Time) {
	update := convergence.Update{ReceivedAt: at, AckedAt: at, Set: c.Held}
	now := map[convergence.Key]bool{}
	for _, r := range c.Held {
		now[r.Key] = true
	}
	for _, key := range p.keys() {
		if !now[key] {
			update.Removed = append(update.Removed, key)
		}
	}
	p.mu.Lock()
	p.held = c
	p.mu.Unlock()
	p.real.tracker.Update(p.id, update)
}

// crashedSoFar returns how often the sidecar has crashed.
func (p *realPod) crashedSoFar() int {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	return p.crashes
}

// keys returns the keys of the resources that Envoy held when it was last read.
func (p *realPod) keys() (keys []convergence.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.held.Held {
		keys = append(keys, r.Key)
	}
	return keys
}
