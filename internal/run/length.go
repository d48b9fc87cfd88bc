package run

import (
	"cmp"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// How long parts of a run take that no field states. A run of 200 pods with K = 3 took 255 s, of which 234 in its phases
// (docs/results/first-run.md), and one of 1600 pods with K = 5 took 347 s, of which 316
// (docs/results/ladder.md): the others are the start of the cluster and the control plane, the computing
// of figures, taking everything down, and a measurement of the processor's speed. A probe of each of five kinds took 1.5 s of the modelled time
// with 200 pods.
const (
	starting        = 15 * time.Second // until the first phase begins
	finishing       = 7 * time.Second  // from the end of the last phase
	finishingPerPod = 7 * time.Millisecond
	perProbe        = 1100 * time.Millisecond
	perProbePerPod  = 2 * time.Millisecond
	lastPush        = time.Second     // of a rollout, after its last pod
	removing        = 2 * time.Second // of the old control plane of an upgrade
)

// Stages of a run that are no phases of the record.
const (
	stageStarting  = "starting"
	stageFinishing = "finishing"
	stageStopping  = "stopping" // after an interrupt or a failure
)

// stage is a part of a run.
type stage struct {
	name   string        // of the phase; record.UpgradePrefix is that of all phases of an upgrade
	length time.Duration // about, on this machine
}

// readyPerSecond is the rate at which pods that come at once become ready where nothing is known of the control plane.
const readyPerSecond = 50

// Expected returns about how long a run takes on this machine, from its start to its end, with the factor that it
// has. The measurement of scaler's own floor where that is not known yet is not part of it.
func (s Spec) Expected() (sum time.Duration) {
	for _, part := range s.stages() {
		sum += part.length
	}
	return sum
}

// stages returns the parts of a run in their order.
func (s Spec) stages() []stage {
	pods := s.topology().Defaults().Pods
	atOnce := perSecond(pods, s.readyPerSecond())
	var upgrade, storm, changes, churn time.Duration
	if u := s.upgrade(); u != nil {
		mesh := s.mesh()
		waves, restarted := max(1, len(u.WavesOf(mesh))), 0 // each waits for its last pods
		for _, of := range mesh.Services {
			if of.OwnProxy() {
				restarted += of.Pods
			}
		}
		delay := max(s.startDelay().Longest(pods), s.delayAnew().Longest(pods))
		upgrade = 2*u.Pause + s.nodesTake() + perSecond(restarted, cmp.Or(u.Rate, s.readyPerSecond())) + time.Duration(waves)*(delay+lastPush) + removing
	}
	if s.Load.CertificateStorm {
		storm = atOnce
	}
	if s.Load.Changes.PerSecond > 0 {
		changes = time.Duration(s.Phases.Changes)
	} else if s.Load.Churn > 0 {
		churn = time.Duration(s.Phases.Steady)
	}
	realTime := s.realTime()
	settle := stage{string(record.PhaseSettle), s.slowed(time.Duration(s.Phases.Settle))}
	if realTime != nil { // it lasts until istiod is quiet, since the end of the rollout
		settle.length = max(time.Duration(s.Phases.Settle), min(settle.length, s.slowed(fleet.QuietTime)))
	}
	of := func(name record.PhaseName, length time.Duration) stage {
		if length += s.faultsLength(name); !slices.Contains(realTime, name) {
			length = s.slowed(length)
		}
		return stage{string(name), length}
	}
	return []stage{
		{stageStarting, starting},
		of(record.PhaseBaseline, time.Duration(s.Phases.Baseline)),
		of(record.PhaseRollout, s.rolloutLength()),
		settle,
		of(record.PhaseSteady, time.Duration(s.Phases.Steady)),
		of(record.PhaseProbe, time.Duration(s.Load.Probes)*(perProbe+time.Duration(pods)*perProbePerPod)),
		of(record.UpgradePrefix, upgrade),
		of(record.PhaseChange, changes),
		of(record.PhaseCycle, time.Duration(s.Phases.Cycle)),
		of(record.PhaseStorm, storm),
		of(record.PhaseChurn, churn),
		of(record.PhaseFault, 0),
		{stageFinishing, finishing + time.Duration(pods)*finishingPerPod},
	}
}

// rolloutLength returns about how long a rollout takes, of the modelled time.
func (s Spec) rolloutLength() time.Duration {
	pods, rate := s.topology().Defaults().Pods, s.readyPerSecond()
	if asked, _ := s.Load.Arrival.PerSecond(); asked > 0 {
		rate = min(rate, asked)
	}
	return max(perSecond(pods, rate), s.machineNeeds()) + s.startDelay().Longest(pods) + lastPush
}

// machineNeeds returns the least modelled time in which this machine can do a rollout. It is 0 if the factor was chosen for the machine.
// Otherwise the speed of its processors was not measured, and is taken as 1.
func (s Spec) machineNeeds() time.Duration {
	demand, known := s.demand()
	if !known || s.Choice != nil || s.Existing != nil { // the cluster's programs run elsewhere
		return 0
	}
	return time.Duration(demand.On(dilation.Machine{Processors: len(linux.Processors())}) / s.dilation() * float64(time.Second))
}

// faultsLength returns about how much longer a phase takes by its faults, of the modelled time: as long as what is broken is
// away, and then as pods need that come at once, for those that come back. Those of steady have a phase of their own after it.
func (s Spec) faultsLength(phase record.PhaseName) (sum time.Duration) {
	pods := s.topology().Defaults().Pods
	for _, f := range s.Load.Faults {
		in := record.PhaseName(f.Phase)
		if in == record.PhaseSteady {
			in = record.PhaseFault
		}
		if in != phase {
			continue
		}
		sum += f.Time
		if in == record.PhaseRollout {
			continue // its end is that of the rollout
		}
		share := cmp.Or(f.Share, 1)
		sum += perSecond(int(share*float64(pods)), s.readyPerSecond()) + lastPush
		if f.Described().On == scenario.OnWorkloads { // they start again
			sum += s.startDelay().Longest(pods)
		}
	}
	return sum
}

// readyPerSecond returns the rate at which pods that come at once become ready.
func (s Spec) readyPerSecond() float64 {
	driver, err := s.Driver()
	if err != nil || driver.Dilation == nil || driver.Dilation.Cost == nil {
		return readyPerSecond
	}
	return driver.Dilation.Cost.ReadyPerSecond * float64(max(1, s.ControlPlane.Replicas))
}

// perSecond returns the time that n take at a rate.
func perSecond(n int, rate float64) time.Duration {
	return time.Duration(float64(n) / rate * float64(time.Second))
}
