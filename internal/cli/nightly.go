package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/series/nightly"
)

type nightlyOptions struct {
	rolloutOptions
	plan capacity.Options
	keep int
}

// ofNightly are the flags of a rollout that a night has.
var ofNightly = []string{
	"pods", "repeats", "services", "namespaces", "topology", "fanout", "seed", "mode", "mtls", "scope", "authz", "burst", "arrival", "start-delay",
	"xds", "proxy-version", "baseline", "settle", "steady", "converge-timeout", "probes", "workers", "out", "bin-dir", "cache-dir", "image-registry",
	"context", "kubeconfig", "istio-namespace", "revision", "control-plane-address", "control-plane-metrics", "worker-image", "kwok-image", "abort-if", "refuse-if", "yes", "dry-run",
}

func newNightlyCommand(s streams) *cobra.Command {
	o := nightlyOptions{rolloutOptions: rolloutOptions{ladder: run.Ladder{Spec: run.DefaultSpec()}}}
	o.ladder.Spec.Steady, o.ladder.Spec.Probes = 30*time.Second, 5
	cmd := &cobra.Command{
		Use:   "nightly --context NAME --plan-pods N",
		Short: "Roll out several sizes in a cluster that is there already, plan from them, and store a report",
		Long: `Nightly does what a CronJob can do each night: small rollouts of several sizes in a
cluster that is there already, one after the other, and from their records a plan for a
mesh of --plan-pods. It is a series of 'scaler rollout --context' and a 'scaler plan'.

Each night has a folder in --out, named by its beginning: the records, report.html,
report.md, plan.json, plan.md, and nightly.json, which states how far it came. The
folders of the oldest nights are deleted at its end, but not that of the newest one that
completed, and none whose runs may have left something in the cluster. Nights of other
clusters in --out are not touched. A night is refused while another one is in progress in
the same folder.

The first run that fails or does not converge ends the night: the cluster is in use. What
was measured until then is reported. What a run left that was killed or failed is deleted
by the next night. The exit code is 0 if all runs converged and the plan meets what was
asked of it, 3 if a run did not converge or no permitted control plane meets it, and 1
after another error: also of a plan that cannot be made of runs that converged, of a report
that cannot be written, and of what an earlier run left and cannot be deleted.`,
		Example: `  # in a pod, as the Helm chart's CronJob does it
  scaler nightly --context in-cluster --yes --plan-pods 1600 --out /reports

  # from here: first what the largest run would create
  scaler nightly --context staging --pods 100,200,400 --plan-pods 3000 --dry-run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	o.existing.addFlags(f)
	f.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(ofNightly, flag.Name) {
			_ = f.MarkHidden(flag.Name)
		}
	})
	o.sizes, f.Lookup("pods").DefValue = sizes{50, 100, 200}, "50,100,200"
	o.ladder.Repeats, f.Lookup("repeats").DefValue = 2, strconv.Itoa(2)
	f.Lookup("out").Usage = "folder for a folder of each night (default ./scaler-nights)"
	f.IntVar(&o.plan.Pods, "plan-pods", 0, "pods of the mesh that is planned for")
	f.DurationVar(&o.plan.Within, "rollout-within", 0, "time that its rollout may take, as in 10m (default any)")
	f.IntVar(&o.plan.ReplicasMax, "replicas-max", 1, "maximum number of replicas of its control plane")
	f.IntVar(&o.keep, "keep-nights", 14, "number of nights whose folders stay, this one included; 0 = all")
	return cmd
}

func (o *nightlyOptions) run(cmd *cobra.Command, s streams) error {
	options, err := o.options(cmd)
	if err != nil {
		return err
	}
	largest := slices.MaxFunc(options.Ladder.Runs(), func(a, b run.Spec) int { return a.Topology.Pods - b.Topology.Pods })
	if goOn, err := o.existing.prepare(cmd, s, largest, true); err != nil || !goOn {
		return err
	}
	cluster, err := o.existing.use.Target.Open()
	if err != nil {
		return err
	}
	options.Server = cluster.Server
	options.Remove = func(ctx context.Context, run string) error {
		_, err := cluster.Delete(ctx, run)
		return err
	}
	collectOften()
	shown := newProgress(s.err)
	defer shown.close()
	options.Progress = run.Progress{Say: shown.say, Status: shown.status}
	night, err := nightly.Run(cmd.Context(), options)
	shown.close()
	if night == nil {
		return err
	}
	fmt.Fprintln(s.err, "report:", night.Dir)
	if printErr := night.Print(s.out); printErr != nil {
		return errors.Join(err, printErr)
	}
	switch {
	case night.Missed():
		return fmt.Errorf("%w: %w", errMissed, err)
	case err == nil && night.Met != nil && !*night.Met:
		return fmt.Errorf("planning for %d pods: %w", night.PlanPods, errNotMet)
	}
	return err
}

// options checks every flag before anything is started.
func (o *nightlyOptions) options(cmd *cobra.Command) (nightly.Options, error) {
	f := cmd.Flags()
	var foreign error
	f.Visit(func(flag *pflag.Flag) {
		if flag.Hidden && foreign == nil {
			foreign = usagef("parsing --%s: want it with 'scaler rollout'", flag.Name) // the value may be a secret
		}
	})
	switch {
	case foreign != nil:
		return nightly.Options{}, foreign
	case !f.Changed("context"):
		return nightly.Options{}, usagef("parsing --context: no value: want the cluster, as in --context in-cluster")
	case !f.Changed("plan-pods"):
		return nightly.Options{}, usagef("parsing --plan-pods: no value: want the pods that are planned for, as in --plan-pods 1600")
	case o.plan.ReplicasMax < 1:
		return nightly.Options{}, usagef("parsing --replicas-max %d: want 1 or more", o.plan.ReplicasMax)
	case o.plan.Within < 0:
		return nightly.Options{}, usagef("parsing --rollout-within %s: want a duration, as in 10m", o.plan.Within)
	}
	if !f.Changed("out") {
		if err := f.Set("out", "scaler-nights"); err != nil {
			return nightly.Options{}, usageError{err}
		}
	}
	if err := o.complete(cmd); err != nil { // a ladder of a cluster of its own: each run is one in the cluster
		return nightly.Options{}, err
	}
	spec := &o.ladder.Spec
	if err := o.existing.complete(f, spec); err != nil {
		return nightly.Options{}, err
	}
	spec.NoCalibrate = true
	plan := o.plan
	plan.Known, plan.Headroom = knownLimits(), 0.3
	options := nightly.Options{Ladder: o.ladder, Plan: plan, Keep: o.keep}
	if err := options.Validate(); err != nil {
		return nightly.Options{}, usageError{err}
	}
	return options, nil
}
