package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/pkg/calibrate"
	"scaler.mesh/scaler/pkg/fidelity"
	"scaler.mesh/scaler/pkg/output"
	"scaler.mesh/scaler/pkg/report"
)

type calibrateOptions struct {
	spec     calibrate.Spec
	faithful fidelity.Spec
	fidelity bool
	output   string
}

func newCalibrateCommand(s streams) *cobra.Command {
	o := calibrateOptions{spec: calibrate.DefaultSpec(), faithful: fidelity.DefaultSpec()}
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
calibration is not kept.

--fidelity compares a simulated sidecar with a real one instead: an Envoy with
Istio's agent, as two pods of one workload on istiod. Both are seen by one proxy
between them and istiod, for each knob and each mode: what they say of themselves,
the requests that they send, what they hold, and when, at the start, while the
mesh changes, and after their streams were broken. Times are held to differ only
where rank-sum tests of all starts establish it. It ends with 3 if they differ
in a way that is not known and explained.`,
		Example: `  # 100, 1000 and 5000 sidecars
  scaler calibrate -o json

  # does a delay of 50 ms show as 50 ms, and are 5 % lost when 5 % are dropped?
  scaler calibrate --sidecars 100
  scaler calibrate --sidecars 100 --delay 50ms --drop 0.05 --timeout 2s

  # is a simulated sidecar what it simulates?
  scaler calibrate --fidelity --envoy /usr/bin/envoy`,
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
	f.BoolVar(&o.fidelity, "fidelity", false, "compare a simulated sidecar with a real Envoy")
	f.StringSliceVar(&o.faithful.Cases, "cases", o.faithful.Cases, "with --fidelity: modes, and knobs alone, to compare under")
	f.IntVar(&o.faithful.Starts, "starts", o.faithful.Starts, "with --fidelity: how often each sidecar is started, for each case")
	f.Uint64Var(&o.faithful.Seed, "seed", o.faithful.Seed, "with --fidelity: decides the changes of the mesh; --changes is their number, 200 if not set")
	f.StringVar(&o.faithful.Programs.Envoy, "envoy", "", "with --fidelity: the Envoy to compare with (default: that in PATH, or the component's)")
	f.StringVar(&o.faithful.Programs.BinDir, "bin-dir", os.Getenv("SCALER_BIN_DIR"), "with --fidelity: folder of ready programs ($SCALER_BIN_DIR)")
	f.StringVar(&o.spec.Programs.CacheDir, "cache-dir", os.Getenv("SCALER_CACHE_DIR"), "folder that keeps the calibration ($SCALER_CACHE_DIR; default: scaler in your cache folder)")
	f.StringVarP(&o.output, "output", "o", "table", "format: table, json, yaml or markdown")
	for flag, values := range map[string][]string{"xds": {"delta", "sotw"}, "output": output.Formats} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

func (o *calibrateOptions) run(cmd *cobra.Command, s streams) error {
	if err := parseOutput(o.output, output.Formats...); err != nil {
		return err
	}
	if o.fidelity {
		return o.runFidelity(cmd, s)
	}
	for _, flag := range fidelityFlags {
		if cmd.Flags().Changed(flag) {
			return usagef("parsing --%s %q: want none without --fidelity", flag, cmd.Flags().Lookup(flag).Value)
		}
	}
	if err := o.spec.Validate(); err != nil {
		return usagef("%w", err)
	}
	var err error
	if o.spec.State, err = stateDir(); err != nil {
		return err
	}
	c, err := calibrate.Run(cmd.Context(), o.spec, progress(s))
	if err != nil {
		return err
	}
	return report.PrintCalibration(s.out, o.output, &c)
}

// fidelityFlags mean something with --fidelity alone, floorFlags without it.
var (
	fidelityFlags = []string{"cases", "starts", "seed", "envoy"}
	floorFlags    = []string{"sidecars", "services", "xds", "delay", "drop", "timeout", "hold"}
)

// errUnfaithful ends a comparison that found what nobody can explain.
var errUnfaithful = errors.New("the simulated sidecar differs from the real one")

func (o *calibrateOptions) runFidelity(cmd *cobra.Command, s streams) error {
	for _, flag := range floorFlags {
		if cmd.Flags().Changed(flag) {
			return usagef("parsing --%s %q: want none with --fidelity", flag, cmd.Flags().Lookup(flag).Value)
		}
	}
	if cmd.Flags().Changed("changes") {
		o.faithful.Changes = o.spec.Changes
	}
	if err := o.faithful.Validate(); err != nil {
		return usagef("%w", err)
	}
	o.faithful.Programs.CacheDir = o.spec.Programs.CacheDir
	var err error
	if o.faithful.State, err = stateDir(); err != nil {
		return err
	}
	f, err := fidelity.Run(cmd.Context(), o.faithful, progress(s))
	if err != nil && len(f.Cases) == 0 {
		return err
	}
	if err := errors.Join(err, report.PrintFidelity(s.out, o.output, &f)); err != nil {
		return err
	}
	if found := len(f.Unexplained()); found > 0 {
		return fmt.Errorf("%w in %d ways that are not explained", errUnfaithful, found)
	}
	return nil
}
