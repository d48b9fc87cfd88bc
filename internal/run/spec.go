// Package run is `scaler rollout`: the ordered, visible sequence of a run, what
// is started, which phases follow each other, what is read at their edges, and how
// everything is taken down again in reverse. How each mechanism works is left to it.
package run

import (
	"errors"
	"fmt"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/run/changes"
	"scaler.mesh/scaler/internal/run/faults"
	"scaler.mesh/scaler/internal/run/upgrade"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/pkg/record"
)

// Spec is what a user asks of `scaler rollout`. The zero value of a
// field is not its default: DefaultSpec has those.
type Spec struct {
	Topology topology.Spec
	// Mesh is rolled out in place of one that Topology describes, which UseMesh sets to match;
	// nil = there is none.
	Mesh *MeshFile

	Burst        string             // "all"
	Arrival      workload.Arrival   // pods a second, one by one and evenly spaced; 0 = as Burst says
	Mode         string             // one of the control plane's modes
	Own          controlplane.Knobs // knobs set by themselves, over the mode's; "" leaves the mode's
	ControlPlane string             // the name of one of Drivers, or NAME://HOST:PORT of an external one
	XDS          string             // "delta" or "sotw"

	Dataplane   string // what the pods have, one of the driver's DataplaneNames; "" = sidecars
	PodsPerNode int    // for which there is a fake node, where the nodes have proxies
	Waypoints   string // what has a waypoint each, one of controlplane's values of --waypoints; "" = nothing

	// ProxyVersion is the one that simulated sidecars report; "" = the control plane's.
	ProxyVersion string

	// Remote is how sidecars reach an external control plane; its address is that
	// of ControlPlane.
	Remote controlplane.Remote

	Baseline        time.Duration // the control plane is up, no mesh
	Settle          time.Duration // between rollout and steady; belongs to no figure
	Steady          time.Duration // nothing is touched
	ConvergeTimeout time.Duration // a rollout that takes longer is ended unconverged
	Probes          int           // changes of each kind that are followed to the sidecars; 0 = none

	// CertificateLifetime is what the sidecars ask for, and half of which they
	// keep a certificate; 0 = 24 h, as agents do by themselves.
	CertificateLifetime time.Duration

	CertificateStorm bool // in the end all sidecars ask for a certificate anew at once
	NoCalibrate      bool // leave out the instrument's floor where it is not known yet

	StartDelay   workload.Delay // from a pod's address to its sidecar's start
	Churn        workload.Churn // pods replaced a second, after steady and for as long, or while changes are made; 0 = none
	Workers      int            // processes that run the simulated sidecars, this one among them
	RealSidecars int            // how many of the pods have a real Envoy, with its agent, on this host or, in a cluster that is there already, on its real nodes
	EchoImage    string         // of the application of pods on real nodes; needed for these

	Change         changes.Load  // changes made a second, after probe; zero = none
	ChangeDuration time.Duration // for which they are made

	Cycle time.Duration // within which every sidecar reconnects once, as at the age of its connection; 0 = not done

	Faults []faults.Fault // broken on purpose, each in its phase, in this order

	Upgrade *upgrade.Plan // the upgrade after the steady phase; nil = none

	Replicas           int      // programs that the control plane runs as, which share what it is given; 0 = 1
	ControlPlaneCPUs   int      // processors it may use, and its GOMAXPROCS; 0 = all
	ControlPlaneMemory int64    // bytes it may hold; 0 = no limit
	ControlPlaneEnv    []string // further NAME=VALUE for it, over its own
	Dilation           float64  // factor by which time is slowed down, K; 0 = 1, dilation.Auto = a trial chooses it. All else here is of the machine that is stood for
	NoPriority         bool     // let all programs compete for processors as equals

	Choice *record.DilationChoice // how trials chose Dilation; nil = it was given

	Repeat int // which of several like runs this is, from 1; 0 = there is one

	// Existing is a cluster with a control plane that the run uses; nil = the run starts both.
	Existing *Existing

	// Drivers are the control planes that there are; nil = those of package drivers.
	Drivers []controlplane.Driver

	Out      string            // folder that takes the record as a sub-folder
	Keep     bool              // leave the cluster and the control plane running
	Programs component.Options // where programs are found or built
	State    string            // folder that holds embedded clusters
}

// DefaultSpec is `scaler rollout` without flags.
func DefaultSpec() Spec {
	return Spec{
		Topology:        topology.Spec{Pods: 200, Shape: topology.Layers, FanOut: 3, Seed: 1},
		Burst:           "all",
		Mode:            "permissive",
		ControlPlane:    drivers.Default().Name,
		XDS:             "delta",
		Dataplane:       controlplane.Sidecars,
		PodsPerNode:     defaultPodsPerNode,
		Waypoints:       controlplane.NoWaypoints,
		Baseline:        10 * time.Second,
		Settle:          10 * time.Second,
		Steady:          60 * time.Second,
		ConvergeTimeout: 10 * time.Minute,
		Probes:          20,
		ChangeDuration:  30 * time.Second,
		Workers:         1,
		Replicas:        1,
	}
}

// Validate names the first flag whose value cannot be used, the value, and what
// is wanted. Nothing has been started or created before it returns nil.
func (s Spec) Validate() error {
	var field *topology.FieldError
	if err := s.Topology.Validate(); errors.As(err, &field) {
		return fmt.Errorf("parsing --%s %s: want %s", field.Field, field.Value, field.Want)
	} else if err != nil {
		return err
	}
	if s.Topology.Shape == "" { // to Topology itself it means layers
		return fmt.Errorf(`parsing --topology "": want %s, %s or %s`, topology.Star, topology.Layers, topology.Random)
	}
	if err := s.checkArrival(); err != nil {
		return err
	}
	if err := s.checkDilation(); err != nil {
		return err
	}
	driver, err := s.Driver()
	if err != nil {
		return err
	}
	if err := s.checkExternal(driver); err != nil {
		return err
	}
	if err := s.checkMesh(driver); err != nil {
		return err
	}
	if err := s.checkExisting(driver); err != nil {
		return err
	}
	if err := s.Programs.Validate(s.place().programs(driver)...); err != nil {
		return err
	}
	if err := s.checkProxyVersion(driver); err != nil {
		return err
	}
	if err := s.checkDataplane(driver); err != nil {
		return err
	}
	if err := s.checkUpgrade(driver); err != nil {
		return err
	}
	for _, choice := range []struct {
		flag, value string
		want        []string
	}{
		{"mode", s.Mode, s.modes(driver)},
		{"xds", s.XDS, driver.Variants()},
	} {
		if choice.flag == "xds" && driver.NoXDS {
			if s.XDS != "" {
				return fmt.Errorf("parsing --xds %q: want none with --control-plane %s, whose proxies do not speak xDS", s.XDS, s.ControlPlane)
			}
			continue
		}
		if err := experiment.CheckOneOf(choice.flag, choice.value, choice.want); err != nil {
			return err
		}
	}
	if all := len(experiment.Processors()); s.ControlPlaneCPUs < 0 || s.ControlPlaneCPUs > all {
		return fmt.Errorf("parsing --control-plane-cpus %d: want 1 to %d, which is what there are", s.ControlPlaneCPUs, all)
	}
	if err := s.checkReplicas(driver); err != nil {
		return err
	}
	if err := checkEnv(s.ControlPlaneEnv); err != nil {
		return err
	}
	if s.RealSidecars < 0 || s.RealSidecars > s.Topology.Pods {
		return fmt.Errorf("parsing --real-sidecars %d: want 0 to %d, which is how many pods there are", s.RealSidecars, s.Topology.Pods)
	}
	if s.RealSidecars > 0 && driver.SidecarPrograms == nil {
		return fmt.Errorf("parsing --real-sidecars %d: want none with --control-plane %s, which has no real sidecars", s.RealSidecars, s.ControlPlane)
	}
	if real := driver.Variants()[0]; s.RealSidecars > 0 && s.XDS != real {
		return fmt.Errorf("parsing --xds %q: want %s with --real-sidecars, as real ones speak it", s.XDS, real)
	}
	if s.Workers < 1 || s.Workers > maxWorkers {
		return fmt.Errorf("parsing --workers %d: want 1 to %d", s.Workers, maxWorkers)
	}
	if s.Probes < 0 || s.Probes > maxProbes {
		return fmt.Errorf("parsing --probes %d: want 0 to %d", s.Probes, maxProbes)
	}
	if s.Change.PerSecond > 0 {
		if err := s.Change.Validate(s.ChangeDuration); err != nil {
			return err
		}
	}
	if err := s.checkCycle(driver); err != nil {
		return err
	}
	if err := s.checkCertificates(driver); err != nil {
		return err
	}
	if d := s.CertificateLifetime; d != 0 && (d < minLifetime || d > maxLifetime) {
		return fmt.Errorf("parsing --certificate-lifetime %s: want a duration from %s to %s", d, minLifetime, maxLifetime)
	}
	if len(faults.In(s.Faults, record.PhaseProbe)) > 0 && s.Probes == 0 {
		return fmt.Errorf("parsing --fault %q: want --probes above 0 with a fault in probe", faults.In(s.Faults, record.PhaseProbe)[0])
	}
	if err := faults.CheckPrograms(s.Faults, s.ControlPlane, driver.Helpers); err != nil {
		return err
	}
	if err := s.checkKnobs(driver); err != nil {
		return err
	}
	if err := s.checkProfile(driver); err != nil {
		return err
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
	}{
		{"baseline", s.Baseline, time.Second},
		{"settle", s.Settle, 0},
		{"steady", s.Steady, time.Second},
		{"converge-timeout", s.ConvergeTimeout, time.Second},
	} {
		if d.value < d.least || d.value > 24*time.Hour {
			return fmt.Errorf("parsing --%s %s: want a duration from %s to 24h", d.flag, d.value, d.least)
		}
	}
	return nil
}

func (s Spec) checkProxyVersion(d controlplane.Driver) error {
	switch {
	case s.ProxyVersion == "":
		return nil
	case d.CheckProxyVersion == nil:
		return fmt.Errorf("parsing --proxy-version %q: want none with --control-plane %s, whose sidecars report no version", s.ProxyVersion, s.ControlPlane)
	case s.RealSidecars > 0:
		return fmt.Errorf("parsing --proxy-version %q: want none with --real-sidecars, which report their own", s.ProxyVersion)
	}
	return d.CheckProxyVersion(s.ProxyVersion)
}

// maxProbes is more changes than anyone waits for.
const maxProbes = 100_000

// Driver is the control plane that is asked for, as it serves the data plane. Its error
// names the flag.
func (s Spec) Driver() (controlplane.Driver, error) {
	d, _, err := experiment.FindDriver(s.Drivers, s.ControlPlane)
	if err != nil {
		return d, err
	}
	return d.Of(s.Dataplane, s.Waypoints)
}
