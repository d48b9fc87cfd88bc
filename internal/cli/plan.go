package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/series/verify"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

type planOptions struct {
	capacity.Options
	headroom  string
	memory    string
	nodeSpeed string
	output    string

	verify bool
	spec   run.Spec // of the run that verifies: its folders and programs
}

// knownLimits returns the limits of control planes as they come, by name.
func knownLimits() map[string]*record.Limits {
	known := map[string]*record.Limits{}
	for _, d := range drivers.All() {
		if d.Figures.Limits != nil {
			known[d.Name] = d.Figures.Limits(nil)
		}
	}
	return known
}

// install returns how the control plane of a plan is given what the plan requests; nil if
// that is not known.
func install(t capacity.Target, r capacity.Request) *capacity.Install {
	for _, d := range drivers.All() {
		if d.Name == t.ControlPlane && d.Sized != nil {
			return d.Sized(t, r)
		}
	}
	return nil
}

func newPlanCommand(s streams) *cobra.Command {
	o := planOptions{Options: capacity.Options{Known: knownLimits(), Install: install}}
	cmd := &cobra.Command{
		Use:   "plan DIR... --pods N",
		Short: "Forecast what a larger mesh needs, from the records of smaller ones",
		Long: `Plan forecasts what a larger mesh needs of its control plane, from the records of
smaller ones: memory, processor time and rollout time with 95 % intervals, the
limit that is reached first, and the requests and limits to set. Each DIR is the
folder of a run, or a folder that contains runs at any depth.

It needs three sizes, some of them repeated, or five sizes, and forecasts up to
eight times the largest. Otherwise it prints the missing rollout command and
refuses, unless --force is given.

--verify runs the planned mesh on this machine, with a control plane that has the
recommended processors and memory and no more. The control plane is killed while
the mesh is at rest, and one change is made that reaches every sidecar. The plan
passes if the control plane was not killed for its memory, the mesh converged each
time, the rollout took no longer than the upper bound, and every other figure lies
within its interval. Otherwise the exit code is 3.`,
		Example: `  # what 5000 pods need, from runs of up to 800
  scaler rollout --pods 200,300,400,500,600,700,800 --repeats 2 --probes 0 --out results
  scaler plan results --pods 5000 --rollout-within 10m --replicas-max 3

  # check the forecast: predict the largest size from the others
  scaler plan results --validate -o json

  # what ten copies of your own mesh need
  scaler rollout --mesh mesh.yaml --scale 1,2,3,4,5 --repeats 2 --probes 0 --out growth
  scaler plan growth --scale 10

  # what ambient mode needs with a node for each 40 pods, from runs with several --pods-per-node
  scaler plan results --pods 5000 --dataplane ambient --pods-per-node 40

  # check the plan: run it with the planned resources
  scaler plan results --pods 1600 --control-plane-cpus 2 --verify`,
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(s, cmd, args) },
	}
	f := cmd.Flags()
	f.IntVar(&o.Pods, "pods", 0, "pods of the planned mesh (with --validate, default the largest size)")
	f.IntVar(&o.Scale, "scale", 0, "number of copies of the runs' captured mesh to plan for, in place of --pods")
	f.IntVar(&o.Services, "services", 0, "services of the planned mesh (default in the ratio of the runs)")
	f.StringVar(&o.Mode, "mode", "", "mode of the runs to use (default permissive, if there are such runs)")
	f.StringVar(&o.Dataplane, "dataplane", "", "data plane of the runs to use, as in ambient (default sidecar, if there are such runs)")
	f.IntVar(&o.PodsPerNode, "pods-per-node", 0, "with runs of --dataplane ambient: pods per node of the planned mesh (default as in most runs of the largest size)")
	f.DurationVar(&o.Within, "rollout-within", 0, "time that the rollout may take, as in 10m (default any)")
	f.DurationVar(&o.Wait, "wait", 0, "longest time that a sidecar of a burst may wait to be served, as in 5s (default until it would be refused)")
	f.StringVar(&o.headroom, "headroom", fmt.Sprintf("%.0f%%", 100*capacity.DefaultHeadroom), "share added to the upper bound of the forecast")
	f.IntVar(&o.Processors, "control-plane-cpus", 0, "processors per replica (default: as few as are sufficient)")
	f.BoolVar(&o.LimitProcessors, "cpu-limit", false, "print a processor limit, too; without it GOMAXPROCS bounds what a replica uses, and nothing throttles it")
	f.StringVar(&o.memory, "control-plane-memory", "", "memory per replica, as in 512Mi or 2Gi (default: as much as is needed)")
	f.IntVar(&o.ReplicasMax, "replicas-max", 0, "maximum number of replicas; runs with several --replicas show what each needs (default the fewest that the runs have)")
	f.BoolVar(&o.Validate, "validate", false, "leave out the largest size, forecast it and compare it with the measurement")
	f.BoolVar(&o.verify, "verify", false, "run the planned mesh with the recommended limits, and compare")
	f.StringVar(&o.spec.Out, "out", "", "folder for the record of --verify, which the same command resumes (default ./scaler-runs/DATE-TIME)")
	addComponentFlags(f, &o.spec.Programs)
	f.StringVar(&o.nodeSpeed, "node-speed", "", "`FILE` with the output of 'scaler calibrate --speed -o json' on the planned nodes: processor time and cores are stated for their processors (default those of the runs)")
	f.BoolVar(&o.Force, "force", false, "forecast even if there are too few runs, or the planned mesh is too large for them")
	f.StringVarP(&o.output, "output", "o", "table", "`format`: table (the answer), wide (all tables), json, yaml or markdown")
	complete(cmd, "output", output.Formats)
	complete(cmd, "mode", []string{"permissive", "strict"})
	return cmd
}

func (o planOptions) run(s streams, cmd *cobra.Command, dirs []string) error {
	if err := o.parse(cmd); err != nil {
		return err
	}
	if len(dirs) == 0 {
		return usagef("want at least one DIR that holds runs, as in 'scaler plan results --pods 5000'")
	}
	runs, err := record.Read(dirs...)
	if err != nil {
		return badFolder(err)
	}
	plan, err := capacity.Make(runs, o.Options)
	if err != nil {
		return usageError{err}
	}
	var verifyErr error
	if o.verify && plan.Request.Met {
		verifyErr = o.carryOut(s, cmd, plan)
	}
	if err := capacity.Print(s.out, o.output, plan); err != nil {
		return errors.Join(verifyErr, err)
	}
	switch {
	case verifyErr != nil:
		return verifyErr
	case !plan.Request.Met:
		return fmt.Errorf("planning for %d pods: %w", plan.Target.Pods, errNotMet)
	case plan.Verification != nil && !plan.Verification.Passed:
		return fmt.Errorf("verifying the plan for %d pods: %w", plan.Target.Pods, errNotVerified)
	}
	return nil
}

// carryOut verifies a plan.
func (o planOptions) carryOut(s streams, cmd *cobra.Command, plan *capacity.Plan) error {
	spec := run.DefaultSpec()
	spec.Programs = o.spec.Programs
	var err error
	if spec.Out, err = outFolder(cmd, o.spec.Out); err != nil {
		return err
	}
	if spec.State, err = stateDir(); err != nil {
		return err
	}
	options := verify.Options{Plan: plan, Like: plan.Like(), Spec: spec}
	if err := options.Validate(); err != nil {
		return usageError{err}
	}
	err = withProgress(s, func(p run.Progress) error {
		options.Progress, options.Spec.Programs.Progress = p, p.Say
		return verify.Run(cmd.Context(), options)
	})
	if v := plan.Verification; v != nil && v.Record != "" {
		fmt.Fprintln(s.err, "record:", v.Record)
	}
	return err
}

// errNotVerified marks a plan that did not hold when it was carried out: exit code 3.
var errNotVerified = errors.New("a check did not pass")

// errNotMet marks a plan that no permitted size of control plane carries out: exit
// code 3.
var errNotMet = errors.New("no permitted control plane has the processors and memory for it and does it in that time; the plan printed is the nearest")

// parseShare parses a percentage, as in 30%.
func parseShare(text string) (share float64, ok bool) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	return share / 100, err == nil && percent && !math.IsNaN(share)
}

// parse checks the flags, and parses those that are text.
func (o *planOptions) parse(cmd *cobra.Command) error {
	if err := parseOutput(o.output, output.Formats...); err != nil {
		return err
	}
	given := cmd.Flags().Changed
	switch {
	case !o.Validate && !given("pods") && !given("scale"):
		return usagef("--pods: no value, want the pods that are planned for, as in --pods 5000, or the --scale of a captured mesh")
	case given("scale") && (given("pods") || o.Validate):
		return usagef("--scale: got %d, want it without --pods and --validate, which state the size, too", o.Scale)
	}
	of := func(path string) scenario.Parameter {
		p, _ := scenario.Of(path)
		return p
	}
	beyond := func(most float64) scenario.Parameter { return scenario.Parameter{Min: 1, Max: most} } // what can be run
	for _, n := range []struct {
		flag   string
		value  int
		bounds scenario.Parameter
	}{
		{"pods", o.Pods, beyond(1_000_000)}, {"services", o.Services, beyond(1_000_000)}, {"replicas-max", o.ReplicasMax, beyond(1000)},
		{"scale", o.Scale, of("mesh.scale")}, {"control-plane-cpus", o.Processors, of("controlPlane.processors")}, {"pods-per-node", o.PodsPerNode, of("mesh.podsPerNode")},
	} {
		if given(n.flag) && (float64(n.value) < n.bounds.Min || float64(n.value) > n.bounds.Max) {
			return usagef("--%s: got %d, want %.0f to %.0f", n.flag, n.value, n.bounds.Min, n.bounds.Max)
		}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"rollout-within", o.Within}, {"wait", o.Wait}} {
		if given(d.flag) && (d.value < time.Millisecond || d.value > 24*time.Hour) {
			return usagef("--%s: got %s, want a duration from 1ms to 24h", d.flag, d.value)
		}
	}
	switch {
	case o.verify && o.Validate:
		return usagef("--verify: want it without --validate, which plans for a size that was measured")
	case !o.verify && given("out"):
		return usagef("--out: want it with --verify, whose run it is for")
	}
	if given("mode") && o.Mode == "" {
		return usagef(`--mode: got "", want permissive or strict`)
	}
	if given("dataplane") && o.Dataplane == "" {
		return usagef(`--dataplane: got "", want that of the runs, as in --dataplane ambient`)
	}
	share, ok := parseShare(o.headroom)
	if !ok || share < 0 || share > 10 {
		return usagef("--headroom: got %q, want a share from 0%% to 1000%%, as in 30%%", o.headroom)
	}
	o.Headroom = share
	if given("node-speed") {
		if o.Validate {
			return usagef("--node-speed: want it without --validate, whose runs were measured on their own processors")
		}
		var err error
		if o.NodeSpeed, err = readSpeed(o.nodeSpeed); err != nil {
			return err
		}
	}
	if given("control-plane-memory") {
		var bytes scenario.Bytes
		if err := bytes.UnmarshalText([]byte(o.memory)); err != nil {
			return usagef("--control-plane-memory: %w", err)
		}
		if p, _ := scenario.Of("controlPlane.memory"); float64(bytes) < p.Min || float64(bytes) > p.Max {
			return usagef("--control-plane-memory: got %q, want from %s", o.memory, p.Values())
		}
		o.MemoryBytes = int64(bytes)
	}
	return nil
}
