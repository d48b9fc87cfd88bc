package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/latency"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/scenario"
)

type latencyOptions struct {
	scenarioFlags
	spec    latency.Spec // folders and programs; the scenario is that of the flags
	cluster confirmation
	output  string
}

func newLatencyCommand(s streams) *cobra.Command {
	var o latencyOptions
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
every quantile has an interval, and what is added to the variant none is tested. docs/reference/definitions says what each figure means.

--preset uses the scenario of a published benchmark. Further flags replace its values,
but not rates, connections, chain and topology.

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

  # in an existing cluster: on one node and on two
  scaler latency --context staging --image registry.example/scaler:1 --rps 100,1000 --repeats 3

  # errors while a server is killed every 10 s
  scaler latency --rps 100 --duration 60s --kill-server-every 10s -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	o.notes = map[string]string{
		"controlPlane.name": ": " + controlplane.Choices(controlplane.ForLatency(drivers.All())),
		"latency.variants":  ofControlPlanes(otherVariants),
		"latency.proxy":     ofControlPlanes(controlplane.Driver.GivenProxy),
	}
	o.addTo(cmd, s, scenario.Latency, scenario.DefaultLatency())
	complete(cmd, "variants", allVariants())
	complete(cmd, "control-plane", controlplane.Values(controlplane.ForLatency(drivers.All())))
	addRunFlags(cmd, &o.spec.Out, &o.output, &o.spec.Programs, output.Formats)
	o.cluster.addFlags(cmd.Flags())
	return cmd
}

// allVariants returns the variants of all control planes.
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

// ofControlPlanes returns the part of a flag's help that depends on the control plane: for each, the text of of, unless it is "".
func ofControlPlanes(of func(controlplane.Driver) string) string {
	text := ""
	for _, d := range controlplane.ForLatency(drivers.All()) {
		if own := of(d); own != "" {
			text += "; of " + d.Name + ": " + own
		}
	}
	return text
}

// otherVariants returns the variants of a control plane where they are not those of most.
func otherVariants(d controlplane.Driver) string {
	if own := latency.Variants(d); !slices.Equal(own, latency.Variants(drivers.Default())) {
		return strings.Join(own, ", ")
	}
	return ""
}

// presetHelp lists the presets with what they follow.
func presetHelp() string {
	var lines []string
	for _, name := range scenario.PresetNames(scenario.Latency) {
		flags, err := presetFlags(name)
		note, noteErr := scenario.PresetNote(scenario.Latency, name)
		if err == nil && noteErr == nil { // a preset is part of the program, and tests read each
			lines = append(lines, fmt.Sprintf("  %s: %s\n    %s", name, flags, note))
		}
	}
	return strings.Join(lines, "\n")
}

// presetFlags are flags that state the same as a preset.
func presetFlags(name string) (string, error) {
	d := scenario.New(scenario.DefaultLatency())
	if err := d.ReadPreset(scenario.Latency, name); err != nil {
		return "", err
	}
	var all []string
	for _, p := range scenario.For(scenario.Latency) {
		if text, _ := d.Scenario.Text(p.Path); d.Given(p.Path) {
			all = append(all, "--"+p.Flag+"="+text)
		}
	}
	return strings.Join(all, " "), nil
}

// presetOwn are the fields by which a publication is followed: a preset stands for all of them, also
// those that it does not state.
var presetOwn = []string{"latency.rps", "latency.connections", "latency.chain", "latency.topology"}

// checkPreset refuses what a preset cannot be changed by.
func (o *latencyOptions) checkPreset(d *scenario.Document) error {
	if o.preset == "" {
		return nil
	}
	for _, path := range presetOwn {
		if d.Given(path) && d.Source(path).File != scenario.PresetSource(o.preset) {
			flags, err := presetFlags(o.preset)
			if err != nil {
				return err
			}
			return d.Scenario.Refuse(path, "none with preset "+o.preset+", which is "+flags)
		}
	}
	return nil
}

// parse makes the specification of the flags. d is nil if the scenario was to be printed, and was.
func (o *latencyOptions) parse(cmd *cobra.Command, s streams) (d *scenario.Document, err error) {
	f := cmd.Flags()
	if err := parseOutput(o.output, output.Formats...); err != nil {
		return nil, err
	}
	if d, err = o.read(f, o.checkPreset); err != nil {
		return nil, err
	}
	if done, err := o.printed(s, f, d); done || err != nil {
		return nil, err
	}
	o.spec.Preset = o.preset
	if o.spec, err = latency.New(o.spec, d); err != nil {
		return nil, usageError{err}
	}
	if err := o.checkCluster(cmd); err != nil {
		return nil, err
	}
	if err := o.spec.Validate(); err != nil {
		return nil, usageError{err}
	}
	if o.spec.Out, err = outFolder(cmd, o.spec.Out); err != nil {
		return nil, err
	}
	o.spec.State, err = stateDir()
	return d, err
}

func (o *latencyOptions) run(cmd *cobra.Command, s streams) error {
	d, err := o.parse(cmd, s)
	if err != nil || d == nil {
		return err
	}
	if o.spec.Existing != nil {
		if goOn, err := o.prepare(cmd, s); err != nil || !goOn {
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
