package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Ladder are the runs of a scenario whose lists have several values: how need grows with size and
// mode. Each is a run of its own, on a cluster and control plane started fresh for it.
type Ladder struct {
	Spec Spec // what the runs have in common; its sizes, modes and data planes take turns
	// Versions are the versions of the control plane's programs that take turns, each once, whose
	// records go to a folder each below Spec.Out; nil = that of Spec.
	Versions []string
	// ByDefault states that nobody asked for a trial to choose the dilation: the factor is that of an earlier trial
	// for such rollouts on this machine, if there was one, and 1 if a trial fails.
	ByDefault bool
}

// NewLadder makes the runs of a scenario document; see [New]. Where the document leaves the dilation
// to the command, trials choose it for rollouts whose figures are all right with one.
func NewLadder(s Spec, d *scenario.Document) (l Ladder, err error) {
	if l.Spec, err = New(s, d); err != nil {
		return l, err
	}
	if l.Spec.Instrument.Dilation == (scenario.Dilation{}) {
		l.Spec.Instrument.Dilation, l.ByDefault = l.Spec.DefaultDilation(), true
	}
	return l, nil
}

// givingUp is how many runs in a row may fail before the others are not tried:
// then it is not the size that fails them.
const givingUp = 2

// Validate returns an error for the first field or flag whose value cannot be used. Nothing has been
// started or created before it returns nil.
func (l Ladder) Validate() error {
	m := l.Spec.Mesh
	if err := errors.Join(eachOnce("mesh.pods", m.Pods), eachOnce("mesh.mode", m.Mode), eachOnce("mesh.dataplane", m.Dataplane)); err != nil {
		return err
	}
	for i, version := range l.Versions {
		if slices.Contains(l.Versions[:i], version) {
			return fmt.Errorf("--versions: got %q, want each version once", strings.Join(l.Versions, ","))
		}
	}
	runs := l.Runs()
	if len(runs) > 1 && l.Spec.Keep {
		return fmt.Errorf("--keep: want it with one run alone, not with %d", len(runs))
	}
	if len(runs) > 1 && l.Spec.Existing != nil {
		return scenario.Refuse("place.context", nil, "one run, and one size and mode, in an existing cluster, not %d", len(runs))
	}
	if own := l.Spec.Mesh.Settings; len(m.Mode) > 1 && own.MTLS != "" && own.Scope != "" && own.Authz != "" {
		return scenario.Refuse("mesh.mode", nil, "it without mesh.settings.mtls, mesh.settings.scope or mesh.settings.authz: all of them together leave the modes nothing to differ in")
	}
	for _, run := range runs {
		if err := run.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// eachOnce checks a list of which each value makes a run.
func eachOnce[T comparable](path string, values []T) error {
	for i, value := range values {
		if slices.Contains(values[:i], value) {
			return scenario.Refuse(path, value, "each value once; repeats runs them several times")
		}
	}
	if len(values) == 0 {
		return scenario.Refuse(path, nil, "one value at least")
	}
	return nil
}

// Runner does one run and returns its record; RunOne is one. Tests have others.
type Runner func(ctx context.Context, spec Spec, progress Progress) (record.Run, error)

// RunOne is a ladder of one run. The error is that of [Ladder.Run]; the record has no folder
// if the run did not begin.
func RunOne(ctx context.Context, spec Spec, progress Progress) (record.Run, error) {
	ladder := Ladder{Spec: spec}
	runs, err := ladder.Run(ctx, progress)
	if len(runs) == 0 {
		return record.Run{}, err
	}
	return runs[0], err
}

// Runs are the runs in the order in which they are done: all sizes in the order
// given, the modes of a size, and the data planes of a mode, next to each other; then again for each repeat,
// every other time from the last to the first. What drifts meanwhile, as a disk
// that fills or a machine that warms up, then looks like the spread between
// repeats, and not like an effect of the size.
func (l Ladder) Runs() []Spec {
	var runs []Spec
	m := l.Spec.Mesh
	for repeat := range max(1, l.Spec.Repeats) {
		var round []Spec
		for _, pods := range m.Pods {
			for _, mode := range m.Mode {
				for _, dataplane := range m.Dataplane {
					run := l.Spec
					run.Mesh.Pods, run.Mesh.Mode, run.Mesh.Dataplane = scenario.List[int]{pods}, scenario.List[string]{mode}, scenario.List[string]{dataplane}
					if l.Spec.Repeats > 1 {
						run.Repeat = repeat + 1
					}
					round = append(round, l.ofVersions(run)...)
				}
			}
		}
		if repeat%2 == 1 {
			slices.Reverse(round)
		}
		runs = append(runs, round...)
	}
	return runs
}

// ofVersions are a run, and the same of the other versions next to it.
func (l Ladder) ofVersions(run Spec) []Spec {
	if l.Versions == nil {
		return []Spec{run}
	}
	var all []Spec
	for _, version := range l.Versions {
		run.ControlPlane.Version, run.Programs.Istio, run.Out = version, version, filepath.Join(l.Spec.Out, version)
		all = append(all, run)
	}
	return all
}

// prepareVersions builds what the versions need, so that no run waits for a build, or is
// measured while the machine is warm from one.
func (l Ladder) prepareVersions(ctx context.Context, progress Progress) error {
	driver, err := l.Spec.Driver()
	if err != nil {
		return err
	}
	for _, version := range l.Versions {
		options := l.Spec.Programs
		options.Istio, options.Progress = version, progress.say
		if _, err := component.Paths(ctx, options, experiment.RunPrograms(driver)...); err != nil {
			return err
		}
	}
	return nil
}

// openFolders opens the output folders of the runs, none of which has a run of its name.
func openFolders(specs []Spec) (folders map[string]*record.Folder, err error) {
	folders = map[string]*record.Folder{}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeFolders(folders))
		}
	}()
	for _, spec := range specs {
		if folders[spec.Out] == nil {
			if folders[spec.Out], err = record.Open(spec.Out); err != nil {
				delete(folders, spec.Out)
				return folders, err
			}
		}
		if err := folders[spec.Out].Check(spec.Name()); err != nil {
			return folders, err
		}
	}
	return folders, nil
}

func closeFolders(folders map[string]*record.Folder) (err error) {
	for _, folder := range folders {
		err = errors.Join(err, folder.Close())
	}
	return err
}

// Run does the runs, one after the other, and returns the records of all that
// were begun.
//
// A run that does not converge, or fails, ends itself alone: the larger ones may
// fail alike, but what came before is not lost, and that a control plane runs
// out of memory at a size is a result. Two runs in a row that failed for another
// reason end the ladder, as does what no run would survive, such as a disk that
// takes no more.
//
// The error wraps context.Canceled when ctx ended the ladder, says of failures
// what the first was, and is ErrUnconverged when nothing worse happened than a
// time limit that passed.
func (l Ladder) Run(ctx context.Context, progress Progress) (runs []record.Run, err error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	versions := new(component.Versions)
	if err := checkMachine(ctx, l.Runs(), progress); err != nil {
		return nil, err
	}
	folders, err := openFolders(l.Runs())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeFolders(folders)) }()
	if l, err = l.chooseDilation(ctx, versions, progress); err != nil {
		return nil, err
	}
	if err := l.prepareVersions(ctx, progress); err != nil {
		return nil, err
	}
	specs := l.Runs()
	outcome := outcome{of: len(specs)}
	for i, spec := range specs {
		debug.FreeOSMemory() // the instrument's own memory begins anew, after a trial or another run
		if len(specs) > 1 {
			progress.say(strings.TrimSpace(fmt.Sprintf("run %d of %d: %s %s", i+1, len(specs), spec.Name(), spec.Programs.Istio)))
		}
		run, err := execute(ctx, spec, folders[spec.Out], versions, progress)
		if run.Dir != "" {
			runs = append(runs, run)
		}
		if ctx.Err() != nil && !errors.Is(err, context.Canceled) {
			err = errors.Join(context.Cause(ctx), err) // while the run was taken down
		}
		if run.Dir == "" || ctx.Err() != nil {
			return runs, err // no other would come further
		}
		if outcome.take(spec.Name(), err); outcome.inARow == givingUp && i < len(specs)-1 {
			return runs, fmt.Errorf("%w; %d runs in a row failed, and the others were not tried", outcome.err(), givingUp)
		}
	}
	return runs, outcome.err()
}

// outcome is what became of the runs.
type outcome struct {
	of          int // runs that there are
	failed      []string
	first       error // that failed
	unconverged []string
	inARow      int // failed last, other than by running out of memory
}

func (o *outcome) take(name string, err error) {
	switch {
	case err == nil:
		o.inARow = 0
	case errors.Is(err, experiment.ErrUnconverged):
		o.unconverged = append(o.unconverged, name)
		o.inARow = 0
	default:
		if o.first == nil {
			o.first = err
		}
		o.failed = append(o.failed, name)
		o.inARow++
		if controlplane.IsOutOfMemory(err) {
			o.inARow = 0
		}
	}
}

// err is the error of all runs together.
func (o *outcome) err() error {
	switch {
	case o.of == 1 && o.first != nil:
		return o.first
	case o.of == 1 && len(o.unconverged) > 0:
		return experiment.ErrUnconverged
	case len(o.failed) > 0:
		return fmt.Errorf("%d of %d runs failed (%s), the first: %w", len(o.failed), o.of, strings.Join(o.failed, ", "), o.first)
	case len(o.unconverged) > 0:
		return fmt.Errorf("%d of %d runs (%s): %w", len(o.unconverged), o.of, strings.Join(o.unconverged, ", "), experiment.ErrUnconverged)
	default:
		return nil
	}
}
