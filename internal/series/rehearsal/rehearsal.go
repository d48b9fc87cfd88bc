// Package rehearsal rehearses an upgrade: it rolls out a mesh with the version that production runs, with the new
// version, and moves it from one to the other in waves, each as a run of its own with a record. What the records say is
// left to package assess. For a plan of a larger mesh, several copies of it are rolled out afterwards.
package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/analyse/assess"
	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/analyse/diff"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/internal/mask"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/run/upgrade"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// File is the name of the result in its folder, and Kind that in its JSON.
const (
	File = "assessment.json"
	Kind = "Rehearsal"
)

// The steps, which are folders below that of the result. The first two are those of `scaler diff`, which compares them.
const (
	From    = "from"
	Onto    = "to"
	Upgrade = "upgrade"
)

// Options are a rehearsal.
type Options struct {
	// Spec is the captured state, with the version that production runs and the upgrade. Out is the folder of the result.
	Spec     run.Spec
	Captured assess.Captured // zero = nothing is known of production
	Progress run.Progress    // zero = silent
	Run      run.Runner      // nil = run.RunOne
	Growth   *Growth         // nil = no plan of a larger mesh is made
	// Variables lists the variables that the control plane of a run reads, with their defaults; nil = run.Variables.
	Variables func(context.Context, run.Spec) (map[string]string, error)
}

// Growth is a larger mesh to plan for: several copies of that of the rehearsal.
type Growth struct {
	Scale int // that is planned for
	// Runs are rollouts at several scales, with what the rehearsal is asked. A plan is made from them.
	Runs run.Ladder
	Do   func(context.Context, run.Ladder, run.Progress) error // nil = [run.Ladder.Run]
}

// Result has the steps of a rehearsal that are done.
type Result struct {
	series.Head
	// Share is the share of the pods of each workload that is rehearsed; 0 = all.
	Share       scenario.Share      `json:"share,omitempty"`
	Captured    assess.Captured     `json:"captured"`
	Environment *assess.Environment `json:"environment,omitempty"` // once all steps are done
	Steps       []Done              `json:"steps"`
	// PlannedScale is the scale of the mesh that is planned for; 0 = none, or the runs for it are not done.
	PlannedScale int `json:"plannedScale,omitempty"`
}

// Done is a step that came to a result.
type Done struct {
	Name        string `json:"name"`
	OutOfMemory bool   `json:"outOfMemory,omitempty"` // the control plane was killed for its memory
	series.Done
}

// step is one that is to be done.
type step struct {
	name, does string
	spec       run.Spec
	expected   time.Duration // length of the run; 0 until the run's dilation factor is chosen
}

// steps lists the steps in their order.
func (o Options) steps() []step {
	from := o.atRest(o.Spec)
	from.KeepConfiguration = run.KeepSettled
	from.Out = filepath.Join(o.Spec.Out, From)

	onto := o.withNext(from)
	restart := scenario.RestartControlPlane // ends all replicas at the same time, and has to be of the only one
	if onto.ControlPlane.Replicas > 1 {
		restart = scenario.RestartReplica
	}
	onto.Load.Faults = []scenario.Fault{
		{Kind: restart, Phase: scenario.PhaseSteady},
		{Kind: scenario.ResetStreams, Share: 1, Phase: scenario.PhaseSteady},
	}
	onto.Out = filepath.Join(o.Spec.Out, Onto)

	move := o.Spec
	move.Repeats, move.ControlPlane.Replicas = 1, 1 // of each version, as an upgrade has
	move.Phases.Changes = 0
	move.Out = filepath.Join(o.Spec.Out, Upgrade)
	return []step{
		{name: From, does: "the captured state with " + from.ControlPlane.Version, spec: from},
		{name: Onto, does: "the same with " + onto.ControlPlane.Version + ", one istiod restarts, all proxies reconnect", spec: onto},
		{name: Upgrade, does: "the upgrade in waves", spec: move},
	}
}

// atRest returns a rollout of a specification and changes at production's rate, without the upgrade.
func (o Options) atRest(s run.Spec) run.Spec {
	s.Repeats, s.ControlPlane.Upgrade = 1, scenario.Upgrade{}
	if s.Load.Changes = o.changes(); s.Load.Changes.PerSecond == 0 {
		s.Phases.Changes = 0
	}
	return s
}

// withNext returns a specification with the new version and its settings.
func (o Options) withNext(s run.Spec) run.Spec {
	s.ControlPlane.Version = o.Spec.ControlPlane.Upgrade.To
	s.Programs.Istio = s.ControlPlane.Version
	s.ControlPlane.Env = scenario.MergeEnv(s.ControlPlane.Env, o.Spec.ControlPlane.Upgrade.Env)
	return s
}

// growth returns the rollouts that a plan of a larger mesh is made from: each scale twice, with one istiod of the new version, which is killed
// once. It has no memory limit, because the plan is of what it needs.
func (o Options) growth() run.Ladder {
	l := o.Growth.Runs
	s := o.withNext(o.atRest(l.Spec))
	s.Repeats, s.ControlPlane.Replicas, s.ControlPlane.Memory = 2, 1, 0
	s.Load.Faults = []scenario.Fault{{Kind: scenario.KillControlPlane, Phase: scenario.PhaseSteady}}
	s.Out = filepath.Join(o.Spec.Out, assess.CopiesFolder)
	l.Spec = s
	return l
}

// changes returns changes of endpoints at the rate that production reached for a tenth of the time or more; none where it is
// not known or lower than can be made.
func (o Options) changes() scenario.Changes {
	rate := o.Captured.Observed("clusterEvents", "EndpointSlice update")
	if rate == nil || rate.P90 < scenario.MinRate {
		return scenario.Changes{}
	}
	return scenario.Changes{PerSecond: scenario.Rate(min(rate.P90, scenario.MaxRate)), Kind: scenario.EndpointChange}
}

// Validate returns an error for the first field that cannot be used. Nothing is started.
func (o Options) Validate() error {
	if o.Spec.ControlPlane.Upgrade.To == "" {
		return scenario.Refuse("controlPlane.upgrade.to", nil, "the version to assess, as in --to 1.31.0")
	}
	c := o.Spec.ControlPlane
	if err := (upgrade.Plan{From: c.Version, To: c.Upgrade.To, ToEnv: c.Upgrade.Env}).CheckVersions(); err != nil { // before other errors of the steps
		return err
	}
	for _, s := range slices.Backward(o.steps()) { // the upgrade has fields of its own, which errors name
		if err := s.spec.Validate(); err != nil {
			return s.asAsked(err)
		}
	}
	if o.Growth != nil {
		return o.growth().Validate()
	}
	return nil
}

// asAsked returns an error with the name that a field has in the assessment: the version of the second step is that to upgrade to.
func (s step) asAsked(err error) error {
	refused, ok := errors.AsType[*scenario.Error](err)
	if !ok || s.name != Onto || refused.Path != "controlPlane.version" {
		return err
	}
	named := *refused
	named.Path = "controlPlane.upgrade.to"
	return &named
}

// Run does the steps that are not done yet, and keeps the result after each. A step whose mesh did not converge, or whose
// control plane exceeded its memory, is a result. The error wraps context.Canceled if ctx ended it; a field that cannot be
// used is a *[scenario.Error], and then nothing was started.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Variables == nil {
		o.Variables = run.Variables
	}
	if o.Run == nil {
		o.Run = run.RunOne
		for _, s := range o.steps() {
			if err := s.spec.Fits(); err != nil {
				return err
			}
			if err := s.spec.CheckVersions(ctx, o.Progress.Say); err != nil {
				return s.asAsked(err)
			}
		}
		if o.Growth != nil {
			for _, spec := range o.growth().Runs() {
				if err := spec.Fits(); err != nil {
					return err
				}
			}
		}
	}
	var asked []string
	for _, s := range o.steps() {
		asked = append(asked, s.name, s.spec.Asked())
	}
	result := &Result{Head: series.NewHead(Kind, asked...), Share: o.Spec.Mesh.Share, Captured: o.Captured, Steps: []Done{}}
	folder, earlier, err := series.Open(o.Spec.Out, File, result)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if earlier != nil {
		result.Steps, result.Environment, result.PlannedScale = earlier.Steps, earlier.Environment, earlier.PlannedScale
		if result.Captured.NodeSpeed == nil {
			result.Captured.NodeSpeed = earlier.Captured.NodeSpeed
		}
	}
	p := &plan{Options: o, result: result, resumed: earlier != nil, left: o.steps()[min(len(result.Steps), len(o.steps())):]}
	machine := run.Machine(ctx, o.Spec)
	p.choose(machine)
	if o.Growth != nil && o.Progress.Say != nil {
		growth := o.growth()
		o.Progress.Say(fmt.Sprintf("after the rehearsal %s for a plan of %d copies, about %s", output.Many(len(growth.Runs()), "run"), o.Growth.Scale, growth.Expected(machine)))
	}
	err = series.Series{
		Plan: p, Headline: fmt.Sprintf("rehearsing the upgrade of %s from %s to %s", output.Many(o.Spec.Pods(), "pod"), o.Spec.ControlPlane.Version, o.Spec.ControlPlane.Upgrade.To),
		Out: o.Spec.Out, Folder: folder, Before: len(result.Steps), Say: o.Progress.Say, Begun: o.Progress.Begun,
	}.Run(ctx)
	if err == nil && result.Environment == nil { // the programs are there: steps ran them
		result.Environment, err = o.environment(ctx)
		if err != nil && ctx.Err() == nil { // a version that does not list its variables can be assessed
			result.Environment, err = &assess.Environment{Unknown: err.Error()}, nil
		}
	}
	if err == nil && o.Growth != nil {
		if err = o.grow(ctx); err == nil {
			result.PlannedScale = o.Growth.Scale
		}
	}
	return errors.Join(err, folder.Save())
}

// grow does the runs for the plan. A run whose mesh did not converge is not an error.
func (o Options) grow(ctx context.Context) error {
	do := o.Growth.Do
	if do == nil {
		do = func(ctx context.Context, l run.Ladder, p run.Progress) error {
			_, err := l.Run(ctx, p)
			return err
		}
	}
	if err := do(ctx, o.growth(), o.Progress); series.IsFailure(err) {
		return fmt.Errorf("%s: %w", assess.CopiesFolder, err)
	}
	return nil
}

// environment finds which of the variables that are set the new version still reads.
func (o Options) environment(ctx context.Context) (*assess.Environment, error) {
	from, onto := o.steps()[0].spec, o.steps()[1].spec
	set := map[string]string{}
	for _, v := range o.Captured.Variables {
		set[v.Name] = v.Value
	}
	for _, kv := range mask.Env(onto.ControlPlane.Env) {
		name, value, _ := strings.Cut(kv, "=")
		set[name] = value
	}
	before, err := o.Variables(ctx, from)
	if err != nil {
		return nil, err
	}
	now, err := o.Variables(ctx, onto)
	if err != nil || before == nil || now == nil {
		return nil, err
	}
	return assess.CompareEnvironment(set, before, now), nil
}

// plan is the plan of a series: the steps that are not done yet.
type plan struct {
	Options
	result  *Result
	resumed bool // folders of steps that are left are those of runs that were cut short
	left    []step
	doing   step
}

// choose finds how long the steps take with the factors that they will have. Each run chooses its own again.
func (p *plan) choose(machine dilation.Machine) {
	for i, s := range p.left {
		run.ChooseDilation(machine, &s.spec)
		p.left[i].expected = s.spec.Expected()
	}
}

// Next returns the next step.
func (p *plan) Next() (series.Run, bool) {
	if len(p.left) == 0 {
		return series.Run{}, false
	}
	p.doing, p.left = p.left[0], p.left[1:]
	return series.Run{
		Name: p.doing.name + ", " + p.doing.does, Expected: p.doing.expected,
		Do: func(ctx context.Context) (record.Run, error) {
			if err := p.putAside(); err != nil {
				return record.Run{}, err
			}
			return p.Run(ctx, p.doing.spec, p.Progress)
		},
	}, true
}

// putAside renames the folder of a step that was interrupted, because readers of a step's folder expect one record.
func (p *plan) putAside() error {
	dir := p.doing.spec.Out
	if _, err := os.Lstat(dir); !p.resumed || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	aside := func(n int) string { return fmt.Sprintf("%s-interrupted-%d", dir, n) }
	return os.Rename(dir, aside(series.Free(1, aside)))
}

// Take keeps how a step ended.
func (p *plan) Take(done series.Done, _ *record.Run, err error) (string, error) {
	if series.IsFailure(err) {
		return "failed", fmt.Errorf("%s: %w", p.doing.name, err)
	}
	p.result.Steps = append(p.result.Steps, Done{Name: p.doing.name, OutOfMemory: controlplane.IsOutOfMemory(err), Done: done})
	return string(done.Status), nil
}

// Left returns how many steps are left, and about how long they take.
func (p *plan) Left() (runs int, expected time.Duration) {
	for _, s := range p.left {
		expected += s.expected
	}
	return len(p.left), expected
}

// Is reports whether a folder has a rehearsal.
func Is(dir string) bool {
	_, is := Share(dir)
	return is
}

// Share returns the share of the pods that the rehearsal of a folder has, 0 of all of them; false = the folder has none.
func Share(dir string) (scenario.Share, bool) {
	var result Result
	is := record.ReadResult(filepath.Join(dir, File), &result) == nil && result.Kind == Kind
	return result.Share, is
}

// Read reads the facts of a rehearsal from its folder. Where it is not complete, the error says so.
func Read(dir string) (f assess.Facts, err error) {
	var result Result
	switch err := record.ReadResult(filepath.Join(dir, File), &result); {
	case errors.Is(err, fs.ErrNotExist):
		return f, fmt.Errorf("%w: want the --out of an earlier scaler assess", err)
	case err != nil:
		return f, err
	case result.Kind != Kind:
		return f, fmt.Errorf("reading %s: got kind %q, want %s", filepath.Join(dir, File), result.Kind, Kind)
	}
	f.Captured, f.Environment = result.Captured, result.Environment
	into := map[string]*assess.Step{From: &f.From, Onto: &f.Onto, Upgrade: &f.Upgrade}
	for _, done := range result.Steps {
		if into[done.Name] == nil || !filepath.IsLocal(done.Record) {
			return f, fmt.Errorf("reading %s: got the step %q with the record %q, want one of a rehearsal", filepath.Join(dir, File), done.Name, done.Record)
		}
		runs, err := record.Read(filepath.Join(dir, done.Record))
		if err != nil {
			return f, err
		}
		if len(runs) != 1 {
			return f, fmt.Errorf("reading %s: got %d records, want 1", filepath.Join(dir, done.Record), len(runs))
		}
		*into[done.Name] = assess.Step{Run: &runs[0], OutOfMemory: done.OutOfMemory}
	}
	for _, name := range []string{From, Onto, Upgrade} {
		if into[name].Run == nil {
			return f, fmt.Errorf("%w: the step %q is not done: the same scaler assess with --out %s resumes it", ErrIncomplete, name, dir)
		}
	}
	if scale := result.PlannedScale; scale > 0 {
		if f.Growth, err = planned(filepath.Join(dir, assess.CopiesFolder), scale, f.Captured.NodeSpeed); err != nil {
			return f, err
		}
	}
	from, err := kept(f.From.Run)
	if err != nil || from == nil {
		return f, err
	}
	f.Held = assess.HeldOf(from)
	onto, err := kept(f.Onto.Run)
	if err != nil || onto == nil {
		return f, err
	}
	f.Diff, err = difference(f.From.Run, f.Onto.Run, from, onto)
	return f, err
}

// kept reads what proxies held in a run; nil if it did not come so far.
func kept(r *record.Run) (*record.Configuration, error) {
	c, err := record.ReadConfiguration(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return c, err
}

// planned makes the plan of a larger mesh from the runs of a folder. Where they do not allow one, it has the reason.
func planned(dir string, scale int, nodes *record.Speed) (*assess.Growth, error) {
	runs, err := record.Read(dir)
	if err != nil {
		return nil, err
	}
	g := &assess.Growth{Scale: scale}
	if g.Plan, err = capacity.Make(runs, capacity.Options{Scale: scale, Headroom: capacity.DefaultHeadroom, NodeSpeed: nodes}); err != nil {
		g.Unknown = err.Error()
	}
	return g, nil
}

// ErrIncomplete is the error of a rehearsal of which steps are left.
var ErrIncomplete = errors.New("not complete")

// difference compares what sidecars held of both versions.
func difference(from, onto *record.Run, heldBefore, heldAfter *record.Configuration) (*diff.Result, error) {
	d, err := diff.Compare(heldBefore, heldAfter, diff.Options{})
	if err != nil {
		return nil, err
	}
	d.From.Name, d.To.Name = "istiod "+from.Environment.ControlPlane.Version, "istiod "+onto.Environment.ControlPlane.Version
	d.From.NotQuiet, d.To.NotQuiet = diff.NotQuiet(from), diff.NotQuiet(onto)
	return d, nil
}
