package measure

import (
	"errors"
	"io/fs"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// clusterComponents are the programs of a cluster as samples name them. Samples have
// those of real sidecars, too, which figures of a cluster do not.
var clusterComponents = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// Recover computes the usage of a run that was killed before it could, from its
// samples. Phases that have figures, and runs that ended by themselves or go on
// without samples, stay as they are. The error names the samples' file.
func Recover(run *record.Run) error {
	if run.Finished != nil || run.Status != record.StatusInterrupted || run.Slowdown() > 1 || len(run.Phases) == 0 {
		return nil
	}
	history, err := ReadHistory(run.Samples, SampleInterval)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // samples.jsonl was taken away
	}
	if err != nil {
		return err
	}
	recovered := false
	for _, phase := range run.Phases {
		if slot := new(record.ByPhase[*record.Usage]).At(phase.Name); slot == nil {
			continue // settle and faults
		}
		var end time.Time
		if phase.End != nil {
			end = *phase.End
		}
		if from, to, ok := history.Window(phase.Start, end); ok {
			recovered = recoverPhase(run, history, phase.Name, from, to) || recovered
		}
	}
	if recovered {
		for _, about := range []string{"controlPlane", "cluster", "instrument"} {
			run.Warnings = append(run.Warnings, record.NewWarning(record.Warning{About: about, Reason: record.ReasonFromSamples}))
		}
	}
	return nil
}

// recoverPhase computes the figures of one phase; what cannot be computed stays absent.
func recoverPhase(run *record.Run, history *History, phase record.PhaseName, from, to time.Time) (recovered bool) {
	set := func(slot **record.Usage, name string) {
		if *slot != nil {
			return
		}
		if usage, err := history.Figures(name, from, to); err == nil {
			*slot, recovered = UsageOf(usage), true
		}
	}
	if name := run.Environment.ControlPlane.Name; history.lives[name] != nil {
		if run.ControlPlane == nil {
			run.ControlPlane = &record.ByPhase[*record.Usage]{}
		}
		set(run.ControlPlane.At(phase), name)
	}
	for _, name := range clusterComponents {
		if history.lives[name] == nil {
			continue
		}
		if run.Cluster == nil {
			run.Cluster = map[string]record.ByPhase[*record.Usage]{}
		}
		byPhase := run.Cluster[name]
		set(byPhase.At(phase), name)
		run.Cluster[name] = byPhase
	}
	if phase == record.PhaseRollout && run.Instrument == nil {
		if usage, err := history.Figures(InstrumentName, from, to); err == nil {
			run.Instrument = &record.Instrument{Cores: &usage.CoresMean, MemoryBytes: &usage.MemoryPeak, OpenFiles: &usage.OpenFilesPeak}
			recovered = true
		}
	}
	return recovered
}
