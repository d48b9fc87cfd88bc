// Package dilation chooses the factor by which a rollout is slowed down, from what programs are
// expected to need for it and from what this machine can do. Nothing is tried out. What a control
// plane needs is stated by its driver.
package dilation

import (
	"cmp"
	"math"
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Cost is the processor time that the programs of a control plane need for a rollout, in seconds of the reference processor. The processor time that
// they use at rest is not included.
type Cost struct {
	Pod            float64 // for each pod: injection, token, certificate, stream, first configuration
	PodPerPod      float64 // for each pod and pod of the mesh
	Push           float64 // for each push to a sidecar
	PushPerService float64 // for each push and service that the sidecar is configured for
	// ReadyPerSecond is the most pods that become ready in a second, for each replica, by limits that are no matter of
	// processors.
	ReadyPerSecond float64
}

// What the other programs need, in the same seconds.
//
// The cluster's programs (API server, etcd, controller-manager, scheduler, KWOK) used 175, 177 and 185 ms for each of 200, 400 and 800 pods
// (docs/results/ladder.md).
//
// scaler used 2.7 s in a rollout of 200 pods at once, with 20 pushes for each sidecar, and 42 s in one of 1600 pods with about 130
// (docs/results/first-run.md).
const (
	clusterPod     = 0.18
	instrumentPod  = 0.011
	instrumentPush = 0.00012
)

// pushes states the number of pushes that a sidecar receives in a rollout: first, and perSecond for each second that it is connected, which is half of
// the rollout on average.
type pushes struct{ first, perSecond float64 }

var (
	// inBursts gives 30 to 170 pushes for 200 to 1600 pods in bursts of 20 each second; 31 to 171 were measured (docs/results/arrival.md).
	inBursts = pushes{10, 4}
	// oneByOne gives 26 to 54 pushes for 200 to 1600 pods that come one by one. It is fitted to the processor time of istiod; 26 to 36 pushes
	// were measured, with more changes in each (docs/results/ladder.md).
	oneByOne = pushes{22, 0.8}
	// scoped are the pushes of sidecars that are configured only for what they call (docs/results/ladder.md).
	scoped = pushes{first: 18}
)

// How much of this machine's processor time a run may need.
const (
	// Limit applies while pods come. The control plane and scaler have priority, but the cluster's programs must not wait for long either:
	// with 20 pods a second that come one by one, the control plane makes a push more once they delay a pod by more than 50 ms
	// (docs/results/dilation.md).
	Limit = 0.7
	// lowLimit applies if no program has priority. It also applies to changes after the rollout, because what the cluster's programs need
	// for them is not known.
	lowLimit = 0.4
)

const (
	// pause limits the modelled time for which the control plane may take all processors of the machine: meanwhile no pods come, and
	// istiod pushes again once nothing has changed for 100 ms (docs/results/dilation.md).
	pause = 0.08
	// room is the number of processors of the machine that the control plane must leave to others where it would take them for longer.
	room = 0.5
	// roundFactor multiplies the Cost of a push to all sidecars with all processors of the machine. In such pushes to 400 to 1600 sidecars scaler did
	// not run for 2 to 3 times as long (docs/results/data/ladder.txt).
	roundFactor = 3
)

// roundsPerSecond is the largest rate of pushes: changes within the debounce, 100 ms, are pushed together.
const roundsPerSecond = 10

// factors are the factors to choose from. They are so far from each other that the measured speed, which differs by some
// percent from one measurement to the next, rarely decides between two of them; and twice a factor is one.
var factors = []float64{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, scenario.MaxDilation}

// Machine describes the capacity of a machine.
type Machine struct {
	Processors int
	Speed      float64 // of each, in reference processors; 0 = not known, and taken as 1
}

// cores returns the processors of the machine, in reference processors.
func (m Machine) cores() float64 { return float64(max(1, m.Processors)) * cmp.Or(m.Speed, 1) }

// Load is the load of a rollout, and of changes after it, on the programs.
type Load struct {
	Pods      int
	Services  int     // that each sidecar is configured for
	Scoped    bool    // sidecars are configured for what they call alone
	PerSecond float64 // at which pods come; 0 = at once
	Peak      float64 // at which they come within a burst; 0 = PerSecond
	OneByOne  bool    // in place of bursts, or all at once
	Starts    float64 // seconds by which the starts of sidecars differ, after their pods have come
	Equal     bool    // no program has priority over another
	Replicas  int     // 0 = 1
	// Processors limits the reference processors that each replica of the control plane may use; 0 = as many as the machine has.
	Processors int
	Changes    float64 // a second, each to all sidecars, after the rollout
}

// Demand is the processor time that programs are expected to need for a rollout, on the modelled machine.
type Demand struct {
	Seconds                           float64 // over which pods come
	ControlPlane, Instrument, Cluster float64 // processor time in seconds of the reference processor
	// Round is the processor time of the greatest push to all sidecars, in the same seconds. Most is the number of reference
	// processors that the control plane may use for it; 0 = all of the machine.
	Round float64
	Most  int
	// Cores is the number of reference processors that are needed while pods come, in the time of the modelled machine, and Limit is the share of
	// a machine that they may take; both are of the changes if these need the larger machine.
	Cores, Limit float64
}

// On returns the least time in seconds, of the real time, in which a machine can run the programs.
func (d Demand) On(m Machine) float64 { return (d.ControlPlane + d.Instrument + d.Cluster) / m.cores() }

// Expect returns what a load needs with a control plane of this cost.
func Expect(l Load, c Cost) Demand {
	pods, most := float64(l.Pods), c.ReadyPerSecond*float64(max(1, l.Replicas))
	rate := most
	if l.PerSecond > 0 {
		rate = min(rate, l.PerSecond)
	}
	d := Demand{Seconds: pods / rate, Limit: Limit, Most: l.Processors * max(1, l.Replicas)}
	if l.Equal {
		d.Limit = lowLimit
	}
	p, push := inBursts, c.Push+c.PushPerService*float64(l.Services)
	if l.OneByOne {
		p = oneByOne
	}
	if l.Scoped {
		p, push = scoped, c.Push
	} else if l.OneByOne && !l.Equal { // else changes pause by themselves, or the control plane has no priority
		d.Round = pods * push
	}
	count := p.first + p.perSecond*d.Seconds/2
	d.ControlPlane = pods * (c.Pod + c.PodPerPod*pods + count*push)
	d.Instrument = pods * (instrumentPod + count*instrumentPush)
	d.Cluster = pods * clusterPod
	if d.Seconds > 0 {
		burst := max(1, min(l.Peak, most)/rate) // how much faster pods come within one
		length := d.Seconds
		if l.PerSecond == 0 { // else the first pods start while others come
			length += l.Starts
		}
		d.Cores = burst * (d.ControlPlane + d.Instrument + d.Cluster) / length
	}
	if changes := min(l.Changes, roundsPerSecond) * pods * (push + instrumentPush); changes/lowLimit > d.Cores/d.Limit {
		d.Cores, d.Limit = changes, lowLimit
	}
	return d
}

// machine returns how many reference processors a machine must have for the demand.
func (d Demand) machine() float64 { return d.Cores / cmp.Or(d.Limit, Limit) }

// Factor returns the least one with which a demand stays within a machine, and the greatest where none does.
func (d Demand) Factor(m Machine) float64 {
	return least(func(k float64) bool { return d.fits(k, m) && d.leavesRoom(k, m) })
}

// fits reports whether a machine has what is needed on average.
func (d Demand) fits(k float64, m Machine) bool { return d.machine() <= k*m.cores() }

// least returns the least factor that is enough, and the greatest where none is.
func least(enough func(k float64) bool) float64 {
	for _, k := range factors {
		if enough(k) {
			return k
		}
	}
	return scenario.MaxDilation
}

// leavesRoom reports whether a push to all sidecars does not stop everything else on a machine for too long.
func (d Demand) leavesRoom(k float64, m Machine) bool {
	left := float64(max(1, m.Processors)) - float64(d.Most)/k/cmp.Or(m.Speed, 1)
	return d.Most > 0 && left >= room || roundFactor*d.Round <= pause*k*m.cores()
}

// Choose returns the factor of rollouts that are compared: the largest that one of them needs, with what it follows from.
func Choose(all []Demand, m Machine) (factor float64, choice record.DilationChoice) {
	var most Demand
	for i, d := range all {
		if i == 0 || d.Factor(m) > most.Factor(m) || d.Factor(m) == most.Factor(m) && d.machine() > most.machine() {
			most = d
		}
	}
	factor = most.Factor(m)
	choice = record.DilationChoice{
		Limit: most.Limit, Processors: m.Processors, Speed: m.Speed, Cores: most.Cores, Seconds: most.Seconds,
		ControlPlaneSeconds: most.ControlPlane, InstrumentSeconds: most.Instrument, ClusterSeconds: most.Cluster,
	}
	if average := least(func(k float64) bool { return most.fits(k, m) }); factor > average {
		choice.RoundSeconds = most.Round
	}
	return factor, choice
}

// Slower returns the factor of a run that is started again, because programs waited too long with this one.
func Slower(factor float64) float64 { return min(scenario.MaxDilation, 2*factor) }

// Length returns the expected time over which pods come, in modelled time.
func (d Demand) Length() time.Duration {
	return time.Duration(math.Round(d.Seconds * float64(time.Second)))
}
