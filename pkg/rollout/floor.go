package rollout

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"scaler.mesh/scaler/pkg/record"
)

// calibrate measures the instrument's floor as far as it is not known for a run
// of this size, unless that was declined. It belongs to no run: what it finds is
// kept for all. That it fails is no reason not to run, and is said.
func (r *rolloutRun) calibrate(ctx context.Context) error {
	if r.spec.NoCalibrate {
		return nil
	}
	missing, err := r.missingPoints()
	if err == nil && len(missing) > 0 {
		r.progress.say(fmt.Sprintf("measuring scaler's own floor once, with %v sidecars; --no-calibrate does without", missing))
		spec := DefaultCalibrateSpec()
		spec.Sidecars, spec.XDS, spec.Programs, spec.State = missing, r.spec.XDS, r.spec.Programs, r.spec.State
		_, err = Calibrate(ctx, spec, r.progress.Say)
		debug.FreeOSMemory() // what it left is not the run's idle program
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.warn(record.Warning{About: "instrument.floor", Reason: record.ReasonNotMeasured, Detail: firstLine(err)})
		r.progress.say("scaler's own floor could not be measured: " + firstLine(err))
	}
	return nil
}

// missingPoints are the numbers of sidecars that a calibration lacks for a run
// of this size: those below, and the first above.
func (r *rolloutRun) missingPoints() ([]int, error) {
	known, err := r.calibration()
	if err != nil {
		return nil, err
	}
	var missing []int
	for i, n := range calibrated {
		if i > 0 && calibrated[i-1] >= r.spec.Topology.Pods {
			break
		}
		if !slices.ContainsFunc(known.Points, func(p record.CalibrationPoint) bool { return p.XDS == r.spec.XDS && p.Sidecars == n }) {
			missing = append(missing, n)
		}
	}
	return missing, nil
}

// calibration is what is kept for this machine.
func (r *rolloutRun) calibration() (record.Calibration, error) {
	file, err := calibrationFile(r.spec.Programs)
	if err != nil {
		return record.Calibration{}, err
	}
	return readCalibration(file)
}

// floor is the instrument's floor for a run of this size; nil where it is not
// known.
func (r *rolloutRun) floor() map[string]float64 {
	known, err := r.calibration()
	if err != nil {
		return nil
	}
	return known.Floor(r.spec.XDS, r.spec.Topology.Pods)
}
