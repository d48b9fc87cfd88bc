package sweep

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/scenario"
)

// Preset is the name of the runs in which no setting is varied.
const Preset = "preset"

// tuned are the figures that settings are judged by: few, chosen in advance, so that small
// effects can be established.
var tuned = []string{
	"controlPlane.rollout.cpuSeconds", "controlPlane.change.cpuSeconds", "controlPlane.probe.cpuSeconds",
	"controlPlane.rollout.memoryBytes.peak", "controlPlane.steady.heapBytes.collected",
	"latencies.completeConfiguration", "phases.rollout.seconds",
	"change.push", "latencies.push",
}

// Setting is a variable of the control plane's environment, and the values that are tried.
type Setting struct {
	Name   string
	Values []string
}

// settingName matches the name of a setting.
var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ParseSetting parses a setting: NAME=VALUE,VALUE with two values at least.
// Its error is a *[scenario.Error] of the path setting.
func ParseSetting(text string) (Setting, error) {
	fail := func(want string) (Setting, error) {
		return Setting{}, scenario.Refuse("setting", text, "%s", want)
	}
	name, values, ok := strings.Cut(text, "=")
	if !ok || !settingName.MatchString(name) {
		return fail("NAME=VALUE,VALUE, as in PILOT_PUSH_THROTTLE=20,50,100")
	}
	s := Setting{Name: name, Values: strings.Split(values, ",")}
	for i, v := range s.Values {
		if v == "" || strings.TrimSpace(v) != v || strings.ContainsRune(v, 0) {
			return fail("values with commas and no spaces between them")
		}
		if slices.Contains(s.Values[:i], v) {
			return fail("each value once")
		}
	}
	if len(s.Values) < 2 {
		return fail("two values at least: one is compared by two rollouts with controlPlane.env, and 'scaler compare'")
	}
	if name == "GOMAXPROCS" {
		return fail("another setting: controlPlane.cpus states how many processors the control plane has, and is recorded")
	}
	return s, nil
}

// Tuning returns a sweep of settings. With all, every combination of their values is tried;
// else one setting at a time is varied, and the others keep what the base has.
//
// One at a time is the default since it takes a run for each value, and combinations as
// many as the product of the numbers of values; what it cannot show is an effect that two
// settings have only together.
func Tuning(spec run.Spec, settings []Setting, all bool) (Options, error) {
	o := Options{
		Kind: "Tuning", File: "tune.json", What: "value", Base: Preset, Spec: spec, Figures: tuned,
		Conclude: recommend,
	}
	for i, s := range settings {
		for _, other := range settings[:i] {
			if other.Name == s.Name {
				return o, scenario.Refuse("setting", s.Name, "each setting once")
			}
		}
		for _, kv := range spec.ControlPlane.Env { // that a captured mesh has a setting does not fix it
			if name, _, _ := strings.Cut(kv, "="); name == s.Name && !spec.IsCaptured(kv) {
				return o, scenario.Refuse("setting", s.Name, "a setting that controlPlane.env does not fix")
			}
		}
	}
	if all && combined(settings) > maxVariants {
		return o, scenario.Refuse("allCombinations", nil, "at most %d of them, not %d", maxVariants, combined(settings))
	}
	for _, env := range environments(settings, all) {
		o.Variants = append(o.Variants, Variant{strings.Join(env, " "), func(s *run.Spec) { s.ControlPlane.Env = scenario.MergeEnv(s.ControlPlane.Env, env) }})
	}
	return o, nil
}

// combined returns the number of combinations of values, or more than maxVariants.
func combined(settings []Setting) int {
	n := 1
	for _, s := range settings {
		if n *= len(s.Values); n > maxVariants {
			return n
		}
	}
	return n
}

// environments returns the variables that each variant adds to the control plane's environment.
func environments(settings []Setting, all bool) [][]string {
	var envs [][]string
	if !all {
		for _, s := range settings {
			for _, v := range s.Values {
				envs = append(envs, []string{s.Name + "=" + v})
			}
		}
		return envs
	}
	envs = [][]string{nil}
	for _, s := range settings {
		var longer [][]string
		for _, env := range envs {
			for _, v := range s.Values {
				longer = append(longer, append(slices.Clone(env), s.Name+"="+v))
			}
		}
		envs = longer
	}
	return envs
}

// CheckKnown returns an error for a setting that a control plane does not read: its name is nowhere in its
// program. A setting that is misspelled would be without effect, and look like one that
// brings no gain.
func CheckKnown(settings []Setting, program string) error {
	text, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("looking for settings in the control plane's program: %w", err)
	}
	for _, s := range settings {
		if !bytes.Contains(text, []byte(s.Name)) {
			return scenario.Refuse("setting", s.Name, "a variable that the control plane reads: %s does not contain this name", program)
		}
	}
	return nil
}

// recommend states which value is recommended, if any.
func recommend(r *Result, o Options) {
	judged := r.judge(o)
	r.Margins = margins
	say := func(format string, args ...any) { r.Sentences = append(r.Sentences, fmt.Sprintf(format, args...)) }
	r.Sentences, r.Recommended = []string{}, ""
	if o.Objective != nil && !slices.ContainsFunc(r.Meets, Meeting.always) {
		r.Answer = NotMet
		if slices.ContainsFunc(r.Meets, func(m Meeting) bool { return m.Unknown > 0 }) {
			r.Answer = Unknown
			say("No recommendation: no value is known to meet %s in every run, and some runs do not decide it.", o.Objective.Text)
			return
		}
		say("%s is met in every run with no value, nor with the %s.", o.Objective.Text, o.Base)
		return
	}
	if r.tooFew() {
		r.Answer = Unknown
		say("No recommendation: too few runs for any test; 4 of each are the least.")
		return
	}
	if best := best(judged, o, r); best != nil {
		r.Answer, r.Recommended = Recommends, best.name
		text := fmt.Sprintf("%s is recommended: %s", best.name, changesOf(best.gains))
		if costs := slices.Concat(best.losses, best.slight); len(costs) > 0 {
			text += "; it costs " + changesOf(costs)
		}
		if len(best.unproven) > 0 {
			text += "; it may cost " + marginsOf(best.unproven)
		}
		say("%s.", text)
	} else if open := openHarm(judged); len(open) > 0 {
		r.Answer = Unknown
		for _, j := range open {
			say("No recommendation of %s: it is better in %s, and harm is not excluded: %s. A tuning with more repeats decides it.", j.name, changesOf(j.gains), marginsOf(j.unproven))
		}
	} else {
		r.Answer = NoGain
		say("No significant gain: none of %s is better than the %s without being worse, in %s.", output.Many(len(o.Variants), "value"), o.Base, output.Many(r.Effects.Tests, "test"))
	}
	for _, v := range judged {
		if v.name != r.Recommended && len(v.gains) > 0 && len(v.losses) > 0 {
			say("%s trades: better %s; worse %s.", v.name, changesOf(v.gains), changesOf(v.losses))
		}
	}
	for _, v := range judged {
		if v.excluded != "" {
			say("%s is not considered: %s.", v.name, v.excluded)
		}
	}
}

// tooFew reports that no variant has enough runs for any test.
func (r *Result) tooFew() bool {
	return !slices.ContainsFunc(r.Effects.Variants, func(e compare.Effect) bool {
		return stats.SmallestP(len(e.Base.Used), len(e.Runs.Used)) <= r.Effects.Alpha
	})
}

// judgement has the established effects of a variant.
type judgement struct {
	name          string
	gains, losses []*compare.Figure
	slight        []*compare.Figure // established to be worse, by less than their margin
	unproven      []*compare.Figure // neither established to be worse nor shown not to be by more than their margin
	excluded      string            // why it cannot be recommended
}

// judge sorts the established effects of each variant.
func (r *Result) judge(o Options) []judgement {
	var all []judgement
	for i := range r.Effects.Variants {
		e := &r.Effects.Variants[i]
		j := judgement{name: e.Name}
		for k := range e.Figures {
			switch better, worse := e.Figures[k].Better(); {
			case better:
				j.gains = append(j.gains, &e.Figures[k])
			case worse && harmless(&e.Figures[k], r.Effects.Alpha):
				j.slight = append(j.slight, &e.Figures[k])
			case worse:
				j.losses = append(j.losses, &e.Figures[k])
			case !harmless(&e.Figures[k], r.Effects.Alpha):
				j.unproven = append(j.unproven, &e.Figures[k])
			}
		}
		if len(e.Runs.Unused) > 0 {
			j.excluded = fmt.Sprintf("%d of its runs did not complete", len(e.Runs.Unused))
		}
		for _, m := range r.Meets {
			if m.Variant == e.Name && !m.always() {
				j.excluded = cmp.Or(j.excluded, fmt.Sprintf("it met %s in %d of %s", o.Objective.Text, m.Met, output.Many(m.Runs, "run")))
			}
		}
		all = append(all, j)
	}
	return all
}

// best returns the variant that is recommended; nil = none. With a goal, or where the base
// misses the objective, one figure must be better, whatever else becomes worse: then the
// one that is best in it. Else it is one that is shown not to be worse in anything by more
// than its margin, and of several the one whose improvements multiply to the greatest.
func best(judged []judgement, o Options, r *Result) *judgement {
	goal := o.Goal
	if o.Objective != nil && !r.Meets[0].always() {
		goal = o.Objective.Path
	}
	var found *judgement
	most := 0.0
	for i := range judged {
		j := &judged[i]
		if j.excluded != "" || goal == "" && len(j.losses)+len(j.unproven) > 0 {
			continue
		}
		sum := 0.0
		for _, f := range j.gains {
			if goal == "" || f.Path == goal {
				sum += gain(f)
			}
		}
		if sum > most {
			found, most = j, sum
		}
	}
	return found
}

// gain returns by how much a figure is better: the logarithm of the ratio, or a tiny number where
// there is no ratio.
func gain(f *compare.Figure) float64 {
	if f.Ratio && *f.Difference > -1 {
		return math.Abs(math.Log1p(*f.Difference))
	}
	return 1e-6
}

// openHarm returns the variants that gain, and of which harm is neither established nor
// excluded.
func openHarm(judged []judgement) []judgement {
	return slices.DeleteFunc(slices.Clone(judged), func(j judgement) bool {
		return len(j.gains) == 0 || len(j.losses) > 0 || len(j.unproven) == 0 || j.excluded != ""
	})
}

// marginsOf describes the changes of figures, with their margins.
func marginsOf(figures []*compare.Figure) string {
	var all []string
	for _, f := range figures {
		all = append(all, f.Change()+", margin "+output.Percent(marginOf(f.Path)))
	}
	return list(all)
}

// changesOf describes the changes of figures.
func changesOf(figures []*compare.Figure) string {
	var all []string
	for _, f := range figures {
		all = append(all, f.Change())
	}
	return list(all)
}

// WithObjective adds an objective and a goal, a figure that is to become better; "" and
// nil = none. Both are compared, too.
func (o Options) WithObjective(objective *compare.Objective, goal string) (Options, error) {
	o.Figures = slices.Clone(o.Figures)
	if o.Objective = objective; objective != nil {
		o.Figures = append(o.Figures, objective.Path)
	}
	if goal != "" {
		path, ok := compare.PathOf(goal)
		if !ok {
			return o, scenario.Refuse("goal", goal, "a figure of docs/reference/figures.md that has a better direction")
		}
		o.Goal, o.Figures = path, append(o.Figures, path)
	}
	return o, nil
}
