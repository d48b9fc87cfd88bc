package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/scenario"
)

const doctorPodsLimit = 100000

func newDoctorCommand(s streams) *cobra.Command {
	var (
		o      component.Options
		pods   int
		real   int
		out    string
		output string
		where  scenario.Place
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what this machine, or a cluster, lacks for a run, and how to fix it",
		Long: `Doctor checks programs, open files, ports, memory, processors and disk space, and
prints a fix for each problem. It starts nothing. The exit code is 1 if a run
would fail.

With --context it checks instead a cluster for 'scaler rollout --context': the API
server, the rights of the context's user, other nodes and pods, the control plane, and
the connection to it. It creates nothing.`,
		Example: `  # for a run of 1600 pods
  scaler doctor --pods 1600

  # including the requirements of real sidecars
  scaler doctor --real-sidecars 2

  # what a cluster lacks
  scaler doctor --context staging`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if place, err := checkPlace(cmd.Flags(), where); err != nil {
				return err
			} else if place != nil {
				return clusterDoctor(cmd.Context(), s, place.Target, output)
			}
			if pods < 1 || pods > doctorPodsLimit {
				return usagef("--pods: got %d, want 1 to %d", pods, doctorPodsLimit)
			}
			if real < 0 || real > pods {
				return usagef("--real-sidecars: got %d, want 0 to %d, which is how many pods there are", real, pods)
			}
			if out == "" {
				return usagef(`--out: got "", want a folder`)
			}
			state, err := stateDir()
			if err != nil {
				return err
			}
			req, err := run.Requirements(cmd.Context(), o, drivers.Default(), pods, out, state)
			if err != nil {
				return err
			}
			if req.SidecarPrograms, err = run.SidecarPrograms(cmd.Context(), o, drivers.Default()); err != nil {
				return err
			}
			req.RealSidecars = real
			results := doctor.Check(cmd.Context(), req)
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			return printChecks(s, output, results, "this machine")
		},
	}
	cmd.Flags().IntVar(&pods, "pods", 200, "number of pods of the planned run")
	cmd.Flags().StringVar(&out, "out", "scaler-runs", "folder for the record of the planned run")
	cmd.Flags().IntVar(&real, "real-sidecars", 0, "number of pods with a real sidecar")
	addPlaceFlags(cmd.Flags(), &where, "check that cluster, in place of this machine")
	addComponentFlags(cmd.Flags(), &o)
	addIstioFlag(cmd.Flags(), &o)
	addEnvoyFlag(cmd.Flags(), &o)
	addListOutput(cmd, &output)
	return cmd
}

// printChecks prints results, and fails when one of them does.
func printChecks(s streams, form string, results []doctor.Result, of string) error {
	err := printList(s.out, form, "CheckList", results, []string{"CHECK", "STATUS", "DETAIL", "FIX"}, func(r doctor.Result) []string {
		return []string{r.Name, string(r.Status), output.Plain(r.Detail), output.Plain(r.Fix)}
	})
	if err != nil {
		return err
	}
	if doctor.Error(results) != nil {
		return errors.New(of + " lacks something for such a run: see the checks that failed")
	}
	return nil
}

// clusterDoctor checks a cluster.
func clusterDoctor(ctx context.Context, s streams, target attach.Target, output string) error {
	spec := run.DefaultSpec()
	driver, err := spec.Driver()
	if err != nil {
		return err
	}
	results := attach.Doctor(ctx, driver, target, spec.Knobs())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return printChecks(s, output, results, "cluster "+target.Context)
}
