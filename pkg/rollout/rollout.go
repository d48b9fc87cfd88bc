// Package rollout runs scenarios: it rolls out meshes against a real control plane, on a cluster
// with fake nodes that it starts and stops, and returns what was measured as records.
//
//	document := scenario.New(scenario.Default())
//	if err := document.Read("scenario.yaml", file); err != nil { ... }
//	runs, err := rollout.Run(ctx, document, rollout.Options{Out: "results"})
//
// It needs what the command scaler needs: Linux, and Go or a container registry for the first
// run, which gets the programs. The functions of this package start processes and may be called
// in one process at the same time only with different folders.
package rollout

import (
	"context"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// ErrUnconverged is in the error of runs of which some finished without convergence within their
// time limit, and none failed otherwise. Their records say so, too.
var ErrUnconverged = phases.ErrUnconverged

// Options has what a run needs and a scenario does not state.
type Options struct {
	// Out is the folder of the records, which is made; each has a folder of its own below it. It must
	// not have a record of a run of the same name. Needed.
	Out string
	// State is the folder of what runs: clusters and their data. Empty means the user's state folder,
	// where the command scaler looks for clusters that are left over.
	State string
	// Programs is a folder with ready programs. Empty means that they are taken from images or built,
	// and kept in the user's cache folder.
	Programs string
	// Say takes a line about each step. Nil means silence.
	Say func(line string)
}

// Names returns the names of the runs that a document asks for, in their order: a run for each size,
// mode and data plane, and each repeat. Nothing is started. An error of a field is a
// *[scenario.Error].
func Names(d *scenario.Document, o Options) ([]string, error) {
	l, err := ladder(d, o)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, one := range l.Runs() {
		names = append(names, one.Name())
	}
	return names, nil
}

// Run does all runs that a document asks for, one after the other, and returns the records of those
// that were begun, also with an error. When it returns, for whatever reason, everything that it
// started has been stopped. The error is a *[scenario.Error] if a field cannot be used, and then
// nothing was started; it wraps [ErrUnconverged], or context.Canceled if ctx ended the runs.
func Run(ctx context.Context, d *scenario.Document, o Options) ([]record.Run, error) {
	l, err := ladder(d, o)
	if err != nil {
		return nil, err
	}
	return l.Run(ctx, run.Progress{Say: o.Say})
}

// ladder makes and checks the runs of a document.
func ladder(d *scenario.Document, o Options) (l run.Ladder, err error) {
	if o.Out == "" {
		return l, scenario.Refuse("Options.Out", "", "a folder")
	}
	if o.State == "" {
		if o.State, err = place.StateDir(); err != nil {
			return l, err
		}
	}
	if err := d.Check(scenario.Rollout); err != nil {
		return l, err
	}
	spec := run.Spec{Out: o.Out, State: o.State, Programs: component.Options{BinDir: o.Programs, Progress: o.Say, Unreachable: new(component.Unreachable)}}
	if l, err = run.NewLadder(spec, d); err != nil {
		return l, err
	}
	if l.Spec.Existing != nil {
		return l, scenario.Refuse("place.context", d.Scenario.Place.Context, "none: an existing cluster is used by the command scaler, which asks first")
	}
	return l, l.Validate()
}
