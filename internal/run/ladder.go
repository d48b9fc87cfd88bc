package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/pkg/record"
)

// Ladder is an experiment of several rollouts that differ in size and mode: how
// need grows with both. Each is a run of its own, on a cluster and control plane
// started fresh for it.
type Ladder struct {
	Spec  Spec     // what the runs have in common; its pods and mode do not count
	Pods  []int    // sizes, each once
	Modes []string // names of the control plane's modes, each once
	// Dataplanes are the data planes that take turns, each once; nil = that of Spec.
	Dataplanes []string
	Repeats    int // runs of each size and mode; 0 means 1
	// Versions are the versions of the control plane's programs that take turns, each once, whose
	// records go to a folder each below Spec.Out; nil = that of Spec.Programs.
	Versions []string
	// ByDefault states that nobody asked for dilation.Auto: the factor is that of an earlier trial for such rollouts
	// on this machine, if there was one, and 1 if a trial fails.
	ByDefault bool
}

// maxRepeats bounds the duration if --repeats is mistyped.
const maxRepeats = 100

// givingUp is how many runs in a row may fail before the others are not tried:
// then it is not the size that fails them.
const givingUp = 2

// ParseSizes parses the value of --pods: whole numbers with commas between them.
// Its error states what is wrong with the first that is none.
func ParseSizes(s string) ([]int, error) {
	var sizes []int
	for field := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// Validate names the first flag whose value cannot be used, the value, and what
// is wanted. Nothing has been started or created before it returns nil.
func (l Ladder) Validate() error {
	if len(l.Pods) == 0 || len(l.Modes) == 0 {
		return errors.New("want a size and a mode at least")
	}
	for i, pods := range l.Pods {
		if slices.Contains(l.Pods[:i], pods) {
			return fmt.Errorf("parsing --pods %d: want each size once; --repeats runs them several times", pods)
		}
	}
	if l.Repeats < 0 || l.Repeats > maxRepeats {
		return fmt.Errorf("parsing --repeats %d: want 1 to %d", l.Repeats, maxRepeats)
	}
	if err := checkDataplanes(l.Dataplanes); err != nil {
		return err
	}
	for i, version := range l.Versions {
		if slices.Contains(l.Versions[:i], version) {
			return fmt.Errorf("parsing --versions %q: want each version once", strings.Join(l.Versions, ","))
		}
		if l.Spec.Programs.Istio != "" {
			return fmt.Errorf("parsing --istio-version %q: want none with --versions", l.Spec.Programs.Istio)
		}
	}
	runs := l.Runs()
	if len(runs) > 1 && l.Spec.Keep {
		return fmt.Errorf("parsing --keep: want it with one run alone, not with %d", len(runs))
	}
	if len(runs) > 1 && l.Spec.Existing != nil {
		return fmt.Errorf("parsing --context: want one run, and one size and mode, in an existing cluster, not %d", len(runs))
	}
	if own := l.Spec.Own; len(l.Modes) > 1 && own.MTLS != "" && own.Scope != "" && own.Authz != "" {
		return errors.New("parsing --mode both: want it without --mtls, --scope or --authz: all of them together leave the modes nothing to differ in")
	}
	for _, run := range runs {
		if err := run.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Runner does one run and returns its record; RunOne is one. Tests have others.
type Runner func(ctx context.Context, spec Spec, progress Progress) (record.Run, error)

// RunOne is a ladder of one run. The error is that of [Ladder.Run]; the record has no folder
// if the run did not begin.
func RunOne(ctx context.Context, spec Spec, progress Progress) (record.Run, error) {
	ladder := Ladder{Spec: spec, Pods: []int{spec.Topology.Pods}, Modes: []string{spec.Mode}}
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
	for repeat := range max(1, l.Repeats) {
		var round []Spec
		for _, pods := range l.Pods {
			for _, mode := range l.Modes {
				run := l.Spec
				run.Topology.Pods, run.Mode = pods, mode
				if l.Repeats > 1 {
					run.Repeat = repeat + 1
				}
				for _, run.Dataplane = range l.dataplanes() {
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

// dataplanes are those that take turns.
func (l Ladder) dataplanes() []string {
	if l.Dataplanes == nil {
		return []string{l.Spec.Dataplane}
	}
	return l.Dataplanes
}

// ofVersions are a run, and the same of the other versions next to it.
func (l Ladder) ofVersions(run Spec) []Spec {
	if l.Versions == nil {
		return []Spec{run}
	}
	var all []Spec
	for _, version := range l.Versions {
		run.Programs.Istio, run.Out = version, filepath.Join(l.Spec.Out, version)
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
