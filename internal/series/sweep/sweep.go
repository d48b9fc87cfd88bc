// Package sweep does rollouts that differ in one thing each, in turns, and compares each
// with the same base: `scaler tune`, which varies settings of the control plane, and
// `scaler rollout --knob-sweep`, which varies parts of the mesh. How runs are compared is
// left to package compare.
package sweep

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/pkg/scenario"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/record"
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

	// Spec is that of the base. Out is the folder of the result, and of a folder for the
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

// maxVariants bounds a sweep if a flag is mistyped.
const maxVariants = 100

// maxRepeats does, too.
const maxRepeats = 100

// perProbe is what a change of each kind in the probe phase usually takes.
const perProbe = 4 * time.Second

// Validate names the first flag whose value cannot be used, the value, and what is
// wanted. Nothing has been started or created before it returns nil.
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
		return scenario.Refuse("keep", nil, "it with one run alone")
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
}

// unsafe are characters that the name of a folder does without.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9._=+-]+`)

// specs are the base and the variants, each with a folder of its own.
func (o Options) specs() []named {
	all := []named{{o.Base, o.Spec}}
	for _, v := range o.Variants {
		spec := o.Spec
		spec.ControlPlane.Env = slices.Clone(spec.ControlPlane.Env)
		v.Apply(&spec)
		all = append(all, named{v.Name, spec})
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

// turn is a run that is to be done.
type turn struct {
	variant int // in specs
	repeat  int // from 1
}

// turns are all runs in their order: the base and every variant, again for each repeat,
// every other time from the last to the first. What drifts meanwhile, as a machine that
// warms up, then looks like the spread between repeats, and not like an effect.
func (o Options) turns() []turn {
	var all []turn
	for repeat := range o.Repeats {
		var round []turn
		for v := range len(o.Variants) + 1 {
			round = append(round, turn{v, repeat + 1})
		}
		if repeat%2 == 1 {
			slices.Reverse(round)
		}
		all = append(all, round...)
	}
	return all
}

// Run does the runs that are not done yet, and compares them. The result is in its folder
// after every run; a folder that has the result of the same sweep is resumed.
//
// The result is not nil once the first run was to begin. The error wraps context.Canceled
// when ctx ended the sweep, and says of a run that failed what the reason was. A run that
// did not converge, or whose control plane exceeded its memory, is a result.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Run == nil {
		o.Run = run.RunOne
	}
	r, err := resume(o)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Spec.Out, 0o755); err != nil {
		return nil, fmt.Errorf("parsing --out: %w", err)
	}
	o.announce(r)
	runErr := o.runs(ctx, r)
	effectsErr := r.compare(o)
	r.Status = Complete
	switch {
	case ctx.Err() != nil:
		r.Status = Interrupted
	case runErr != nil || effectsErr != nil:
		r.Status = Failed
	}
	r.Finished = new(time.Now().UTC())
	r.Answer, r.Recommended = "", ""
	if r.Status == Complete {
		o.Conclude(r, o)
	} else {
		r.Sentences = []string{fmt.Sprintf("Not complete: %d of %d runs were done; the same command resumes it.", len(r.Runs), len(o.turns()))}
	}
	return r, errors.Join(runErr, effectsErr, r.save(o))
}

// runs does the runs that are not done yet.
func (o Options) runs(ctx context.Context, r *Result) error {
	specs := o.specs()
	for _, t := range o.turns() {
		if r.done(specs[t.variant].name, t.repeat) {
			continue
		}
		if err := r.save(o); err != nil {
			return err
		}
		one := specs[t.variant]
		one.spec.Repeat = freeRepeat(one.spec, t.repeat)
		o.say(fmt.Sprintf("run %d of %d: %s", len(r.Runs)+1, len(o.turns()), one.name))
		begin := time.Now()
		run, err := o.Run(ctx, one.spec, o.Progress)
		if ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		done := Done{
			Variant: one.name, Repeat: t.repeat, Status: run.Status, Seconds: time.Since(begin).Seconds(), Record: run.Below(o.Spec.Out),
		}
		if err != nil && !errors.Is(err, experiment.ErrUnconverged) && !controlplane.IsOutOfMemory(err) {
			return fmt.Errorf("with %s: %w", one.name, err)
		}
		r.Runs = append(r.Runs, done)
		r.records = append(r.records, run)
		o.report(r)
	}
	return nil
}

// freeRepeat is a number of a repeat whose folder is not there, of a run that was
// interrupted for instance.
func freeRepeat(spec run.Spec, from int) int {
	for n := from; ; n++ {
		spec.Repeat = n
		if _, err := os.Lstat(filepath.Join(spec.Out, spec.Name())); errors.Is(err, os.ErrNotExist) || n > 10*maxRepeats {
			return n
		}
	}
}

// announce says, before anything is started, how many runs there are and how long they
// take.
func (o Options) announce(r *Result) {
	each := o.length() + run.AroundPhases
	left := len(o.turns()) - len(r.Runs)
	text := fmt.Sprintf("%s: %s and %s, %s each, interleaved; each about %s; about %s in all",
		output.Many(len(o.turns()), "run"), o.Base, output.Many(len(o.Variants), "variant"), output.Many(o.Repeats, "run"),
		rounded(each), rounded(time.Duration(left)*each))
	if len(r.Runs) > 0 {
		text += fmt.Sprintf("; resumed, %s done before", output.Many(len(r.Runs), "run"))
	}
	o.say(text)
}

// length is how long the phases of a run take on this machine, without the rollout.
func (o Options) length() time.Duration {
	s := o.Spec
	return s.FixedLength() + time.Duration(float64(time.Duration(s.Phases.Cycle)+time.Duration(s.Load.Probes)*perProbe)*max(1, s.Instrument.Dilation.Factor))
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Second) }

// report says what came of the last run and how long the others will take.
func (o Options) report(r *Result) {
	last, took := r.Runs[len(r.Runs)-1], 0.0
	for _, one := range r.Runs {
		took += one.Seconds
	}
	left := len(o.turns()) - len(r.Runs)
	text := fmt.Sprintf("%s: %s; took %s", last.Variant, last.Status, rounded(time.Duration(last.Seconds*float64(time.Second))))
	if left > 0 {
		text += fmt.Sprintf("; %s more, about %s", output.Many(left, "run"), rounded(time.Duration(float64(left)*took/float64(len(r.Runs))*float64(time.Second))))
	}
	o.say(text)
}

func (o Options) say(msg string) {
	if o.Progress.Say != nil {
		o.Progress.Say(msg)
	}
}

// digest identifies what is asked for: a sweep with another digest is not resumed. More
// repeats of the same are no other sweep.
func (o Options) digest() string {
	text := o.Kind
	for _, one := range o.specs() {
		s := one.spec
		s.Repeats = 0
		text += fmt.Sprintf(" %s %s", one.name, s.Asked())
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12]
}

// variant is the runs of one name, of all that are done.
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
		for _, name := range append([]string{o.Base}, names(o.Variants)...) {
			r.Meets = append(r.Meets, meets(*o.Objective, r.variant(name)))
		}
	}
	return nil
}

func names(variants []Variant) []string {
	var all []string
	for _, v := range variants {
		all = append(all, v.Name)
	}
	return all
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
