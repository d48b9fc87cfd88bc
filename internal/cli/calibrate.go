package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/calibrate"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/fidelity"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/speed"
	"scaler.mesh/scaler/pkg/record"
)

type calibrateOptions struct {
	spec     calibrate.Spec
	faithful fidelity.Spec
	fidelity bool
	speed    bool
	output   string
}

func newCalibrateCommand(s streams) *cobra.Command {
	o := calibrateOptions{spec: calibrate.DefaultSpec(), faithful: fidelity.DefaultSpec()}
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure scaler's own cost and lateness, or compare simulated with real proxies",
		Long: `Calibrate starts the reference control plane as a separate process, without a
cluster, and measures scaler's figures against it: push and certificate latency,
processor time, and memory per sidecar. Every figure of a rollout includes that
much of scaler itself.

The result is kept in the cache folder for this machine and this version of
scaler, and is part of every record (instrument.floor). A rollout measures it if
it is missing.

--delay and --drop make the control plane delay or drop pushes by a known amount:
latencies must grow by exactly that amount, and that many pushes must be lost.
Such a calibration is not kept.

--speed only measures the speed of a processor of this machine, for three seconds: by a
fixed piece of work that resembles a control plane's, in units of a reference processor.
Each rollout measures it before the run, and briefly each second.

--fidelity compares a simulated sidecar with a real one: an Envoy with Istio's
agent. They belong to two pods of one workload on istiod and connect through one
recording proxy. For each knob and each mode it compares the node metadata, the
requests, the resources held and the times: at the start, while the mesh changes,
and after the streams were broken. Times count as different only if rank-sum
tests over all starts establish it. The exit code is 3 if there is a difference
that is not known and explained.

--fidelity --ztunnel PATH compares a simulated ztunnel with a real one, the program
at PATH: two pods of ztunnel on one node of a mesh in ambient mode. It also compares
their requests for certificates. The program runs in a network namespace of its own,
which needs root, as by unshare --user --map-root-user.`,
		Example: `  # 100, 1000 and 5000 sidecars
  scaler calibrate -o json

  # check the instrument: a delay of 50 ms must read as 50 ms, 5 % dropped as 5 % lost
  scaler calibrate --sidecars 100
  scaler calibrate --sidecars 100 --delay 50ms --drop 0.05 --timeout 2s

  # the speed of this machine
  scaler calibrate --speed

  # compare a simulated sidecar with a real one
  scaler calibrate --fidelity --envoy /usr/bin/envoy

  # compare a simulated ztunnel with a real one
  scaler calibrate --fidelity --ztunnel /usr/local/bin/ztunnel`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.spec.Sidecars, "sidecars", o.spec.Sidecars, "numbers of sidecars, one measurement each")
	f.IntVar(&o.spec.Services, "services", o.spec.Services, "services that every sidecar is configured for, at most as many as sidecars")
	f.StringVar(&o.spec.XDS, "xds", o.spec.XDS, "xDS variant of the sidecars: delta or sotw")
	f.IntVar(&o.spec.Changes, "changes", o.spec.Changes, "changes of each kind that are followed to every sidecar")
	f.DurationVar(&o.spec.Delay, "delay", 0, "delay of every push in the control plane")
	f.Float64Var(&o.spec.Drop, "drop", 0, "share of the pushes, 0 to 1, that the control plane drops")
	f.DurationVar(&o.spec.Timeout, "timeout", o.spec.Timeout, "time, beyond --delay, after which a push counts as lost")
	f.DurationVar(&o.spec.Hold, "hold", o.spec.Hold, "length of the idle time in which the cost of holding the sidecars is measured")
	f.BoolVar(&o.speed, "speed", false, "only measure the speed of the machine's processors")
	f.BoolVar(&o.fidelity, "fidelity", false, "compare a simulated sidecar with a real Envoy")
	f.StringSliceVar(&o.faithful.Cases, "cases", o.faithful.Cases, "with --fidelity: modes and single knobs to compare with")
	f.IntVar(&o.faithful.Starts, "starts", o.faithful.Starts, "with --fidelity: starts of each sidecar per case")
	f.Uint64Var(&o.faithful.Seed, "seed", o.faithful.Seed, "with --fidelity: seed of the changes of the mesh; --changes is their number (default 200)")
	f.StringVar(&o.faithful.Programs.Envoy, "envoy", "", "with --fidelity: path of the Envoy to compare with (default: the one in PATH, or the component)")
	f.StringVar(&o.faithful.Ztunnel, "ztunnel", "", "with --fidelity: path of a ztunnel to compare a simulated one with, in place of sidecars")
	f.StringVar(&o.faithful.Programs.BinDir, "bin-dir", os.Getenv("SCALER_BIN_DIR"), "with --fidelity: folder with ready programs ($SCALER_BIN_DIR)")
	f.StringVar(&o.spec.Programs.CacheDir, "cache-dir", os.Getenv("SCALER_CACHE_DIR"), "folder that keeps the calibration ($SCALER_CACHE_DIR; default: scaler in your cache folder)")
	f.StringVarP(&o.output, "output", "o", "table", "format: table, wide, json, yaml or markdown")
	complete(cmd, "xds", []string{"delta", "sotw"})
	complete(cmd, "output", output.Formats)
	return cmd
}

func (o *calibrateOptions) run(cmd *cobra.Command, s streams) error {
	if err := parseOutput(o.output, output.Formats...); err != nil {
		return err
	}
	if o.speed {
		return o.runSpeed(cmd, s)
	}
	if o.fidelity {
		return o.runFidelity(cmd, s)
	}
	if err := refuseFlags(cmd.Flags(), "none without --fidelity", fidelityFlags...); err != nil {
		return err
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
	fidelityFlags = []string{"cases", "starts", "seed", "envoy", "ztunnel"}
	floorFlags    = []string{"sidecars", "services", "xds", "delay", "drop", "timeout", "hold"}
)

// runSpeed measures the speed of the machine.
func (o *calibrateOptions) runSpeed(cmd *cobra.Command, s streams) error {
	if err := refuseFlags(cmd.Flags(), "none with --speed", slices.Concat([]string{"fidelity", "changes"}, fidelityFlags, floorFlags)...); err != nil {
		return err
	}
	measured, err := speed.Measure(cmd.Context())
	if err != nil {
		return err
	}
	return report.PrintSpeed(s.out, o.output, &record.MachineSpeed{
		APIVersion: record.APIVersion, Kind: record.SpeedKind, Schema: record.Schema,
		Scaler: component.ScalerVersion(), Machine: place.Machine(), Speed: measured,
	})
}

// newSpeedCommand does the work of a speed for another scaler, which starts it itself.
func newSpeedCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use: speed.Command + " PAUSE SAMPLES", Short: "Do a fixed piece of work again and again and print the processor time of each sample", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			pause, err := time.ParseDuration(args[0])
			n, numberErr := strconv.Atoi(args[1])
			if err := errors.Join(err, numberErr); err != nil {
				return usagef("parsing %v: %w", args, err)
			}
			return speed.Do(s.out, pause, n)
		},
	}
}

// errUnfaithful ends a comparison that found what nobody can explain.
var errUnfaithful = errors.New("the simulated proxy differs from the real one")

func (o *calibrateOptions) runFidelity(cmd *cobra.Command, s streams) error {
	if err := refuseFlags(cmd.Flags(), "none with --fidelity", floorFlags...); err != nil {
		return err
	}
	if cmd.Flags().Changed("changes") {
		o.faithful.Changes = o.spec.Changes
	}
	if cmd.Flags().Changed("ztunnel") {
		if o.faithful.Ztunnel == "" {
			return usagef("--ztunnel: got %q, want the path of a ztunnel", o.faithful.Ztunnel)
		}
		if cmd.Flags().Changed("envoy") {
			return usagef("--envoy: got %q, want none with --ztunnel", o.faithful.Programs.Envoy)
		}
		if !cmd.Flags().Changed("cases") {
			o.faithful.Cases = fidelity.ZtunnelCases()
		}
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

// readSpeed reads the file of --node-speed, which has what 'scaler calibrate --speed -o json' printed.
func readSpeed(file string) (*record.Speed, error) {
	var s record.MachineSpeed
	if err := record.ReadResult(file, &s); err != nil {
		return nil, usagef("--node-speed: %w", err)
	}
	if s.Kind != record.SpeedKind || s.Speed.Work == "" || !(s.Speed.Speed > 0) {
		return nil, usagef("--node-speed: got %s, want what 'scaler calibrate --speed -o json' prints", file)
	}
	return &s.Speed, nil
}
