package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/run/upgrade"
	"scaler.mesh/scaler/pkg/record"
)

type upgradeOptions struct {
	rolloutOptions
	plan   upgrade.Plan
	canary string
	rate   string
}

func newUpgradeCommand(s streams) *cobra.Command {
	o := upgradeOptions{rolloutOptions: rolloutOptions{ladder: run.Ladder{Spec: run.DefaultSpec()}}}
	spec := &o.ladder.Spec
	spec.Steady, spec.Probes = 20*time.Second, 0
	cmd := &cobra.Command{
		Use:   "upgrade --from VERSION --to VERSION",
		Short: "Upgrade a mesh from one version of Istio to another in waves, and measure what it needs",
		Long: `Upgrade rolls out a mesh on one version of Istio, as 'scaler rollout' does. Then it starts
another version next to it, as a second revision, moves the workloads in waves by
changing the revision's label of their pods, which restarts them, and removes the first
version. Measured are, for each stage and each of the two istiods, cores, memory,
responses, the latencies of certificates, configuration and endpoints, and endpoints that
sidecars still held after their pods were gone. The result is how much the cluster must have
free during the upgrade.

A wave is a share of the pods, those of earlier waves included. Workloads are moved as a
whole, all of a wave at once unless --restart-rate is given; each is a rolling update of its
Deployment. A wave is over when every sidecar has converged.

With --in-place there are no revisions: the new istiod takes the place of the old one as in a
rolling update of its Deployment, all sidecars connect to it, and then all workloads are
restarted.`,
		Example: `  # three waves
  scaler upgrade --from 1.29.1 --to 1.31.0 --pods 800

  # two waves, five pods a second
  scaler upgrade --from 1.29.1 --to 1.31.0 --canary 50%,100% --restart-rate 5/s

  # without revisions
  scaler upgrade --from 1.29.1 --to 1.31.0 --in-place --restart-rate 5/s

  # back to the first version after the first wave
  scaler upgrade --from 1.29.1 --to 1.31.0 --rollback-at 1

  # the same version with another setting
  scaler upgrade --from 1.31.0 --to 1.31.0 --to-env PILOT_PUSH_THROTTLE=10`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.plan.From, "from", "", "`VERSION` of Istio that the mesh is rolled out with, as in 1.29.1 or 1.29")
	f.StringVar(&o.plan.To, "to", "", "`VERSION` of Istio that it is upgraded to")
	f.StringVar(&o.canary, "canary", "10%,50%,100%", "shares of the pods that are on the new version after each wave, ascending to 100%")
	f.BoolVar(&o.plan.InPlace, "in-place", false, "instead of waves, put the new version in the place of the old one, and restart all workloads then")
	f.IntVar(&o.plan.RollbackAt, "rollback-at", 0, "move everything back after this wave, and remove the new version (default 0, never)")
	f.StringVar(&o.rate, "restart-rate", "", "restart the workloads of a wave one after another, so many pods a second, as in 5/s (default all at once)")
	f.DurationVar(&o.plan.Pause, "pause", 15*time.Second, "time for which both versions run before the first wave, and length of the stage after the upgrade")
	f.StringArrayVar(&o.plan.ToEnv, "to-env", nil, "environment variable NAME=VALUE of the new version alone, repeatable")
	for _, flag := range upgradeHas {
		_ = f.MarkHidden(flag)
	}
	return cmd
}

// upgradeHas are the flags of a rollout that an upgrade decides itself or does not go with.
var upgradeHas = []string{
	"repeats", "istio-version", "keep", "real-sidecars", "control-plane", "change", "change-duration", "churn", "cycle", "fault", "certificate-storm", "bin-dir", "proxy-version",
	"plaintext", "tls-ca", "tls-cert", "tls-key", "token-file", "server-name", "node-id", "node-cluster", "metadata", "expect",
}

func (o *upgradeOptions) run(cmd *cobra.Command, s streams) error {
	if err := o.parse(cmd); err != nil {
		return err
	}
	collectOften()
	shown := newProgress(s.err)
	defer shown.close()
	run, err := run.RunOne(cmd.Context(), o.ladder.Spec, run.Progress{Say: shown.say, Status: shown.status})
	shown.close()
	if run.Dir != "" {
		fmt.Fprintln(s.err, "record:", run.Dir)
	}
	if len(run.Phases) > 0 {
		if printErr := report.Print(s.out, o.output, []record.Run{run}); printErr != nil {
			return errors.Join(err, printErr)
		}
	}
	if errors.Is(err, experiment.ErrUnconverged) {
		return fmt.Errorf("%w: %w", errMissed, err)
	}
	return err
}

// parse checks every flag before anything is started.
func (o *upgradeOptions) parse(cmd *cobra.Command) (err error) {
	for _, flag := range upgradeHas {
		if given := cmd.Flags().Lookup(flag); given != nil && given.Changed {
			return usagef("parsing --%s %s: want it with 'scaler rollout', an upgrade has none", flag, given.Value)
		}
	}
	if !o.plan.InPlace {
		o.plan.Waves, err = upgrade.ParseCanary(o.canary)
	} else if cmd.Flags().Changed("canary") {
		err = fmt.Errorf("parsing --canary %q: want none with --in-place, which has no waves", o.canary)
	}
	if err != nil {
		return usagef("%w", err)
	}
	if o.rate != "" {
		if o.plan.Rate, err = upgrade.ParseRate(o.rate); err != nil {
			return usagef("%w", err)
		}
	}
	if o.plan.Pause < time.Second || o.plan.Pause > time.Hour {
		return usagef("parsing --pause %s: want a duration from 1s to 1h", o.plan.Pause)
	}
	if len(o.sizes) != 1 || o.texts.mode == bothModes {
		return usagef("parsing --pods %s, --mode %s: want one size and one mode", o.sizes.String(), o.texts.mode)
	}
	o.plan.ToEnv = withValues(o.plan.ToEnv)
	o.ladder.Spec.Upgrade = &o.plan
	if err := o.complete(cmd); err != nil {
		return err
	}
	if len(o.ladder.Dataplanes) > 1 {
		return usagef("parsing --dataplane %q: want one", o.texts.dataplane)
	}
	o.ladder.Spec.Topology.Pods, o.ladder.Spec.Mode = o.ladder.Pods[0], o.ladder.Modes[0]
	return nil
}
