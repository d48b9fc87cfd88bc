package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"scaler.mesh/scaler/pkg/faults"
	"scaler.mesh/scaler/pkg/rollout"
	"scaler.mesh/scaler/pkg/workload"
)

// bothModes is the value of --mode for one run of each.
const bothModes = "both"

// sizes is the value of --pods.
type sizes []int

// Set is part of pflag.Value.
func (s *sizes) Set(text string) error {
	all, err := rollout.ParseSizes(text)
	if err != nil {
		return err
	}
	*s = all
	return nil
}

// Type is part of pflag.Value.
func (s *sizes) Type() string { return "sizes" }

// String is part of pflag.Value.
func (s *sizes) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*s), " ", ","), "[]")
}

// rolloutTexts are values of flags that are parsed after all flags were read.
type rolloutTexts struct {
	mode       string
	startDelay string
	churn      string
	faults     []string
	memory     string
}

// addLadderFlags adds those that make several runs.
func (o *rolloutOptions) addLadderFlags(f *pflag.FlagSet) {
	o.sizes = sizes{o.ladder.Spec.Topology.Pods}
	f.Var(&o.sizes, "pods", "number of pods, each with a sidecar; several sizes, as in 200,400,800, are one run each")
	f.StringVar(&o.texts.mode, "mode", o.ladder.Spec.Mode, "preset of knobs: permissive (everyone may reach everyone), strict (only declared calls), or both, one run each")
	f.IntVar(&o.ladder.Repeats, "repeats", 1, "number of runs of each size and mode")
}

// addLoadFlags adds those that say how pods come, go and are disturbed.
func (o *rolloutOptions) addLoadFlags(f *pflag.FlagSet) {
	spec := &o.ladder.Spec
	f.IntVar(&spec.RealSidecars, "real-sidecars", 0, "number of pods with a real sidecar, agent and Envoy, as processes on this machine")
	f.StringVar(&spec.Burst, "burst", spec.Burst, "how pods arrive: all, or SIZE/INTERVAL, as in 100/10s")
	f.StringVar(&o.texts.startDelay, "start-delay", "", "time from a pod's address to its sidecar's start: 2s, uniform:1s-5s or exponential:2s")
	f.DurationVar(&spec.CertificateLifetime, "certificate-lifetime", 0, "certificate lifetime that sidecars request; they renew after half of it (default 24h)")
	f.StringVar(&o.texts.churn, "churn", "", "replace pods at this rate, as in 2/s, in a phase as long as steady")
	f.StringArrayVar(&o.texts.faults, "fault", nil, "inject a fault, NAME@PHASE with phase rollout, steady or probe, repeatable: restart-control-plane, kill-control-plane, reset-streams:20%, api-server-gone:10s, pause-scaler:5s or rolling-restart")
}

// addResourceFlags adds those that say what the control plane is given.
func (o *rolloutOptions) addResourceFlags(f *pflag.FlagSet) {
	spec := &o.ladder.Spec
	f.IntVar(&spec.ControlPlaneCPUs, "control-plane-cpus", 0, "number of processors reserved for the control plane, also its GOMAXPROCS (default all, shared)")
	f.StringVar(&o.texts.memory, "control-plane-memory", "", "memory limit of the control plane, as in 512Mi or 2Gi; exceeding it is a result")
	f.StringArrayVar(&spec.ControlPlaneEnv, "control-plane-env", nil, "environment variable NAME=VALUE of the control plane, repeatable")
}

// parseTexts parses what the flags above hold as text.
func (o *rolloutOptions) parseTexts(f *pflag.FlagSet) (err error) {
	spec := &o.ladder.Spec
	o.ladder.Pods = o.sizes
	o.ladder.Modes = []string{o.texts.mode}
	driver, err := spec.Driver()
	if err != nil {
		return usagef("%w", err)
	}
	if o.texts.mode == bothModes {
		o.ladder.Modes = driver.ModeNames()
	} else if _, known := driver.Mode(o.texts.mode); !known {
		return usagef("parsing --mode %q: want %s or both", o.texts.mode, strings.Join(driver.ModeNames(), ", "))
	}
	for _, flag := range []string{"repeats", "control-plane-cpus"} {
		if given := f.Lookup(flag); given.Changed && given.Value.String() == "0" {
			return usagef("parsing --%s 0: want 1 or more", flag)
		}
	}
	if f.Changed("start-delay") {
		if spec.StartDelay, err = workload.ParseDelay(o.texts.startDelay); err != nil {
			return usagef("%w", err)
		}
	}
	if f.Changed("churn") {
		if spec.Churn, err = workload.ParseChurn(o.texts.churn); err != nil {
			return usagef("%w", err)
		}
	}
	if f.Changed("control-plane-memory") {
		if spec.ControlPlaneMemory, err = rollout.ParseMemory(o.texts.memory); err != nil {
			return usagef("%w", err)
		}
	}
	for _, text := range o.texts.faults {
		fault, err := faults.Parse(text)
		if err != nil {
			return usagef("%w", err)
		}
		spec.Faults = append(spec.Faults, fault)
	}
	return nil
}
