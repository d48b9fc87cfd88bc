package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/series/sweep"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
)

type rolloutOptions struct {
	ladder run.Ladder
	sizes  sizes
	texts  rolloutTexts
	output string

	// of the command rollout alone
	sweep    bool // --knob-sweep
	existing existingOptions
}

// sweepRepeats is how many runs of each part a knob sweep has unless --repeats says otherwise.
const sweepRepeats = 4

func newRolloutCommand(s streams) *cobra.Command {
	o := rolloutOptions{ladder: run.Ladder{Spec: run.DefaultSpec()}, texts: rolloutTexts{dilation: "auto"}}
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Roll out a mesh against a real control plane and measure what it needs",
		Long: `Rollout starts a cluster with fake nodes and a control plane, and rolls out a mesh.
Every pod gets a simulated sidecar that behaves toward the control plane like a
real proxy. Measured are the control plane's cores and memory during the rollout
and in steady state, and the time until every sidecar has its configuration and
its certificate. A table goes to stdout and the record to --out. Everything that
was started is stopped at the end.

Where the control plane or scaler would wait for the processors of this machine, time
is slowed down, and the machine stands for a larger one. A trial, a rollout of the same
size, chooses by how much, once for each kind of rollout. --dilate 1 prevents that.

The first run takes the programs that it needs from released images or builds
them, which takes about a quarter of an hour on two cores; see 'scaler components'.`,
		Example: `  # 200 pods at once, permissive, against istiod
  scaler rollout --pods 200

  # a larger mesh, a short steady phase, figures as JSON
  scaler rollout --pods 400 --steady 20s -o json

  # without a trial: this machine as it is
  scaler rollout --pods 200 --dilate 1

  # how the need grows with size and mode: eight runs
  scaler rollout --pods 200,400,800,1600 --mode both --probes 0

  # recovery after the control plane was killed
  scaler rollout --pods 200 --fault kill-control-plane@steady

  # one knob alone: sidecars know only the services that they call
  scaler rollout --pods 200 --scope declared

  # sidecars of 200 pods against an ADS server that runs already
  scaler rollout --pods 200 --control-plane xds://127.0.0.1:18000 --plaintext

  # what each part of a typical mesh costs the control plane: pairs of runs in turns
  scaler rollout --pods 400 --profile typical --knob-sweep

  # in your cluster, against its control plane: first what would be created, then the run
  scaler rollout --pods 200 --context staging --dry-run
  scaler rollout --pods 200 --context staging

  # keep the cluster running afterwards
  scaler rollout --pods 50 --keep`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	o.addFlags(cmd)
	o.existing.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.sweep, "knob-sweep", false, "price each part of the profile: runs of the plain mesh and of the mesh with that part alone, in turns, --repeats of each (default 4); knobs.json in --out has the result, and the same command resumes it")
	return cmd
}

// addFlags adds all flags of a rollout.
func (o *rolloutOptions) addFlags(cmd *cobra.Command) {
	spec := &o.ladder.Spec
	f := cmd.Flags()
	o.addLadderFlags(f)
	f.IntVar(&spec.Topology.Services, "services", 0, "number of services (default one for every 10 pods)")
	f.IntVar(&spec.Topology.Namespaces, "namespaces", 0, "number of namespaces (default one for every 50 services)")
	f.StringVar(&spec.Topology.Shape, "topology", spec.Topology.Shape, "call graph: star, layers or random")
	f.IntVar(&spec.Topology.FanOut, "fanout", spec.Topology.FanOut, "number of services that each service calls")
	f.Uint64Var(&spec.Topology.Seed, "seed", spec.Topology.Seed, "seed of the call graph")
	f.StringVar(&spec.Own.MTLS, "mtls", "", "knob, overrides --mode: whether plaintext is refused, permissive or strict")
	f.StringVar(&spec.Own.Scope, "scope", "", "knob, overrides --mode: what each sidecar is configured for, all or declared (the services that its workload calls)")
	f.StringVar(&spec.Own.Authz, "authz", "", "knob, overrides --mode: authorization policies, none or declared (only declared calls are allowed)")
	f.StringVar(&spec.ControlPlane, "control-plane", spec.ControlPlane, "control plane under test: "+controlplane.Choices(drivers.All()))
	f.StringVar(&spec.ProxyVersion, "proxy-version", "", "version of Istio that simulated sidecars report, as in 1.29.1 (default that of the control plane)")
	f.StringVar(&spec.XDS, "xds", spec.XDS, "xDS variant of the sidecars: delta or sotw, as far as the control plane speaks them")
	f.DurationVar(&spec.Baseline, "baseline", spec.Baseline, "length of the baseline phase: control plane without a mesh")
	f.DurationVar(&spec.Settle, "settle", spec.Settle, "time between rollout and steady; no figure is taken")
	f.DurationVar(&spec.Steady, "steady", spec.Steady, "length of the steady phase, without changes")
	f.DurationVar(&spec.ConvergeTimeout, "converge-timeout", spec.ConvergeTimeout, "time limit for convergence; exit code 3 if it passes")
	f.IntVar(&spec.Workers, "workers", spec.Workers, "processes that run the simulated sidecars: scaler itself, and children of it; with --worker-image pods")
	f.IntVar(&spec.Probes, "probes", spec.Probes, "changes of each kind that are followed to the sidecars after steady; 0 for none")
	f.BoolVar(&spec.CertificateStorm, "certificate-storm", false, "make all sidecars request a new certificate at once, after the probes")
	f.BoolVar(&spec.NoCalibrate, "no-calibrate", false, "do not measure scaler's floor first if it is unknown; see 'scaler calibrate'")
	f.StringVar(&spec.Out, "out", "", "folder for the record (default ./scaler-runs/DATE-TIME)")
	f.BoolVar(&spec.Keep, "keep", false, "keep the cluster and the control plane running")
	o.addProfileFlags(f)
	o.addLoadFlags(f)
	o.addResourceFlags(f)
	o.addRemoteFlags(f)
	addComponentFlags(f, &spec.Programs)
	addIstioFlag(f, &spec.Programs)
	addEnvoyFlag(f, &spec.Programs)
	f.StringVarP(&o.output, "output", "o", "table", "format of the figures: table, json, yaml or markdown")
	for flag, values := range map[string][]string{
		"mode":     append(drivers.Default().ModeNames(), bothModes),
		"mtls":     {"permissive", "strict"},
		"scope":    {"all", "declared"},
		"authz":    {"none", "declared"},
		"profile":  topology.ProfileNames(),
		"topology": {topology.Star, topology.Layers, topology.Random},
		"xds":      {"delta", "sotw"},
		"output":   output.Formats,
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

func (o *rolloutOptions) run(cmd *cobra.Command, s streams) error {
	if err := o.existing.complete(cmd.Flags(), &o.ladder.Spec); err != nil {
		return err
	}
	if o.sweep {
		return o.sweepKnobs(cmd, s)
	}
	if err := o.complete(cmd); err != nil {
		return err
	}
	if o.ladder.Spec.Existing != nil {
		if goOn, err := o.existing.prepare(cmd, s, o.ladder.Runs()[0]); err != nil || !goOn {
			return err
		}
	}
	collectOften()
	shown := newProgress(s.err)
	defer shown.close()
	runs, err := o.ladder.Run(cmd.Context(), run.Progress{Say: shown.say, Status: shown.status})
	shown.close()
	for _, run := range runs {
		fmt.Fprintln(s.err, "record:", run.Dir)
	}
	// What was measured is printed however it ended: the records say so.
	if measured := slices.DeleteFunc(runs, func(r record.Run) bool { return len(r.Phases) == 0 }); len(measured) > 0 {
		if printErr := report.Print(s.out, o.output, measured); printErr != nil {
			return errors.Join(err, printErr)
		}
	}
	if errors.Is(err, experiment.ErrUnconverged) {
		return fmt.Errorf("%w: %w", errMissed, err)
	}
	return err
}

// sweepKnobs prices each part of the profile. Its phases are shorter by default, since there
// are many runs.
func (o *rolloutOptions) sweepKnobs(cmd *cobra.Command, s streams) error {
	if o.ladder.Spec.Existing != nil {
		return usagef("parsing --knob-sweep: want none with --context, where profiles are not supported yet")
	}
	for flag, value := range map[string]string{"baseline": "2s", "settle": "5s", "steady": "20s", "probes": "0", "dilate": "1"} {
		if !cmd.Flags().Changed(flag) {
			if err := cmd.Flags().Set(flag, value); err != nil {
				return usageError{err}
			}
		}
	}
	if !cmd.Flags().Changed("repeats") {
		o.ladder.Repeats = sweepRepeats
	}
	spec, err := o.oneSpec(cmd)
	if err != nil {
		return err
	}
	options, err := sweep.Knobs(spec)
	if err != nil {
		return usageError{err}
	}
	options.Repeats = o.ladder.Repeats
	if err := options.Validate(); err != nil {
		return usageError{err}
	}
	return runSweep(cmd, s, options, o.output)
}

// complete checks every flag before anything is started.
func (o *rolloutOptions) complete(cmd *cobra.Command) error {
	if err := parseOutput(o.output, output.Formats...); err != nil {
		return err
	}
	for _, name := range []string{"services", "namespaces", "fanout"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "0" {
			return usagef("parsing --%s 0: want 1 or more", name)
		}
	}
	for _, name := range []string{"mtls", "scope", "authz"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return usagef("parsing --%s \"\": want a value; without the flag the mode decides", name)
		}
	}
	if err := o.parseTexts(cmd.Flags()); err != nil {
		return err
	}
	if err := o.ladder.Validate(); err != nil {
		return usagef("%w", err)
	}
	out, err := outFolder(cmd, o.ladder.Spec.Out)
	if err != nil {
		return err
	}
	o.ladder.Spec.Out = out
	state, err := stateDir()
	if err != nil {
		return err
	}
	o.ladder.Spec.State = state
	return nil
}

// outFolder is the folder that --out names or, without it, one named by the time.
func outFolder(cmd *cobra.Command, out string) (string, error) {
	if out == "" && cmd.Flags().Changed("out") {
		return "", usagef(`parsing --out "": want a folder`)
	}
	if out == "" {
		out = filepath.Join("scaler-runs", strings.ReplaceAll(time.Now().Format("20060102-150405.000"), ".", "-"))
	}
	return out, nil
}
