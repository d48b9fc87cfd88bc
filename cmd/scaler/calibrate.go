package main

import (
	"os"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/report"
)

type calibrateOptions struct {
	spec   experiment.CalibrateSpec
	output string
}

func newCalibrateCommand(s streams) *cobra.Command {
	o := calibrateOptions{spec: experiment.DefaultCalibrateSpec()}
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure the instrument itself, against a control plane that costs next to nothing",
		Long: `Starts the reference control plane as a process of its own, with no cluster
behind it, and measures what scaler's figures read against it: push and
certificate latency, processor time, and memory of each sidecar. Whatever a
rollout measures holds that much of scaler itself.

The result is kept in the cache folder for this machine and this scaler, and is
part of every record (instrument.floor). A rollout makes it where it is missing.

--delay and --drop make the control plane late, and lossy, by a known amount:
the latencies must move by just that, and as many must be lost. Such a
calibration is not kept.`,
		Example: `  # 100, 1000 and 5000 sidecars
  scaler calibrate -o json

  # does a delay of 50 ms show as 50 ms, and are 5 % lost when 5 % are dropped?
  scaler calibrate --sidecars 100
  scaler calibrate --sidecars 100 --delay 50ms --drop 0.05 --timeout 2s`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.spec.Sidecars, "sidecars", o.spec.Sidecars, "numbers of sidecars to measure with")
	f.IntVar(&o.spec.Services, "services", o.spec.Services, "services that every sidecar is configured for, no more than sidecars")
	f.StringVar(&o.spec.XDS, "xds", o.spec.XDS, "variant of xDS that sidecars speak: delta or sotw")
	f.IntVar(&o.spec.Changes, "changes", o.spec.Changes, "changes of each kind that are followed to every sidecar")
	f.DurationVar(&o.spec.Delay, "delay", 0, "have the control plane hold back every push for so long")
	f.Float64Var(&o.spec.Drop, "drop", 0, "share of the pushes, 0 to 1, that the control plane is not to send")
	f.DurationVar(&o.spec.Timeout, "timeout", o.spec.Timeout, "time, beyond --delay, after which a push counts as lost")
	f.DurationVar(&o.spec.Hold, "hold", o.spec.Hold, "how long nothing is done, to measure what holding the sidecars takes")
	f.StringVar(&o.spec.Programs.CacheDir, "cache-dir", os.Getenv("SCALER_CACHE_DIR"), "folder that keeps the calibration ($SCALER_CACHE_DIR; default: scaler in your cache folder)")
	f.StringVarP(&o.output, "output", "o", "table", "format: table, json, yaml or markdown")
	for flag, values := range map[string][]string{"xds": {"delta", "sotw"}, "output": report.Formats} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

func (o *calibrateOptions) run(cmd *cobra.Command, s streams) error {
	if err := parseOutput(o.output, report.Formats...); err != nil {
		return err
	}
	if err := o.spec.Validate(); err != nil {
		return usagef("%w", err)
	}
	var err error
	if o.spec.State, err = stateDir(); err != nil {
		return err
	}
	c, err := experiment.Calibrate(cmd.Context(), o.spec, progress(s))
	if err != nil {
		return err
	}
	return report.PrintCalibration(s.out, o.output, &c)
}
