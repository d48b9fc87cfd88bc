package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

type upgradeOptions struct{ rolloutOptions }

func newUpgradeCommand(s streams) *cobra.Command {
	var o upgradeOptions
	cmd := &cobra.Command{
		Use:   "upgrade --from VERSION --to VERSION",
		Short: "Upgrade a mesh from one version of Istio to another in waves, and measure what it needs",
		Long: `Upgrade rolls out a mesh on one version of Istio, as 'scaler rollout' does. Then it starts
another version next to it, as a second revision, moves the workloads in waves by
changing the revision's label of their pods, which restarts them, and removes the first
version. It measures, for each stage and each of the two istiods, cores, memory,
responses, the latencies of certificates, configuration and endpoints, and endpoints that
sidecars still held after their pods were gone. The result is the amount of resources that
the cluster must have free during the upgrade.

A wave is a share of the pods with sidecars, those of earlier waves included. Workloads are
moved as a whole, all of a wave at once unless --restart-rate is given; each is a rolling
update of its Deployment. A wave is over when every proxy has converged. With --dataplane
ambient or mixed, the ztunnels are the first wave, one node after another, and the waypoints
the second.

With --mesh the first version is the captured one, unless --from is given. Pods that a newer
revision serves in the captured mesh already are the first wave. After it, and after ztunnels
and waypoints, namespaces move by their own label, then those of each tag at once, as many as
a wave needs for its share. Each version is one istiod, however many replicas the captured one
has.

With --in-place there are no revisions: the new istiod takes the place of the old one as in a
rolling update of its Deployment, all proxies connect to it, and then all workloads,
ztunnels and waypoints are restarted.`,
		Example: `  # three waves
  scaler upgrade --from 1.29.1 --to 1.31.0 --pods 800

  # two waves, five pods a second
  scaler upgrade --from 1.29.1 --to 1.31.0 --canary 50%,100% --restart-rate 5/s

  # without revisions
  scaler upgrade --from 1.29.1 --to 1.31.0 --in-place --restart-rate 5/s

  # ztunnels and waypoints
  scaler upgrade --from 1.29.1 --to 1.31.0 --dataplane ambient --waypoints namespace

  # back to the first version after the first wave
  scaler upgrade --from 1.29.1 --to 1.31.0 --rollback-at 1

  # the same version with another setting
  scaler upgrade --from 1.31.0 --to 1.31.0 --to-env PILOT_PUSH_THROTTLE=10`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	defaults := scenario.Default()
	defaults.Phases.Steady, defaults.Load.Probes = seconds(20), 0
	o.addFlags(cmd, s, scenario.Upgrades, defaults)
	return cmd
}

func (o *upgradeOptions) run(cmd *cobra.Command, s streams) error {
	spec, done, err := o.oneSpec(cmd, s, func(d *scenario.Document) error {
		switch up := d.Scenario.ControlPlane; {
		case up.Version == "" && d.Scenario.Mesh.File == "": // a captured mesh may have one
			return scenario.Refuse("controlPlane.version", nil, "the version that the mesh is rolled out with, as in --from 1.29.1")
		case up.Upgrade.To == "":
			return scenario.Refuse("controlPlane.upgrade.to", nil, "the version that it is upgraded to, as in --to 1.31.0")
		}
		return nil
	})
	if err != nil || done {
		return err
	}
	var measured record.Run
	err = withProgress(s, func(p run.Progress) (err error) {
		measured, err = run.RunOne(cmd.Context(), spec, p)
		return err
	})
	if measured.Dir == "" {
		return misused(err)
	}
	fmt.Fprintln(s.err, "record:", measured.Dir)
	if len(measured.Phases) > 0 {
		if printErr := report.Print(s.out, o.output, []record.Run{measured}); printErr != nil {
			return errors.Join(err, printErr)
		}
	}
	return notConverged(err)
}
