package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/run/changes"
	"scaler.mesh/scaler/internal/run/faults"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
)

// bothModes is the value of --mode for one run of each.
const bothModes = "both"

// sizes is the value of --pods.
type sizes []int

// Set is part of pflag.Value.
func (s *sizes) Set(text string) error {
	all, err := run.ParseSizes(text)
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

// seconds is the value of a flag that is a length of time, in seconds.
type seconds float64

// Set is part of pflag.Value.
func (s *seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("want a time, 0s or more, as in 5s")
	}
	*s = seconds(d.Seconds())
	return nil
}

// Type is part of pflag.Value.
func (s *seconds) Type() string { return "duration" }

// String is part of pflag.Value.
func (s *seconds) String() string { return time.Duration(float64(*s) * float64(time.Second)).String() }

// rolloutTexts are values of flags that are parsed after all flags were read.
type rolloutTexts struct {
	mode       string
	dataplane  string
	arrival    string
	startDelay string
	churn      string
	change     string
	faults     []string
	memory     string
	parts      map[string]*float64
	dilation   string
	mesh       string
	scale      int
}

// addLadderFlags adds those that make several runs.
func (o *rolloutOptions) addLadderFlags(f *pflag.FlagSet) {
	o.sizes = sizes{o.ladder.Spec.Topology.Pods}
	f.Var(&o.sizes, "pods", "number of pods, each with a sidecar; several sizes, as in 200,400,800, are one run each")
	f.StringVar(&o.texts.mode, "mode", o.ladder.Spec.Mode, "preset of knobs: permissive (everyone may reach everyone), strict (only declared calls), or both, one run each")
	f.StringVar(&o.texts.dataplane, "dataplane", o.ladder.Spec.Dataplane, "what the pods have: sidecar, a proxy each; ambient, a proxy for each node; or mixed, sidecars in every other namespace and ambient in the others, as in a migration; several, as in sidecar,ambient, are one run each")
	f.IntVar(&o.ladder.Spec.PodsPerNode, "pods-per-node", o.ladder.Spec.PodsPerNode, "with --dataplane ambient or mixed, the number of pods for which there is a fake node")
	f.StringVar(&o.ladder.Spec.Waypoints, "waypoints", o.ladder.Spec.Waypoints, "with --dataplane ambient, what has a waypoint proxy each: none, namespace or service, as in --waypoints namespace")
	f.IntVar(&o.ladder.Repeats, "repeats", 1, "number of runs of each size and mode")
	f.StringVar(&o.texts.mesh, "mesh", "", "`FILE` of a captured mesh, from 'scaler capture', that is rolled out in place of a synthetic one")
	f.IntVar(&o.texts.scale, "scale", 1, "with --mesh: number of copies of each of its namespaces, with all that is in them")
}

// addProfileFlags adds those that state what the mesh contains in addition to its services.
func (o *rolloutOptions) addProfileFlags(f *pflag.FlagSet) {
	f.StringVar(&o.ladder.Spec.Topology.Profile, "profile", topology.Plain, "what the mesh contains in addition to uniform HTTP services: plain (nothing) or typical; each part has a flag of its own, which overrides it")
	o.texts.parts = map[string]*float64{}
	for _, part := range topology.Parts {
		v := new(float64)
		o.texts.parts[part.Name] = v
		if part.Unit == "" {
			f.Float64Var(v, part.Name, 0, partHelp[part.Name])
			continue
		}
		f.Var((*seconds)(v), part.Name, partHelp[part.Name])
	}
}

// partHelp is the help of the flag of each part of a profile.
var partHelp = map[string]string{
	"virtual-services":  "profile: `NUMBER` of VirtualServices: one for each service, the others for hosts outside the cluster's names that route to the mesh's services",
	"destination-rules": "profile: `NUMBER` of services with a DestinationRule of two subsets",
	"service-entries":   "profile: `NUMBER` of ServiceEntries, each a host outside the cluster",
	"envoy-filters":     "profile: `NUMBER` of EnvoyFilters, each a patch of the sidecars of one service",
	"telemetries":       "profile: `NUMBER` of services with a Telemetry that switches access logs on",
	"tcp-services":      "profile: `NUMBER` of services with a TCP port in addition",
	"headless-services": "profile: `NUMBER` of headless services",
	"external-names":    "profile: `NUMBER` of Services of type ExternalName that stand for a service of the mesh",
	"gateways":          "profile: `NUMBER` of ingress gateways of one pod, each with ten hosts; they are among --pods",
	"zones":             "profile: `NUMBER` of zones that nodes are spread over",
	"outside-pods":      "profile: `NUMBER` of pods without sidecars, there before the mesh",
	"outside-churn":     "profile: `PODS` without sidecars that are created and deleted each second, as those of CronJobs",
	"grace-period":      "profile: `TIME` for which a pod that is deleted runs on, terminating, with its sidecar, as in 5s; 0 = it is gone at once",
	"replica-skew":      "profile: `EXPONENT` of Zipf's law by which pods are dealt to services, as in 1; 0 deals evenly",
}

// addLoadFlags adds those that state how pods come, go and are disturbed.
func (o *rolloutOptions) addLoadFlags(f *pflag.FlagSet) {
	spec := &o.ladder.Spec
	f.IntVar(&spec.RealSidecars, "real-sidecars", 0, "number of pods with a real sidecar, agent and Envoy, as processes on this machine; with --context, injected pods on real nodes")
	f.StringVar(&spec.EchoImage, "echo-image", "", "with --context and --real-sidecars: `IMAGE` of the application of these pods, whose entrypoint is scaler")
	f.StringVar(&spec.Burst, "burst", spec.Burst, "how pods arrive: all, or SIZE/INTERVAL, as in 100/10s")
	f.StringVar(&o.texts.arrival, "arrival", "", "instead of --burst, the rate at which pods arrive one by one, evenly spaced, as in 15/s; stock is 20/s, what the stock limit of a cluster's controllers allows")
	f.StringVar(&o.texts.startDelay, "start-delay", "", "time from a pod's address to its sidecar's start: 2s, uniform:1s-5s or exponential:2s")
	f.DurationVar(&spec.CertificateLifetime, "certificate-lifetime", 0, "certificate lifetime that sidecars request; they renew after half of it (default 24h)")
	f.StringVar(&o.texts.churn, "churn", "", "replace pods at this rate, as in 2/s, in a phase as long as steady; with --change, in its phase")
	f.StringVar(&o.texts.change, "change", "", "make changes at `RATE[:KIND]`, as in 5/s:route, in a phase after the probes, and follow each to the sidecars; kinds are endpoint (default), route, policy, metadata, route-metadata and meshwide")
	f.DurationVar(&spec.ChangeDuration, "change-duration", spec.ChangeDuration, "length of the phase of --change")
	f.DurationVar(&spec.Cycle, "cycle", 0, "in a phase of this length after the changes, let every sidecar reconnect once, as after the control plane has closed its connection for its age, and renew as many certificates as fall into that age; states the cores of a steady mesh in which that happens")
	f.StringArrayVar(&o.texts.faults, "fault", nil, "inject a fault, NAME@PHASE with phase rollout, steady or probe, repeatable: restart-control-plane, kill-control-plane, reset-streams:20%, api-server-gone:10s, pause-scaler:5s, rolling-restart, kill-replica, add-replica or restart-replicas; of a control plane that is several programs, kill-control-plane:PROGRAM ends another than the one that serves the sidecars")
}

// addResourceFlags adds those that state what the control plane is given.
func (o *rolloutOptions) addResourceFlags(f *pflag.FlagSet) {
	spec := &o.ladder.Spec
	f.IntVar(&spec.ControlPlaneCPUs, "control-plane-cpus", 0, "number of processors reserved for the control plane, also its GOMAXPROCS (default all, shared)")
	f.IntVar(&spec.Replicas, "replicas", spec.Replicas, "number of replicas of the control plane, among which sidecars choose at random for each connection, as through a Service; they share --control-plane-cpus")
	f.StringVar(&o.texts.memory, "control-plane-memory", "", "memory limit of the control plane, of each replica, as in 512Mi or 2Gi; exceeding it is a result")
	f.StringVar(&o.texts.dilation, "dilate", cmp.Or(o.texts.dilation, "1"), "slow down all that is a matter of time by this factor K, so that this machine stands for one with K times the processors; the rollout takes K times as long, and figures are of the other machine; auto chooses K by a trial rollout without dilation, so that neither the control plane nor scaler waits for processors")
	f.BoolVar(&spec.NoPriority, "no-priority", false, "let all programs compete for processors as equals (default the control plane runs before scaler, and scaler before the cluster)")
	f.StringArrayVar(&spec.ControlPlaneEnv, "control-plane-env", nil, "environment variable NAME=VALUE of the control plane, repeatable; NAME alone has the value that it has here, which others on this machine then do not see; in the record, values that look like secrets are masked")
}

// addRemoteFlags adds those of a control plane that is there already.
func (o *rolloutOptions) addRemoteFlags(f *pflag.FlagSet) {
	r := &o.ladder.Spec.Remote
	f.BoolVar(&r.Plaintext, "plaintext", false, "with xds://: connect without TLS and without a token")
	f.StringVar(&r.TLSCA, "tls-ca", "", "with xds://: `FILE` with the roots of the server's certificate, in PEM")
	f.StringVar(&r.TLSCert, "tls-cert", "", "with xds://: `FILE` with the certificate that sidecars show the server, in PEM")
	f.StringVar(&r.TLSKey, "tls-key", "", "with xds://: `FILE` with the private key of --tls-cert, in PEM")
	f.StringVar(&r.TokenFile, "token-file", "", "with xds://: `FILE` with the bearer token that all sidecars send; read again for new streams")
	f.StringVar(&r.ServerName, "server-name", "", "with xds://: `NAME` that the server's certificate must carry (default the host of the address)")
	f.StringVar(&r.NodeID, "node-id", "", "with xds://: `TEMPLATE` of a sidecar's node.id, of {{.Pod}}, {{.Namespace}}, {{.Service}}, {{.Account}} and {{.IP}} (default as Istio's)")
	f.StringVar(&r.NodeCluster, "node-cluster", "", "with xds://: `TEMPLATE` of its node.cluster (default as Istio's)")
	f.StringVar(&r.Metadata, "metadata", "", "with xds://: `TEMPLATE` of its node.metadata, a JSON object (default as Istio's)")
	f.StringVar(&r.Expect, "expect", "", "with xds://: `FILE` that states what each sidecar must receive (default that all that it asks for is answered; then pushes are not measured)")
}

// withValues gives variables that are named without a value that of scaler's own
// environment. Those that are not set stay as they are, and are refused.
func withValues(env []string) []string {
	env = slices.Clone(env)
	for i, name := range env {
		if value, set := os.LookupEnv(name); set {
			env[i] = name + "=" + value
		}
	}
	return env
}

// modeChoices are the values of --mode with a control plane.
func modeChoices(d controlplane.Driver) string {
	names := d.ModeNames()
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names, ", ") + " or " + bothModes
}

// synthetic are the flags that describe a mesh; a captured one has its own.
var synthetic = []string{"pods", "services", "namespaces", "topology", "fanout", "mode", "mtls", "scope", "authz", "profile"}

// readMesh reads the file of --mesh.
func (o *rolloutOptions) readMesh(f *pflag.FlagSet) error {
	if !f.Changed("mesh") {
		if f.Changed("scale") {
			return usagef("parsing --scale %d: want it with --mesh", o.texts.scale)
		}
		return nil
	}
	for _, name := range append(slices.Sorted(maps.Keys(partHelp)), synthetic...) {
		if flag := f.Lookup(name); flag != nil && flag.Changed {
			return usagef("parsing --%s %q: want none with --mesh, whose file says it", name, flag.Value)
		}
	}
	mesh, err := run.ReadMesh(o.texts.mesh, o.texts.scale)
	if err != nil {
		return usagef("%w", err)
	}
	spec := &o.ladder.Spec
	spec.UseMesh(mesh)
	o.sizes = sizes{spec.Topology.Pods}
	if !f.Changed("probes") {
		spec.Probes = 0 // changes of a captured mesh are not followed
	}
	return nil
}

// parseTexts parses what the flags above hold as text.
func (o *rolloutOptions) parseTexts(f *pflag.FlagSet) (err error) {
	spec := &o.ladder.Spec
	if err := o.readMesh(f); err != nil {
		return err
	}
	o.ladder.Pods = o.sizes
	o.ladder.Modes = []string{o.texts.mode}
	if o.ladder.Dataplanes = run.ParseDataplanes(o.texts.dataplane); len(o.ladder.Dataplanes) == 1 {
		spec.Dataplane, o.ladder.Dataplanes = o.ladder.Dataplanes[0], nil
	}
	if f.Changed("pods-per-node") && !strings.Contains(o.texts.dataplane, "ambient") && !strings.Contains(o.texts.dataplane, "mixed") {
		return usagef("parsing --pods-per-node %d: want it with --dataplane ambient or mixed", spec.PodsPerNode)
	}
	driver, err := spec.Driver()
	if err != nil {
		return usagef("%w", err)
	}
	if !f.Changed("mode") {
		o.texts.mode = driver.Modes[0].Name // without a meaning to a captured mesh
		o.ladder.Modes = []string{o.texts.mode}
	}
	if !f.Changed("xds") {
		spec.XDS = driver.Variants()[0]
	}
	if o.texts.mode == bothModes && len(driver.Modes) > 1 {
		o.ladder.Modes = driver.ModeNames()
	} else if _, known := driver.Mode(o.texts.mode); !known {
		return usagef("parsing --mode %q: want %s", o.texts.mode, modeChoices(driver))
	}
	for _, flag := range []string{"repeats", "control-plane-cpus", "replicas"} {
		if given := f.Lookup(flag); given.Changed && given.Value.String() == "0" {
			return usagef("parsing --%s 0: want 1 or more", flag)
		}
	}
	if f.Changed("arrival") {
		if f.Changed("burst") {
			return usagef("parsing --burst %q: want it without --arrival, which is bursts of one pod", spec.Burst)
		}
		if spec.Arrival, err = workload.ParseArrival(o.texts.arrival); err != nil {
			return usagef("%w", err)
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
	if f.Changed("change") {
		if spec.Change, err = changes.Parse(o.texts.change); err != nil {
			return usagef("%w", err)
		}
	} else if f.Changed("change-duration") {
		return usagef("parsing --change-duration %s: want it with --change", spec.ChangeDuration)
	}
	if spec.Dilation, err = dilation.Parse(o.texts.dilation); err != nil {
		return usagef("%w", err)
	}
	if err := o.parseParts(f); err != nil {
		return err
	}
	spec.ControlPlaneEnv = withValues(spec.ControlPlaneEnv)
	if f.Changed("control-plane-memory") {
		if spec.ControlPlaneMemory, err = run.ParseMemory(o.texts.memory); err != nil {
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
	if spec.Dilation == dilation.Auto && !f.Changed("dilate") {
		spec.Dilation, o.ladder.ByDefault = spec.DefaultDilation(), true
	}
	return nil
}

// parseParts takes the parts of the profile that were given.
func (o *rolloutOptions) parseParts(f *pflag.FlagSet) error {
	for _, part := range topology.Parts {
		flag := f.Lookup(part.Name)
		if flag == nil || !flag.Changed {
			continue
		}
		v := *o.texts.parts[part.Name]
		whole := part.Name != "outside-churn" && part.Name != "replica-skew" && part.Unit == ""
		switch {
		case !(v >= 0) || whole && v != math.Trunc(v):
			want := "a whole number, 0 or more"
			if !whole {
				want = "a number, 0 or more"
			}
			return usagef("parsing --%s %s: want %s", part.Name, flag.Value, want)
		case v == 0:
			v = topology.None
		}
		part.Set(&o.ladder.Spec.Topology.Own, v)
	}
	return nil
}
