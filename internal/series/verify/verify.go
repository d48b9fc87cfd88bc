// Package verify carries out a plan: it runs the control plane with the processors and
// the memory that the plan gives it, kills it while the mesh is at rest, makes a change
// that reaches every sidecar, and compares what happened with the forecast.
package verify

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/mask"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Options are the options of a verification.
type Options struct {
	Plan *capacity.Plan // that is carried out; takes what came of it
	// Like is one of the runs that the plan was made from. The verification differs from
	// it in size and limits alone, and in what it does after the steady phase.
	Like *record.Run
	// Spec has what the record does not state: folders and programs. Other fields are
	// replaced.
	Spec     run.Spec
	Run      run.Runner   // nil = run.ResumeOne
	Progress run.Progress // takes messages and status; the zero value shows nothing
}

// kill returns the fault of a verification: the only program of a control plane is killed and
// started again; of several, one is killed, and the others serve its sidecars.
func kill(replicas int) string {
	if replicas > 1 {
		return "kill-replica@steady"
	}
	return "kill-control-plane@steady"
}

// spec returns the run of a verification. The error states what the plan, or this machine,
// does not allow; of a field or an option it is a *[scenario.Error].
func (o Options) spec() (spec run.Spec, err error) {
	p, like := o.Plan, o.Like
	if p.Request.Resources.Limits.Memory == "" {
		return spec, scenario.Refuse("controlPlane.memory", nil, "it, or more runs: the plan has no memory limit to verify")
	}
	spec = o.Spec
	spec.Scenario = like.Scenario
	spec.Place, spec.ControlPlane.Version = o.Spec.Place, cmp.Or(o.Spec.Programs.Istio, like.Scenario.ControlPlane.Version)
	spec.Programs.Istio = spec.ControlPlane.Version
	spec.ControlPlane.Env = slices.DeleteFunc(slices.Clone(spec.ControlPlane.Env), masked)
	spec.ControlPlane.Set = slices.DeleteFunc(slices.Clone(spec.ControlPlane.Set), masked)
	spec.Repeats = 1
	switch m := p.Target.Mesh; {
	case m != nil:
		if err := spec.Replay(m.Digest, m.Scale); err != nil {
			return spec, err
		}
	case like.Mesh != nil:
		return spec, scenario.Refuse("mesh.file", like.Scenario.Mesh.File, "runs that are all of one captured mesh, so that it is known how it grows")
	default:
		spec.Mesh.Pods, spec.Mesh.Services, spec.Mesh.Namespaces = scenario.List[int]{p.Target.Pods}, p.Target.Services, 0
	}
	spec.ControlPlane.Upgrade, spec.Phases.Cycle = scenario.Upgrade{}, 0
	spec.Instrument.Calibrate, spec.Instrument.Priority = false, like.Environment.Priority != nil
	spec.ControlPlane.Replicas, spec.ControlPlane.Processors = p.Request.Replicas, p.Request.Processors
	if err := spec.ControlPlane.Memory.UnmarshalText([]byte(p.Request.Resources.Limits.Memory)); err != nil {
		return spec, fmt.Errorf("reading the plan's memory limit: %w", err)
	}
	if err := spec.CheckField("controlPlane.memory"); err != nil {
		return spec, err
	}
	fault, err := scenario.ParseFault(kill(spec.ControlPlane.Replicas))
	if err != nil {
		return spec, err
	}
	spec.Load = scenario.Load{
		Arrival: spec.Load.Arrival, Faults: []scenario.Fault{fault},
		Changes: scenario.Changes{PerSecond: 1, Kind: scenario.MeshWideChange},
	}
	spec.Phases.Changes = scenario.Duration(time.Second)
	if p.Target.Nodes > 0 { // no change of the whole mesh reaches their proxies
		if p.Target.Mesh == nil {
			spec.Mesh.PodsPerNode = p.Target.PodsPerNode
		}
		spec.Load.Changes, spec.Phases.Changes, spec.Load.Probes = scenario.Changes{}, 0, 1
	}
	return spec, spec.Validate()
}

// masked reports whether a record does not have the value of a variable (NAME=VALUE) or a setting, or a part of it, since it looks like a secret.
func masked(variable string) bool { return strings.Contains(variable, mask.Masked) }

// notReproduced returns the parts of the control plane of the runs that the verification does not have as they were.
func (o Options) notReproduced() (all []record.NotReproduced) {
	for _, kv := range slices.Concat(o.Like.Scenario.ControlPlane.Env, o.Like.Scenario.ControlPlane.Set) {
		if masked(kv) {
			name, _, _ := strings.Cut(kv, "=")
			all = append(all, record.NotReproduced{What: "setting " + name, Changes: "what depends on its value, which is masked in the record"})
		}
	}
	if had := capacity.ProcessorsOf(o.Like); had != o.Plan.Request.Processors {
		all = append(all, record.NotReproduced{
			What: "processors", Value: strconv.Itoa(had),
			Changes: fmt.Sprintf("memory, processor time and pushes (2 in place of 8 with 800 pods, one run each: 23 %% more memory, 13 %% less processor time): each replica has %d; a plan for %d has the runs' own", o.Plan.Request.Processors, had),
		})
	}
	if of := o.Plan.Processor; of != nil && math.Abs(of.Speed-1) > record.SpeedBound && o.Like.Environment.ControlPlane.ReferenceProcessors {
		all = append(all, record.NotReproduced{
			What: "speed of the processors", Value: fmt.Sprintf("%.3g", of.Speed),
			Changes: fmt.Sprintf("what the control plane does where its processors bind: it has %d reference processors, and the plan is for as many that are as fast as %.3g of one", o.Plan.Request.Processors, of.Speed),
		})
	}
	return all
}

// Validate states what the plan, or this machine, does not allow. Nothing is started.
func (o Options) Validate() error {
	_, err := o.spec()
	return err
}

// Run verifies a plan by a run and adds the result to the plan. A run of the same verification that had a result
// before is not done again: its record in the output folder is judged. It returns an error for
// a plan that cannot be verified here, if ctx ends, or if a run failed for another
// reason than its control plane; a plan that does not hold is no error.
func Run(ctx context.Context, o Options) error {
	spec, err := o.spec()
	if err != nil {
		return err
	}
	if o.Run == nil {
		o.Run = run.ResumeOne
	}
	request := o.Plan.Request
	return series.Series{
		Plan: &verification{Options: o, spec: spec},
		Headline: fmt.Sprintf("verifying with %d x %d processors and %s of memory: %d pods, then %s and a change that reaches every %s",
			spec.ControlPlane.Replicas, request.Processors, request.Resources.Limits.Memory, spec.Pods(), spec.Load.Faults[0], proxyOf(o.Plan)),
		Out: spec.Out, Say: o.Progress.Say,
	}.Run(ctx)
}

// verification is the plan of a series of one run.
type verification struct {
	Options
	spec  run.Spec
	begun bool
}

// Next returns the run.
func (v *verification) Next() (series.Run, bool) {
	if v.begun {
		return series.Run{}, false
	}
	v.begun = true
	return series.Run{
		Name: v.spec.Name(), Expected: v.spec.Expected(),
		Do: func(ctx context.Context) (record.Run, error) { return v.Run(ctx, v.spec, v.Progress) },
	}, true
}

// Left returns the run until it is begun, and about how long it takes.
func (v *verification) Left() (runs int, expected time.Duration) {
	if v.begun {
		return 0, 0
	}
	return 1, v.spec.Expected()
}

// Take compares the run with the forecast.
func (v *verification) Take(_ series.Done, run *record.Run, err error) (string, error) {
	if series.IsFailure(err) {
		return "failed", err
	}
	control := v.spec.ControlPlane
	found := &capacity.Verification{
		Record: run.Dir, Replicas: control.Replicas, Processors: control.Processors, MemoryBytes: int64(control.Memory),
		NotReproduced: v.notReproduced(),
	}
	found.Add(v.checks(run, controlplane.IsOutOfMemory(err))...)
	v.Plan.Verification = found
	if found.Passed {
		return "every check passed", nil
	}
	return "not every check passed", nil
}

// rolloutTime is a figure that a plan forecasts as an upper bound: a rollout that takes
// less time keeps what the plan promises.
const rolloutTime = "phases.rollout.seconds"

// checks judges a run by a plan.
func (v *verification) checks(run *record.Run, killed bool) []capacity.Check {
	p, had := v.Plan, capacity.ProcessorsOf(v.Like)
	all := []capacity.Check{
		memory(p, run, killed),
		shown("converged", run.Pods != nil && run.Pods.Converged != nil && *run.Pods.Converged == run.Pods.Requested, "the mesh did not converge within the time limit"),
	}
	for _, f := range p.Figures {
		low := f.Low
		if f.Name == rolloutTime {
			low = nil
		}
		c := capacity.Within(f.Name, f.Unit, p.Measured(run, f.Name), low, f.High)
		if c.Verdict == capacity.Failed && had != p.Request.Processors {
			c.Why += fmt.Sprintf(" of runs with %s", output.Many(had, "processor"))
		}
		all = append(all, c)
	}
	return append(all, recovered(p, run), changed(p, run))
}

// proxyOf names the proxies of a planned mesh.
func proxyOf(p *capacity.Plan) string { return cmp.Or(p.Target.Proxy, "sidecar") }

// shown makes the check of something that happened or did not.
func shown(name string, passed bool, why string) capacity.Check {
	if passed {
		return capacity.Check{Name: name, Verdict: capacity.Passed}
	}
	return capacity.Check{Name: name, Verdict: capacity.Failed, Why: why}
}

// memory checks that the control plane stayed within its limit. Where no limit was
// enforced, that it was not killed shows nothing.
func memory(p *capacity.Plan, run *record.Run, killed bool) capacity.Check {
	const name = "not killed for its memory"
	if killed || run.Environment.ControlPlane.MemoryLimitEnforced {
		return shown(name, !killed, "the kernel killed the control plane: it exceeded "+p.Request.Resources.Limits.Memory)
	}
	c := capacity.Check{Name: name, Verdict: capacity.NotEnforced, Why: "nothing held the control plane to " + p.Request.Resources.Limits.Memory}
	for _, w := range run.Warnings {
		if w.Reason == record.ReasonLimitNotEnforced {
			c.Why += ": " + w.Detail
		}
	}
	return c
}

// recovered checks that the mesh converged again after the kill.
func recovered(p *capacity.Plan, run *record.Run) capacity.Check {
	const name = "converged again after a kill"
	for _, f := range run.Faults {
		if f.Name+"@"+string(f.Phase) == kill(p.Request.Replicas) {
			return shown(name, f.Seconds != nil, "not within the time limit")
		}
	}
	return capacity.Check{Name: name, Verdict: capacity.Unknown, Why: "the run ended before"}
}

// changed checks that a change reached every proxy.
func changed(p *capacity.Plan, run *record.Run) capacity.Check {
	name := "a change reached every " + proxyOf(p)
	var reached *record.Latency
	var due int64
	switch c := run.Change; {
	case p.Target.Nodes > 0:
		reached, due = run.Latencies.Push[record.ServiceChange], int64(p.Target.Nodes)*int64(run.Scenario.Load.Probes)
	case c != nil && c.Changes != nil && *c.Changes > 0:
		reached, due = c.Push, int64(*c.Changes)*int64(run.PodCount())
	}
	if reached == nil {
		return capacity.Check{Name: name, Verdict: capacity.Unknown, Why: "the run ended before"}
	}
	if reached.Lost > 0 {
		return shown(name, false, fmt.Sprintf("%d of %d %ss did not receive it within the time limit", reached.Lost, due, proxyOf(p)))
	}
	return shown(name, reached.Count == due, fmt.Sprintf("%d %ss received it, of %d", reached.Count, proxyOf(p), due))
}
