package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/latency"
	"scaler.mesh/scaler/internal/output"
)

type latencyOptions struct {
	spec    latency.Spec
	cluster latencyCluster
	rps     string
	chain   string
	output  string
}

func newLatencyCommand(s streams) *cobra.Command {
	o := latencyOptions{spec: latency.DefaultSpec()}
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "Measure the latency that a mesh adds to a request",
		Long: `Latency sends requests to an echo server, at the same rates without a mesh and
with one: client, its sidecar, mutual TLS, the server's sidecar, echo. All of them are
processes on this machine, with a control plane started for them. With --context,
client and servers are pods of a cluster, with the sidecars that it injects.

By default it is an open loop: requests are sent on a fixed schedule, and their
latency counts from when they were due, so a stalled server is visible in every
request that was due meanwhile. With --connections it is a closed loop: each
connection waits for its response before it sends the next request.

The variants alternate in short rounds within each rate. With two or more repeats
every quantile has an interval, and what is added to the variant none is tested. docs/reference/definitions.md says what each figure means.

--preset stands for the flags of a publication. Further flags replace its own, but
not rates, connections, chain and topology.

` + presetHelp(),
		Example: `  # what two sidecars add at three rates
  scaler latency --rps 100,500,1000 --variants none,strict --repeats 3

  # without a mesh: what this machine and scaler itself take
  scaler latency --variants none

  # three tiers: the client, and two tiers of three servers that wait 100 ms each
  scaler latency --rps 300 --chain 100ms,100ms

  # the rates of a publication, once in place of five times
  scaler latency --preset stages --repeats 1 --variants none,strict

  # one client and five servers, 100 to 4000 requests per second
  scaler latency --preset star --servers 5

  # a closed loop of 32, 64 and 128 connections, with fewer requests than published
  scaler latency --preset connections --requests 30000

  # three tiers, and a server that is killed every 10 s
  scaler latency --preset chain

  # a closed loop with a new connection for each request
  scaler latency --connections 32,64,128 --requests 30000 --keepalive=false

  # as root: Linkerd, with a proxy that you have
  scaler latency --control-plane linkerd --proxy ./linkerd2-proxy

  # in a cluster that is there already: on one node and on two
  scaler latency --context staging --image registry.example/scaler:1 --rps 100,1000 --repeats 3

  # errors while a server is killed every 10 s
  scaler latency --rps 100 --duration 60s --kill-server-every 10s -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	f := cmd.Flags()
	f.StringVar(&o.rps, "rps", "100,500,1000", "requests per second; several rates run one after another")
	f.StringVar(&o.spec.Preset, "preset", "", "flags that follow a publication, as in stages: "+strings.Join(latency.PresetNames(), ", "))
	f.IntSliceVar(&o.spec.Connections, "connections", nil, "use a closed loop with this many busy connections; several numbers run one after another")
	f.IntVar(&o.spec.Requests, "requests", o.spec.Requests, "requests per variant and repeat in a closed loop")
	f.StringSliceVar(&o.spec.Variants, "variants", o.spec.Variants, "what is on the path: none, permissive (sidecars), strict (sidecars that refuse plaintext and other callers)"+ofControlPlanes(otherVariants))
	f.StringVar(&o.spec.Arrivals, "arrivals", o.spec.Arrivals, "schedule of an open loop: constant or poisson")
	f.Uint64Var(&o.spec.Seed, "seed", o.spec.Seed, "seed of poisson arrivals")
	f.IntVar(&o.spec.HTTP, "http", o.spec.HTTP, "HTTP version: 1 or 2")
	f.BoolVar(&o.spec.Keepalive, "keepalive", o.spec.Keepalive, "use connections for more than one request")
	f.IntVar(&o.spec.MaxConnections, "max-connections", o.spec.MaxConnections, "maximum number of requests in flight in an open loop; requests beyond it count as not sent")
	f.DurationVar(&o.spec.Timeout, "timeout", o.spec.Timeout, "time after which a request has failed, from when it was due")
	f.StringVar(&o.spec.Topology, "topology", o.spec.Topology, "pair, star (a client and several servers) or chain")
	f.IntVar(&o.spec.Servers, "servers", 0, "number of servers of a star, or per tier of a chain (default 3)")
	f.StringVar(&o.chain, "chain", "", "use a chain; the wait of each tier, as in 100ms,100ms")
	f.DurationVar(&o.spec.KillEvery, "kill-server-every", 0, "kill a server at this interval, restart it at once, and show errors over time")
	f.DurationVar(&o.spec.Duration, "duration", o.spec.Duration, "length per rate, variant and repeat")
	f.IntVar(&o.spec.Rounds, "rounds", o.spec.Rounds, "number of rounds it is divided into; the variants alternate between rounds")
	f.DurationVar(&o.spec.Warmup, "warmup", o.spec.Warmup, "warm-up before each round; its requests do not count")
	f.IntVar(&o.spec.Repeats, "repeats", o.spec.Repeats, "number of repeats, for intervals")
	f.StringVar(&o.spec.ControlPlane, "control-plane", o.spec.ControlPlane, "control plane of the sidecars: "+controlplane.Choices(controlplane.ForLatency(drivers.All())))
	f.StringVar(&o.spec.Proxy, "proxy", "", "`PATH` of the sidecars' program, for a control plane whose proxy scaler does not have"+ofControlPlanes(controlplane.Driver.GivenProxy))
	addComponentFlags(f, &o.spec.Programs)
	addIstioFlag(f, &o.spec.Programs)
	addEnvoyFlag(f, &o.spec.Programs)
	o.cluster.addFlags(f, &o.spec)
	f.StringVar(&o.spec.Out, "out", "", "folder for the record (default ./scaler-runs/DATE-TIME)")
	f.StringVarP(&o.output, "output", "o", "table", "format of the figures: table, json, yaml or markdown")
	for flag, values := range map[string][]string{
		"output": output.Formats, "preset": latency.PresetNames(),
		"arrivals": {string(dataplane.Constant), string(dataplane.Poisson)}, "http": {"1", "2"},
		"topology":      {latency.PairTopology, latency.StarTopology, latency.ChainTopology},
		"variants":      allVariants(),
		"control-plane": controlplane.Values(controlplane.ForLatency(drivers.All())),
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// allVariants are those of any control plane.
func allVariants() []string {
	var all []string
	for _, d := range controlplane.ForLatency(drivers.All()) {
		for _, v := range latency.Variants(d) {
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	return all
}

// ofControlPlanes is what a flag's help adds for control planes: for each, what of returns, unless that is "".
func ofControlPlanes(of func(controlplane.Driver) string) string {
	text := ""
	for _, d := range controlplane.ForLatency(drivers.All()) {
		if own := of(d); own != "" {
			text += "; of " + d.Name + ": " + own
		}
	}
	return text
}

// otherVariants are the variants of a control plane where they are not those of most.
func otherVariants(d controlplane.Driver) string {
	if own := latency.Variants(d); !slices.Equal(own, latency.DefaultSpec().Variants) {
		return strings.Join(own, ", ")
	}
	return ""
}

// presetHelp lists the presets with what they follow.
func presetHelp() string {
	var lines []string
	for _, p := range latency.Presets() {
		lines = append(lines, fmt.Sprintf("  %s: %s\n    %s", p.Name, p.Text(), p.Follows))
	}
	return strings.Join(lines, "\n")
}

// parse makes the spec of the flags.
func (o *latencyOptions) parse(cmd *cobra.Command) (err error) {
	if err := parseOutput(o.output, output.Formats...); err != nil {
		return err
	}
	if cmd.Flags().Changed("preset") {
		if err := latency.ExpandPreset(o.spec.Preset, cmd.Flags().Changed, cmd.Flags().Set); err != nil {
			return fieldError(cmd.Flags(), err)
		}
	}
	if o.spec.RPS, err = latency.ParseRates(o.rps); err != nil {
		return usagef("parsing --rps %q: want requests a second, as in 100,500,1000", o.rps)
	}
	if cmd.Flags().Changed("chain") {
		if o.spec.Chain, err = latency.ParseWaits(o.chain); err != nil {
			return usagef("parsing --chain %q: want how long each tier waits, as in 100ms,100ms", o.chain)
		}
	}
	if o.spec, err = o.spec.Prepare(cmd.Flags().Changed); err != nil {
		return fieldError(cmd.Flags(), err)
	}
	if err := o.cluster.complete(cmd.Flags(), &o.spec); err != nil {
		return err
	}
	if err := o.spec.Validate(); err != nil {
		return fieldError(cmd.Flags(), err)
	}
	if o.spec.Out, err = outFolder(cmd, o.spec.Out); err != nil {
		return err
	}
	o.spec.State, err = stateDir()
	return err
}

func (o *latencyOptions) run(cmd *cobra.Command, s streams) error {
	if err := o.parse(cmd); err != nil {
		return err
	}
	if o.spec.Existing != nil {
		if goOn, err := o.cluster.prepare(cmd, s, &o.spec); err != nil || !goOn {
			return err
		}
	}
	shown := newProgress(s.err)
	defer shown.close()
	o.spec.Programs.Progress = shown.say
	run, err := latency.Run(cmd.Context(), o.spec, latency.Progress{
		Log:    shown.say,
		Status: func(done, of int) { shown.show("", fmt.Sprintf("round %d of %d", done+1, of)) },
	})
	shown.close()
	if run.Dir != "" {
		fmt.Fprintln(s.err, "record:", run.Dir)
	}
	if run.Status == "" { // nothing came to be measured
		return err
	}
	if printErr := report.PrintLatency(s.out, o.output, &run); printErr != nil {
		return printErr
	}
	return err
}
