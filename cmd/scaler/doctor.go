package main

import (
	"errors"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/controlplane/drivers"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/rollout"
)

const doctorPodsLimit = 100000

func newDoctorCommand(s streams) *cobra.Command {
	var (
		o      component.Options
		pods   int
		real   int
		out    string
		output string
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what this machine lacks for a run, and how to fix it",
		Long: `Doctor checks programs, open files, ports, memory, processors and disk space, and
prints a fix for each problem. It starts nothing. The exit code is 1 if a run
would fail.`,
		Example: `  # for a run of 1600 pods
  scaler doctor --pods 1600

  # including what real sidecars need
  scaler doctor --real-sidecars 2`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := parseOutput(output, "table", "json", "yaml"); err != nil {
				return err
			}
			if pods < 1 || pods > doctorPodsLimit {
				return usagef("parsing --pods %d: want 1 to %d", pods, doctorPodsLimit)
			}
			if real < 0 || real > pods {
				return usagef("parsing --real-sidecars %d: want 0 to %d, which is how many pods there are", real, pods)
			}
			if out == "" {
				return usagef(`parsing --out "": want a folder`)
			}
			state, err := stateDir()
			if err != nil {
				return err
			}
			req, err := rollout.Requirements(cmd.Context(), o, drivers.Default(), pods, out, state)
			if err != nil {
				return err
			}
			if req.SidecarPrograms, err = experiment.SidecarPrograms(cmd.Context(), o, drivers.Default()); err != nil {
				return err
			}
			req.RealSidecars = real
			results := doctor.Check(cmd.Context(), req)
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			err = printList(s.out, output, "CheckList", results, []string{"CHECK", "STATUS", "DETAIL", "FIX"}, func(r doctor.Result) []string {
				return []string{r.Name, string(r.Status), r.Detail, r.Fix}
			})
			if err != nil {
				return err
			}
			if doctor.Error(results) != nil {
				return errors.New("this machine lacks something for such a run: see the checks that failed")
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&pods, "pods", 200, "number of pods of the planned run")
	cmd.Flags().StringVar(&out, "out", "scaler-runs", "folder for the record of the planned run")
	cmd.Flags().IntVar(&real, "real-sidecars", 0, "number of pods with a real sidecar")
	addComponentFlags(cmd.Flags(), &o)
	addIstioFlag(cmd.Flags(), &o)
	addEnvoyFlag(cmd.Flags(), &o)
	addListOutputFlag(cmd.Flags(), &output)
	return cmd
}
