// Package run does one run of a scenario, or several: the ordered, visible sequence of steps, what
// is started, which phases follow each other, what is read at their edges, and how everything is
// taken down again in reverse. How each mechanism works is left to it.
package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/place/guard"
	"scaler.mesh/scaler/internal/run/changes"
	"scaler.mesh/scaler/internal/run/faults"
	"scaler.mesh/scaler/internal/run/upgrade"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Spec is one run, or several that differ in the lists of the scenario: the scenario, what it
// names, and where the run leaves what. [New] makes one.
type Spec struct {
	scenario.Scenario

	// Captured is the mesh of the scenario's file, of the first of its scales; nil = the mesh is synthetic.
	Captured *MeshFile
	// Scales has the mesh of the scenario's file at each of its scales; nil = the mesh is synthetic, or it is Captured alone.
	Scales []*MeshFile
	// Existing is the cluster of the scenario's context; nil = the run starts one.
	Existing *Existing
	// Choice states how the dilation was chosen; nil = it was given.
	Choice *record.DilationChoice
	// StartsAgain ends the run where programs wait too long in its rollout, so that it can be started again with a larger dilation.
	StartsAgain bool
	// Repeat numbers several like runs from 1; 0 = there is one.
	Repeat int

	// Drivers are the control planes that there are; nil = those of package drivers.
	Drivers []controlplane.Driver

	Out string // folder that takes the record as a sub-folder
	// KeepConfiguration has the record keep what every proxy holds, and states of when; see record.Configuration.
	KeepConfiguration Keeping

	Keep     bool              // leave the cluster and the control plane running
	Programs component.Options // where programs are found or built
	State    string            // folder that holds embedded clusters
	// NextVersion is the version of Istio that an upgrade leads to, where it runs in place of the scenario's; "" = it does not.
	NextVersion string
}

// DefaultSpec returns the run of the default scenario.
func DefaultSpec() Spec {
	s := Spec{Scenario: scenario.Default()}
	s.Mesh.Mode, s.Mesh.Sidecars.XDS = scenario.List[string]{"permissive"}, "delta"
	return s
}

// New completes a specification, which has folders and programs, with a scenario document: it reads
// the file of a captured mesh, states in the document what follows from the captured control plane, and takes from the control
// plane that runs what the document does not state.
// Nothing is started or created. Errors of fields are of type *[scenario.Error].
func New(s Spec, d *scenario.Document) (_ Spec, err error) {
	var file *MeshFile
	if path := d.Scenario.Mesh.File; path != "" {
		if file, err = ReadMesh(path); err != nil {
			return s, err
		}
		if err := file.of(d.Scenario.Mesh.Revision); err != nil {
			return s, err
		}
		if err := file.takeOver(s, d); err != nil {
			return s, err
		}
		if err := file.useDataplane(s, d); err != nil {
			return s, err
		}
	}
	s.Scenario = d.Scenario
	s.Programs.Istio = s.ControlPlane.Version
	driver, err := s.Driver()
	if err != nil {
		return s, err
	}
	if !d.Given("mesh.mode") {
		s.Mesh.Mode = scenario.List[string]{driver.Modes[0].Name}
	} else if slices.Contains(s.Mesh.Mode, bothModes) && len(s.Mesh.Mode) == 1 {
		s.Mesh.Mode = driver.ModeNames()
	}
	if !d.Given("mesh.sidecars.xds") {
		s.Mesh.Sidecars.XDS = driver.Proxy.Variants()[0]
	}
	s.ControlPlane.Env, s.ControlPlane.Upgrade.Env = withValues(s.ControlPlane.Env), withValues(s.ControlPlane.Upgrade.Env)
	if file != nil {
		if s.Scales, err = file.times(s.Mesh.Scale, s.Mesh.Share); err != nil {
			return s, err
		}
		s.UseMesh(s.Scales[0])
		s.Mesh.Scale = d.Scenario.Mesh.Scale
		if !d.Stated("load.probes") {
			s.Load.Probes = 0 // a captured mesh is changed if that is asked for
		}
	}
	if s.Place.Context != "" {
		if s.Existing, err = newExisting(s.Place); err != nil {
			return s, err
		}
	} else if d.Given("place.context") {
		return s, scenario.Refuse("place.context", "", "a context of the kubeconfig")
	}
	return s, nil
}

// bothModes is the value of the mode for one run of each.
const bothModes = "both"

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

// newExisting returns the cluster of a place.
func newExisting(p scenario.Place) (_ *Existing, err error) {
	e := &Existing{WorkerImage: p.WorkerImage, KwokImage: p.KwokImage}
	if e.Place, err = attach.NewPlace(p); err != nil {
		return nil, err
	}
	if e.AbortIf, err = guard.Parse("place.abortIf", p.AbortIf); err != nil {
		return nil, err
	}
	if p.RefuseIf != nil {
		if e.RefuseIf, err = guard.Parse("place.refuseIf", *p.RefuseIf); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Asked returns the scenario of the specification in JSON, with the digest of a captured mesh: two runs with
// the same text are asked the same.
func (s Spec) Asked() string {
	text, err := json.Marshal(s.Scenario)
	if err != nil {
		return fmt.Sprintf("%+v", err) // no type of a scenario has an encoding that fails
	}
	if s.Captured != nil {
		return string(text) + " " + s.Captured.Digest
	}
	return string(text)
}

// Pods returns the number of pods with sidecars of a single run.
func (s Spec) Pods() int { return s.Mesh.Pods.First() }

// Mode returns the mode of a single run.
func (s Spec) Mode() string { return s.Mesh.Mode.First() }

// Dataplane returns the data plane of a single run.
func (s Spec) Dataplane() string { return s.Mesh.Dataplane.First() }

// topology returns the synthetic mesh of a single run, or the size of a captured one.
func (s Spec) topology() topology.Spec {
	m := s.Mesh
	if s.Captured != nil {
		return topology.Spec{Pods: s.Pods(), Services: m.Services, Namespaces: m.Namespaces, Shape: topology.Captured, Seed: m.Seed}
	}
	return topology.Spec{
		Pods: s.Pods(), Services: m.Services, Namespaces: m.Namespaces, Shape: m.Topology, FanOut: m.FanOut, Seed: m.Seed,
		Profile: m.Profile, Own: m.Parts,
	}
}

// Profile returns the parts of the mesh of a single run in addition to uniform HTTP services.
func (s Spec) Profile() scenario.Parts { return s.topology().Resolved() }

// upgrade returns the upgrade of the mesh; nil = there is none.
func (s Spec) upgrade() *upgrade.Plan {
	u := s.ControlPlane.Upgrade
	if u.To == "" {
		return nil
	}
	plan := &upgrade.Plan{
		From: cmp.Or(s.Programs.Istio, s.ControlPlane.Version), To: cmp.Or(s.NextVersion, u.To), Waves: u.Canary, InPlace: u.InPlace, RollbackAt: u.RollbackAt,
		Rate: float64(u.Rate), Pause: time.Duration(u.Pause), ToEnv: u.Env,
	}
	if s.Captured != nil {
		plan.Units = upgrade.UnitsOf(&s.Captured.Mesh, s.version(), s.nextVersion())
	}
	if !s.WithSidecars() {
		plan.Proxies = s.movedProxies()
	}
	if u.InPlace {
		plan.Waves = nil
	}
	return plan
}

// Validate returns an error for the first field whose value cannot be used with the others, with
// the control plane or on this machine. Bounds of single fields are those of the table of
// parameters. Nothing has been started or created before it returns nil.
func (s Spec) Validate() error {
	if err := s.topology().Validate(); err != nil {
		return err
	}
	driver, err := s.Driver()
	if err != nil {
		return err
	}
	for _, check := range []func(controlplane.Driver) error{
		s.checkArrival, s.checkDilation, s.checkAuto, s.checkExternal, s.checkMesh, s.checkExisting, s.checkVersion,
		func(d controlplane.Driver) error { return s.Programs.Validate(s.place().programs(d)...) },
		s.checkProxyVersion, s.checkDataplane, s.checkUpgrade, s.checkVariants, s.checkReplicas, s.checkResources, s.checkRealSidecars, s.checkLoad,
		s.checkCycle, s.checkCertificates, s.checkKnobs, s.checkProfile, s.checkThresholds,
	} {
		if err := check(driver); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion checks that there is such a version of Istio.
func (s Spec) checkVersion(controlplane.Driver) error {
	version := s.ControlPlane.Version
	if version == "" {
		return nil
	}
	if want := component.CheckIstio(version); want != "" {
		return scenario.Refuse("controlPlane.version", version, "%s", want)
	}
	return nil
}

// checkVariants checks that the control plane has the mode, and speaks the variant of xDS.
func (s Spec) checkVariants(d controlplane.Driver) error {
	if modes := s.modes(d); !slices.Contains(modes, s.Mode()) {
		if len(modes) > 1 {
			modes = append(slices.Clone(modes), bothModes)
		}
		return scenario.Refuse("mesh.mode", s.Mode(), "%s", strings.Join(modes, " or "))
	}
	xds := s.Mesh.Sidecars.XDS
	switch {
	case d.Proxy.XDS == nil && xds != "":
		return scenario.Refuse("mesh.sidecars.xds", xds, "none with controlPlane.name %s, whose proxies do not speak xDS", s.ControlPlane.Name)
	case d.Proxy.XDS != nil && !slices.Contains(d.Proxy.Variants(), xds):
		return scenario.Refuse("mesh.sidecars.xds", xds, "%s", strings.Join(d.Proxy.Variants(), " or "))
	}
	return nil
}

// checkRealSidecars checks that there can be real sidecars.
func (s Spec) checkRealSidecars(d controlplane.Driver) error {
	real := s.Mesh.Sidecars.Real
	switch {
	case real == 0:
		return nil
	case real > s.Pods():
		return scenario.Refuse("mesh.sidecars.real", real, "0 to %d, which is how many pods there are", s.Pods())
	case s.Captured != nil && real > s.Captured.Mesh.Pods()[capture.Sidecar]:
		return scenario.Refuse("mesh.sidecars.real", real, "0 to %d, which is how many pods of %s have sidecars that are no gateways", s.Captured.Mesh.Pods()[capture.Sidecar], s.Captured.File)
	case d.SidecarPrograms == nil:
		return scenario.Refuse("mesh.sidecars.real", real, "none with controlPlane.name %s, which has no real sidecars", s.ControlPlane.Name)
	case s.Mesh.Sidecars.XDS != d.Proxy.Variants()[0]:
		return scenario.Refuse("mesh.sidecars.xds", s.Mesh.Sidecars.XDS, "%s with mesh.sidecars.real, as real ones speak it", d.Proxy.Variants()[0])
	}
	return nil
}

// checkLoad checks changes and faults.
func (s Spec) checkLoad(d controlplane.Driver) error {
	if s.Load.Changes.PerSecond > 0 {
		if err := changes.Check(s.Load.Changes, time.Duration(s.Phases.Changes)); err != nil {
			return err
		}
	}
	if in := scenario.FaultsIn(s.Load.Faults, scenario.PhaseProbe); len(in) > 0 && s.Load.Probes == 0 {
		return scenario.Refuse("load.faults", in[0], "load.probes above 0 with a fault in probe")
	}
	return faults.CheckPrograms(s.Load.Faults, s.ControlPlane.Name, d.Programs.Helpers)
}

func (s Spec) checkProxyVersion(d controlplane.Driver) error {
	version := s.Mesh.Sidecars.Version
	switch {
	case version == "":
		return nil
	case d.Proxy.CheckVersion == nil:
		return scenario.Refuse("mesh.sidecars.version", version, "none with controlPlane.name %s, whose sidecars report no version", s.ControlPlane.Name)
	case s.Mesh.Sidecars.Real > 0:
		return scenario.Refuse("mesh.sidecars.version", version, "none with mesh.sidecars.real, which report their own")
	}
	return d.Proxy.CheckVersion(version)
}

// Driver returns the control plane that is asked for, as it serves the data plane.
func (s Spec) Driver() (controlplane.Driver, error) {
	d, _, err := drivers.Find(s.Drivers, s.ControlPlane.Name)
	if err != nil {
		return d, err
	}
	return d.Of(s.Dataplane(), s.Mesh.Waypoints)
}

// refusal is a field that a run cannot have together with something else.
type refusal struct {
	given bool
	path  string
}

// refuse returns an error for the first field that is given. want states what goes with what, as in
// "none with mesh.file".
func (s Spec) refuse(fields []refusal, want string) error {
	for _, f := range fields {
		if f.given {
			return s.Scenario.Refuse(f.path, want)
		}
	}
	return nil
}

// WithFewerPushes returns the specification of a run of which only the final configuration is used: its control plane pushes
// less often while pods become ready. Variables that the specification sets keep their values.
func (s Spec) WithFewerPushes() Spec {
	if driver, err := s.Driver(); err == nil && s.Existing == nil {
		s.ControlPlane.Env = scenario.MergeEnv(driver.FewerPushes, s.ControlPlane.Env)
	}
	return s
}

// checkEnv checks variables of an environment, the field at a path.
func checkEnv(path string, env []string) error {
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		switch {
		case !ok || !variable.MatchString(name):
			return scenario.Refuse(path, kv, "NAME=VALUE, or the NAME of a variable that is set here")
		case strings.ContainsRune(kv, 0):
			return scenario.Refuse(path, name, "a value without zero bytes") // it may be a secret
		case name == "GOMAXPROCS":
			return scenario.Refuse(path, kv, "controlPlane.processors instead, which is recorded too")
		}
	}
	return nil
}
