package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Ladder does the runs of a scenario whose lists have several values, to show how need grows with size and
// mode. Each is a run of its own, on a cluster and control plane started fresh for it.
type Ladder struct {
	Spec Spec // has all that the runs have in common; its sizes, modes and data planes take turns
	// Versions are the versions of the control plane's programs that take turns, each once, whose
	// records go to a folder each below Spec.Out; nil = that of Spec.
	Versions []string
	// Resumes lets a ladder of a single run take the result that its output folder has, as longer ones do.
	Resumes bool
}

// NewLadder makes the runs of a scenario document; see [New]. Where the document leaves the dilation
// to the command, it is chosen for rollouts whose figures are all right with one.
func NewLadder(s Spec, d *scenario.Document) (l Ladder, err error) {
	if l.Spec, err = New(s, d); err != nil {
		return l, err
	}
	if l.Spec.Instrument.Dilation == (scenario.Dilation{}) {
		l.Spec.Instrument.Dilation = l.Spec.DefaultDilation()
	}
	return l, nil
}

// givingUp is the number of runs that fail in a row after which the others are not tried: then it is not
// the size that fails them.
const givingUp = 2

// Validate returns an error for the first field whose value cannot be used; those of options are
// versions and keep. Nothing has been started or created before it returns nil.
func (l Ladder) Validate() error {
	m := l.Spec.Mesh
	if err := errors.Join(eachOnce("mesh.pods", m.Pods), eachOnce("mesh.mode", m.Mode), eachOnce("mesh.dataplane", m.Dataplane)); err != nil {
		return err
	}
	if l.Spec.Captured != nil && len(m.Dataplane) > 1 {
		return scenario.Refuse("mesh.dataplane", strings.Join(m.Dataplane, ","), "one with mesh.file")
	}
	for i, version := range l.Versions {
		if slices.Contains(l.Versions[:i], version) {
			return scenario.Refuse("versions", strings.Join(l.Versions, ","), "each version once")
		}
	}
	if err := sizesDiffer(l.Spec.Scales); err != nil {
		return err
	}
	runs := l.Runs()
	if len(runs) > 1 && l.Spec.Keep {
		return scenario.Refuse("keep", nil, "it with only one run, not with %d", len(runs))
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

// sizesDiffer returns an error where a captured mesh has as many sidecars at two scales: runs are named, grouped and
// forecast by these.
func sizesDiffer(scales []*MeshFile) error {
	of := map[int]int{}
	for _, m := range scales {
		sidecars, _ := m.Mesh.Members()
		if other, ok := of[sidecars]; ok {
			return scenario.Refuse("mesh.scale", m.Scale, "one scale: %s has %d sidecars with %d copies as well, as all of them are in namespaces that a cluster has once", m.File, sidecars, other)
		}
		of[sidecars] = m.Scale
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

// RunOne runs a ladder of one run. The error is that of [Ladder.Run]; the record has no folder
// if the run did not begin.
func RunOne(ctx context.Context, spec Spec, progress Progress) (record.Run, error) {
	return Ladder{Spec: spec}.one(ctx, progress)
}

// ResumeOne is RunOne, but takes the result of the same run that its output folder has.
func ResumeOne(ctx context.Context, spec Spec, progress Progress) (record.Run, error) {
	return Ladder{Spec: spec, Resumes: true}.one(ctx, progress)
}

func (l Ladder) one(ctx context.Context, progress Progress) (record.Run, error) {
	runs, err := l.Run(ctx, progress)
	if len(runs) == 0 {
		return record.Run{}, err
	}
	return runs[0], err
}

// Runs returns the runs in their order: all sizes in the order given, the modes of a size, and the data planes
// of a mode, next to each other; and this again for each repeat. In an existing cluster the objects of each have names of their own.
func (l Ladder) Runs() []Spec {
	m := l.Spec.Mesh
	runs := series.Turns(max(1, l.Spec.Repeats), func(repeat int) (round []Spec) {
		for _, run := range l.Spec.sizes() {
			for _, mode := range m.Mode {
				for _, dataplane := range m.Dataplane {
					run.Mesh.Mode, run.Mesh.Dataplane = scenario.List[string]{mode}, scenario.List[string]{dataplane}
					if l.Spec.Repeats > 1 {
						run.Repeat = repeat
					}
					round = append(round, l.ofVersions(run)...)
				}
			}
		}
		return round
	})
	if e := l.Spec.Existing; e != nil && len(runs) > 1 {
		for i := range runs {
			runs[i].Existing = e.ofSeveral(i + 1)
		}
	}
	return runs
}

// sizes returns the specification with each of its numbers of pods alone or, of a captured mesh, each of its scales.
func (s Spec) sizes() (all []Spec) {
	scales := s.Scales
	s.Scales = nil
	for _, m := range scales {
		s.UseMesh(m)
		all = append(all, s)
	}
	if scales != nil {
		return all
	}
	for _, pods := range s.Mesh.Pods {
		s.Mesh.Pods = scenario.List[int]{pods}
		all = append(all, s)
	}
	return all
}

// ofVersions returns a run, or the same run of each version.
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
	names := drivers.RunPrograms(driver)
	of := map[string]string{} // the version that was asked for, by the one that runs
	for _, version := range l.Versions {
		options := l.Spec.Programs
		options.Istio, options.Progress = version, progress.say
		if options, err = component.SettleIstio(ctx, options, names...); err != nil {
			return err
		}
		if other, taken := of[options.Istio]; taken {
			return fmt.Errorf("versions %s and %s: %s would run in place of both or of one, and be compared with itself; reach a registry that has the images, or leave one out", other, version, options.Istio)
		}
		of[options.Istio] = version
		if _, err := component.Paths(ctx, options, names...); err != nil {
			return err
		}
	}
	return nil
}

// openFolders opens the output folders of the runs.
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
// were begun. Runs of the same ladder that came to a result before are not done again:
// their records are those in the output folder.
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
	if err := l.prepareVersions(ctx, progress); err != nil {
		return nil, err
	}
	done, others, err := l.resume()
	if err != nil {
		return nil, err
	}
	if len(done) > 0 && l.Spec.Instrument.Dilation.Auto {
		l.Spec.SlowAs(&done[0])
	}
	climb := newClimb(l.choose(Machine(ctx, l.Spec)), done, progress.say, func(ctx context.Context, spec Spec) (record.Run, error) {
		debug.FreeOSMemory() // the instrument's own memory begins anew, after another run
		return execute(ctx, spec, folders[spec.Out], versions, progress)
	})
	for _, spec := range climb.specs {
		if err := folders[spec.Out].Check(spec.Name()); err != nil {
			if why := others[filepath.Join(spec.Out, spec.Name())]; why != "" {
				return nil, fmt.Errorf("%w; not resumed, as %s", err, why)
			}
			return nil, err
		}
	}
	s := series.Series{Plan: climb, Out: l.Spec.Out, Before: len(done), Say: progress.Say}
	switch {
	case climb.of > 1:
		s.Begun = progress.Begun
		if climb.ended = progress.Ended; climb.ended != nil {
			for i := range done {
				climb.ended(done[i].Name, &done[i])
			}
		}
		s.Headline = climb.ladder.Spec.pace() + "; rollouts, each with a cluster and a control plane of its own"
		if e := l.Spec.Existing; e != nil {
			s.Headline = climb.ladder.Spec.pace() + "; rollouts in the existing cluster of context " + e.Target.Context
		}
	case len(done) == 1:
		progress.say("resumed, the run was done before: " + done[0].Dir)
	default:
		progress.say(fmt.Sprintf("%s; expected duration: about %s", climb.ladder.Spec.pace(), climb.ladder.expected()))
	}
	if err := s.Run(ctx); err != nil {
		return climb.runs, err
	}
	return climb.runs, climb.err()
}

// Expected estimates how long all runs take on a machine, with the dilation factor that is chosen for it.
func (l Ladder) Expected(m dilation.Machine) time.Duration { return l.choose(m).expected() }

// expected estimates how long all runs take.
func (l Ladder) expected() (sum time.Duration) {
	for _, spec := range l.Runs() {
		sum += spec.Expected()
	}
	return sum.Round(time.Second)
}

// climb is the plan of a series: the runs of a ladder, and what became of those that were done.
type climb struct {
	ladder Ladder
	specs  []Spec // that are not begun yet
	doing  Spec
	say    func(string)
	do     func(context.Context, Spec) (record.Run, error)
	ended  func(name string, run *record.Run) // nil = nothing is shown of a run
	runs   []record.Run                       // that were begun
	outcome
}

// newClimb returns the plan of a ladder, of which some runs were done before.
func newClimb(l Ladder, done []record.Run, say func(string), do func(context.Context, Spec) (record.Run, error)) *climb {
	c := &climb{ladder: l, specs: l.Runs(), runs: done, say: say, do: do}
	c.of = len(c.specs)
	for _, run := range done {
		c.specs = slices.DeleteFunc(c.specs, func(s Spec) bool { return filepath.Join(s.Out, s.Name()) == run.Dir })
		if run.Status == record.StatusUnconverged {
			c.take(run.Name, phases.ErrUnconverged)
		}
	}
	return c
}

// Next returns the next run.
func (c *climb) Next() (series.Run, bool) {
	if len(c.specs) == 0 {
		return series.Run{}, false
	}
	// The first run alone may start again: the others need the factor that it had, to be compared with it.
	first := len(c.specs) == c.of
	c.doing, c.specs = c.specs[0], c.specs[1:]
	c.doing.StartsAgain = c.doing.StartsAgain && first
	name := strings.TrimSpace(c.doing.Name() + " " + c.doing.Programs.Istio)
	return series.Run{
		Name: name, Expected: c.doing.Expected(),
		Do: func(ctx context.Context) (record.Run, error) {
			run, err := c.do(ctx, c.doing)
			if slow := startsAgain(err); slow != nil && ctx.Err() == nil {
				run, err = c.again(ctx, slow)
			}
			if run.Dir != "" {
				c.runs = append(c.runs, run)
				if c.ended != nil {
					c.ended(name, &run)
				}
			}
			return run, err
		},
	}, true
}

// Take ends the ladder if no other run would come further.
func (c *climb) Take(done series.Done, run *record.Run, err error) (string, error) {
	if run.Dir == "" {
		return "failed", err
	}
	if c.take(c.doing.Name(), err); c.inARow == givingUp && len(c.specs) > 0 {
		return string(done.Status), fmt.Errorf("%w; %d runs in a row failed, and the others were not tried", c.err(), givingUp)
	}
	return string(done.Status), nil
}

// again does the first run with a larger factor, which all others get, too.
func (c *climb) again(ctx context.Context, slow *tooFast) (record.Run, error) {
	c.ladder = c.ladder.slower(slow)
	c.specs = c.ladder.Runs()
	c.doing, c.specs = c.specs[0], c.specs[1:]
	c.say(fmt.Sprintf("%s; the run is started again with %g; expected duration: about %s", slow, c.doing.dilation(), c.ladder.expected()))
	return c.do(ctx, c.doing)
}

// Left returns how many runs are left, and about how long they take.
func (c *climb) Left() (runs int, length time.Duration) {
	for _, spec := range c.specs {
		runs, length = runs+1, length+spec.Expected()
	}
	return runs, length
}

// outcome counts what became of runs.
type outcome struct {
	of          int // runs that there are
	failed      []string
	first       error // that failed
	unconverged []string
	inARow      int // failed last, other than by running out of memory
}

// take takes the error of a run.
func (o *outcome) take(name string, err error) {
	switch {
	case err == nil:
		o.inARow = 0
	case errors.Is(err, phases.ErrUnconverged):
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

// err returns the error of all runs together.
func (o *outcome) err() error {
	switch {
	case o.of == 1 && o.first != nil:
		return o.first
	case o.of == 1 && len(o.unconverged) > 0:
		return phases.ErrUnconverged
	case len(o.failed) > 0:
		return fmt.Errorf("%d of %d runs failed (%s), the first: %w", len(o.failed), o.of, strings.Join(o.failed, ", "), o.first)
	case len(o.unconverged) > 0:
		return fmt.Errorf("%d of %d runs (%s): %w", len(o.unconverged), o.of, strings.Join(o.unconverged, ", "), phases.ErrUnconverged)
	default:
		return nil
	}
}
