// Package sweep does rollouts that differ in one thing each, in turns, and compares each
// with the same base: `scaler tune`, which varies settings of the control plane, and
// `scaler rollout --knob-sweep`, which varies parts of the mesh. How the runs are done and resumed is left
// to package series, and how they are compared to package compare.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Variant is the base with one thing changed.
type Variant struct {
	Name  string // for people, and of its folder
	Apply func(*run.Spec)
}

// Options are a sweep. All fields are needed but those that say otherwise.
type Options struct {
	Kind     string    // of the result in its JSON
	File     string    // name of the result in its folder
	What     string    // names the column of the variants, as in value
	Base     string    // name of the runs that all are compared with
	Variants []Variant // that are compared with it, one at least
	Repeats  int       // runs of the base, and of each variant

	// Spec is the specification of the base. Out is the folder of the result, and of a folder for the
	// base and for each variant.
	Spec run.Spec

	Figures   []string           // paths of those that are compared, or of what is above them
	Objective *compare.Objective // that a recommended variant must meet; nil = none
	Goal      string             // path of the figure that is to become better; "" = any

	// Conclude states what the effects say.
	Conclude func(*Result, Options)

	Progress run.Progress // zero = silent

	// Run does the run of a specification; nil = a rollout. Its error is that of
	// run.Ladder.Run.
	Run run.Runner
}

// maxVariants and maxRepeats bound a sweep if a value is mistyped.
const (
	maxVariants = 100
	maxRepeats  = 100
)

// Validate returns an error for the first field that cannot be used. That of an option is a
// *[scenario.Error] of its name, as in setting. Nothing has been started or created before it returns nil.
func (o Options) Validate() error {
	if len(o.Variants) == 0 {
		return errors.New("want something that is varied")
	}
	if len(o.Variants) > maxVariants {
		return fmt.Errorf("want at most %d variants, not %d", maxVariants, len(o.Variants))
	}
	if o.Repeats < 1 || o.Repeats > maxRepeats {
		return scenario.Refuse("repeats", o.Repeats, "1 to %d", maxRepeats)
	}
	if o.Spec.Keep {
		return scenario.Refuse("keep", nil, "it with only one run")
	}
	for _, one := range o.specs() {
		if err := one.spec.Validate(); err != nil {
			return fmt.Errorf("with %s: %w", one.name, err)
		}
	}
	return nil
}

// named is the specification of the base, or of a variant.
type named struct {
	name string
	spec run.Spec
	// expected is the expected length of a run; 0 until the run's dilation factor is chosen.
	expected time.Duration
}

// unsafe are characters that the name of a folder does without.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9._=+-]+`)

// specs returns the base and the variants, each with a folder of its own.
func (o Options) specs() []named {
	o.Spec.Repeats = 1 // the sweep repeats them, in turns
	all := []named{{name: o.Base, spec: o.Spec}}
	for _, v := range o.Variants {
		spec := o.Spec
		spec.ControlPlane.Env = slices.Clone(spec.ControlPlane.Env)
		v.Apply(&spec)
		all = append(all, named{name: v.Name, spec: spec})
	}
	taken := map[string]bool{}
	for i := range all {
		folder := unsafe.ReplaceAllString(all[i].name, "_")
		for n, first := 2, folder; taken[folder]; n++ {
			folder = fmt.Sprintf("%s-%d", first, n)
		}
		taken[folder] = true
		all[i].spec.Out = filepath.Join(o.Spec.Out, folder)
	}
	return all
}

// turn is a run of the sweep.
type turn struct {
	variant int // in specs
	repeat  int // from 1
}

// turns returns the runs in their order: the base and every variant, again for each repeat.
func (o Options) turns() []turn {
	return series.Turns(o.Repeats, func(repeat int) (round []turn) {
		for v := range len(o.Variants) + 1 {
			round = append(round, turn{v, repeat})
		}
		return round
	})
}

// Run does the runs that are not done yet, and compares them. The result is in its folder
// after every run; a folder that has the result of the same sweep is resumed.
//
// The result is not nil once the first run was to begin. The error wraps context.Canceled
// when ctx ended the sweep, and says of a run that failed what the reason was. A run that
// did not converge, or whose control plane exceeded its memory, is a result. A field that cannot be
// used is a *[scenario.Error], and then nothing was started.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Run == nil {
		o.Run = run.RunOne
		for _, one := range o.specs() {
			if err := one.spec.Fits(); err != nil {
				return nil, err
			}
		}
	}
	r := newResult(o)
	folder, earlier, err := series.Open(o.Spec.Out, o.File, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if earlier != nil {
		if err := r.resume(o, earlier); err != nil {
			return nil, err
		}
	}
	p := &plan{Options: o, result: r}
	p.choose(run.Machine(ctx, o.Spec))
	err = series.Series{
		Plan:     p,
		Headline: fmt.Sprintf("%s and %s, %s each, interleaved", o.Base, output.Many(len(o.Variants), "variant"), output.Many(o.Repeats, "run")),
		Out:      o.Spec.Out, Folder: folder, Before: len(r.Runs), Say: o.Progress.Say, Begun: o.Progress.Begun,
	}.Run(ctx)
	if effectsErr := r.compare(o); effectsErr != nil {
		r.Status, err = series.Failed, errors.Join(err, effectsErr)
	}
	r.Answer, r.Recommended = "", ""
	if r.Status == series.Complete {
		o.Conclude(r, o)
	} else {
		r.Sentences = []string{fmt.Sprintf("Not complete: %d of %d runs were done; the same command resumes it.", len(r.Runs), len(o.turns()))}
	}
	return r, errors.Join(err, folder.Save())
}

// plan is the plan of a series: the turns that are not done yet.
type plan struct {
	Options
	result *Result
	specs  []named
	doing  turn
}

// choose sets the factor by which time is slowed down in all runs, which are compared with each other: the one that the runs
// had that were done, else the largest that one of them needs on this machine.
func (p *plan) choose(m dilation.Machine) {
	p.specs = p.Options.specs()
	var all []*run.Spec
	for i := range p.specs {
		spec := &p.specs[i].spec
		if len(p.result.records) > 0 && spec.Instrument.Dilation.Auto {
			spec.SlowAs(&p.result.records[0])
		}
		all = append(all, spec)
	}
	run.ChooseDilation(m, all...)
	for i := range p.specs {
		p.specs[i].expected = p.specs[i].spec.Expected()
	}
}

// left returns the turns that are not done yet.
func (p *plan) left() (all []turn) {
	for _, t := range p.turns() {
		if !p.result.done(p.specs[t.variant].name, t.repeat) {
			all = append(all, t)
		}
	}
	return all
}

// Next returns the run of the next turn.
func (p *plan) Next() (series.Run, bool) {
	left := p.left()
	if len(left) == 0 {
		return series.Run{}, false
	}
	p.doing = left[0]
	one := p.specs[p.doing.variant]
	one.spec.Repeat = series.Free(p.doing.repeat, func(n int) string {
		spec := one.spec
		spec.Repeat = n
		return filepath.Join(spec.Out, spec.Name())
	})
	return series.Run{
		Name: one.name, Expected: one.expected,
		Do: func(ctx context.Context) (record.Run, error) { return p.Run(ctx, one.spec, p.Progress) },
	}, true
}

// Take keeps a run and its record.
func (p *plan) Take(done series.Done, run *record.Run, err error) (string, error) {
	name := p.specs[p.doing.variant].name
	if series.IsFailure(err) {
		return "failed", fmt.Errorf("with %s: %w", name, err)
	}
	p.result.Runs = append(p.result.Runs, Done{Variant: name, Repeat: p.doing.repeat, Done: done})
	p.result.records = append(p.result.records, *run)
	if len(p.result.records) == 1 {
		p.choose(dilation.Machine{}) // it may have been started again with a larger factor
	}
	return string(done.Status), nil
}

// Left returns how many turns are left, and about how long they take.
func (p *plan) Left() (runs int, expected time.Duration) {
	for _, t := range p.left() {
		runs, expected = runs+1, expected+p.specs[t.variant].expected
	}
	return runs, expected
}

// variant returns the runs of one name, of all that are done.
func (r *Result) variant(name string) compare.Variant {
	v := compare.Variant{Name: name}
	for i, one := range r.Runs {
		if one.Variant == name {
			v.Runs = append(v.Runs, r.records[i])
		}
	}
	return v
}

// compare compares the variants with the base.
func (r *Result) compare(o Options) (err error) {
	var variants []compare.Variant
	for _, v := range o.Variants {
		variants = append(variants, r.variant(v.Name))
	}
	r.Effects, err = compare.CompareVariants(r.variant(o.Base), variants, o.Figures)
	if err != nil {
		return err
	}
	r.Meets = nil
	if o.Objective != nil {
		for _, v := range append([]Variant{{Name: o.Base}}, o.Variants...) {
			r.Meets = append(r.Meets, meets(*o.Objective, r.variant(v.Name)))
		}
	}
	return nil
}

// meets says in how many of its runs a variant met an objective. A run that did not
// complete did not.
func meets(o compare.Objective, v compare.Variant) Meeting {
	m := Meeting{Variant: v.Name, Runs: len(v.Runs)}
	for i := range v.Runs {
		observed := o.Of(&v.Runs[i])
		switch {
		case v.Runs[i].Status != record.StatusCompleted:
		case !observed.Known():
			m.Unknown++
		case observed.Met:
			m.Met++
		}
	}
	return m
}

// list joins names as a sentence does.
func list(all []string) string { return strings.Join(all, ", ") }
