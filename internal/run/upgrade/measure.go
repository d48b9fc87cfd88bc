package upgrade

import (
	"fmt"
	"time"

	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/pkg/record"
)

// Measure puts the figures of the stages that have ended into the record; nil has none. warn is called
// with the usage of each program in each stage.
func (u *Upgrade) Measure(document *record.Run, usage *measure.Sampler, warn func(about, program string, phase record.PhaseName, used measure.Usage)) error {
	if u == nil || document.Upgrade == nil {
		return nil
	}
	from, to := document.Upgrade.From.Program, document.Upgrade.To.Program
	document.Upgrade.Stages = map[string]*record.UpgradeStage{}
	for _, s := range u.stages {
		stage := &record.UpgradeStage{PeakPods: &s.peakPods}
		about := "upgrade.stages." + s.Name
		if s.pods > 0 {
			stage.Pods, stage.Replaced, stage.Moved = &s.pods, &s.replaced, s.moved
		}
		var running []string
		for _, side := range []struct {
			name, program string
			received      *fleet.Received
			into          **record.UpgradeSide
		}{{"from", from, s.Old, &stage.From}, {"to", to, s.Next, &stage.To}} {
			if side.program == "" {
				continue
			}
			used, err := usage.Figures(side.program, s.Begin, s.End)
			if err != nil {
				return fmt.Errorf("reading the figures of %s in %s: %w", side.program, s.Name, err)
			}
			if used.Ran == 0 {
				continue // it had ended before
			}
			running = append(running, side.program)
			warn(about+"."+side.name+".controlPlane", side.program, record.UpgradePhase(s.Name), used)
			if *side.into, err = u.side(s, about+"."+side.name, side.received); err != nil {
				return err
			}
			(*side.into).ControlPlane = measure.UsageOf(used)
		}
		cores, memory, err := usage.Together(running, s.Begin, s.End)
		if err != nil {
			return fmt.Errorf("reading the figures of %s: %w", s.Name, err)
		}
		stage.PeakCores, stage.PeakMemoryBytes = &cores, &memory
		if err := s.Background.Latencies.Save(u.Journal, about+".", &stage.Latencies); err != nil {
			return err
		}
		document.Upgrade.Stages[s.Name] = stage
	}
	document.FindRoom()
	return nil
}

// side returns what the sidecars of one control plane received in a stage.
func (u *Upgrade) side(s *Stage, about string, received *fleet.Received) (*record.UpgradeSide, error) {
	side := &record.UpgradeSide{}
	if received == nil {
		return side, nil
	}
	side.Responses = new(received.Responses.Load())
	for kind, h := range received.Endpoints() {
		latency, err := u.Journal.SaveLatency(about+".push."+string(kind), h)
		if err != nil {
			return nil, err
		}
		if latency == nil {
			continue
		}
		if side.Push == nil {
			side.Push = map[record.ChangeKind]*record.Latency{}
		}
		side.Push[kind] = latency
	}
	side.Stale = stale(side.Push[record.EndpointRemove], s.End.Sub(s.Begin))
	return side, nil
}

// stale returns the mean number of stale endpoints at a moment of a stage: the times for which
// endpoints were held that were gone, added up, over its length.
func stale(removed *record.Latency, length time.Duration) *float64 {
	if length <= 0 {
		return nil
	}
	if removed.Unknown() {
		return nil
	}
	if removed == nil || removed.Mean == nil {
		return new(float64)
	}
	return new(*removed.Mean * float64(removed.Count) / length.Seconds())
}
