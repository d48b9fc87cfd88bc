package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/mask"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// leastMemory is the least memory limit that a scenario can have.
const leastMemory = 64 << 20

// takeOver states what the captured control plane of a mesh says of the scenario's, where the document leaves it: version,
// replicas, processors, memory limit and settings. With the configuration of a stock installation it is none of the mesh's
// then. notReproduced is what of it the run will not have.
func (m *MeshFile) takeOver(s Spec, d *scenario.Document) error {
	const path = "controlPlane.configuration"
	served := m.Mesh.Served()
	switch asked := d.Scenario.ControlPlane.Configuration; {
	case d.Scenario.Place.Context != "" && asked != "":
		return scenario.Refuse(path, asked, "none with place.context, whose control plane is not changed")
	case d.Scenario.Place.Context != "":
		return nil
	case asked == scenario.StockConfiguration:
		m.Mesh.ControlPlane = nil
		return nil
	case served == nil && asked != "":
		return scenario.Refuse(path, asked, "%s with mesh.file %s, which has no control plane", scenario.StockConfiguration, m.File)
	case served == nil:
		return nil
	}
	s.Scenario = d.Scenario
	driver, err := s.Driver()
	if err != nil || driver.Captured == nil {
		return nil // which is refused when the run is checked
	}
	if err := d.Fill(path, m.File, scenario.CapturedConfiguration); err != nil {
		return err
	}
	settings, _ := served.Settings()
	if all := scenario.MergeEnv(settings, d.Scenario.ControlPlane.Env); len(settings) > 0 {
		if err := d.Fill("controlPlane.env", m.File, all...); err != nil {
			return err
		}
	}
	version := served.Release()
	if version != "" && component.CheckIstio(version) != "" { // no version that is released
		version, _ = component.NearestIstio(version)
	}
	processors := served.Processors()
	if s.inRealTime(driver) != nil {
		processors = 0 // those of this machine
	}
	replicas, memory := min(served.Replicas, maxReplicas-s.spareReplicas()), served.Memory()
	if s.upgrade() != nil {
		replicas = min(replicas, 1) // of each version
	}
	for _, f := range []struct {
		path  string
		known bool
		text  string
	}{
		{"controlPlane.version", version != "", version},
		{"controlPlane.replicas", replicas > 0, strconv.Itoa(replicas)},
		{"controlPlane.processors", processors > 0, strconv.Itoa(processors)},
		{"controlPlane.memory", memory >= leastMemory, strconv.FormatInt(memory, 10)},
	} {
		if !f.known || d.Stated(f.path) {
			continue
		}
		if err := d.Fill(f.path, m.File, f.text); err != nil {
			return err
		}
	}
	return nil
}

// notReproduced returns the parts of the captured cluster that a run does not have as they were; nil of a synthetic mesh.
func (s Spec) notReproduced() (all []capture.Difference) {
	if s.Captured == nil {
		return nil
	}
	all = slices.Concat(s.Captured.lacks, s.Captured.Mesh.Differences())
	differ := func(what, captured, changes string, args ...any) {
		all = append(all, capture.Difference{What: what, Value: captured, Changes: fmt.Sprintf(changes, args...)})
	}
	if share := s.Mesh.Share; share > 0 {
		differ("pods", "", "memory, processor time, pushes and endpoints: %s of the pods of each workload run, one of each at least, %d of them with proxies", share, s.Pods())
	}
	r := s.Captured.Mesh.Served()
	if r == nil {
		return all
	}
	c := s.ControlPlane
	if captured := r.Release(); captured == "" {
		differ("version", "", "what depends on it: it is not known, and %s runs", s.version())
	} else if captured != s.version() {
		differ("version", captured, "what depends on it: %s runs", s.version())
	}
	if r.Replicas != c.Replicas && r.Replicas > 0 {
		differ("replicas", strconv.Itoa(r.Replicas), "what each of them does: %d run", c.Replicas)
	}
	if r.Autoscaler != nil && r.Autoscaler.Max > r.Autoscaler.Min {
		differ("autoscaler", fmt.Sprintf("%d to %d replicas", r.Autoscaler.Min, r.Autoscaler.Max), "the number of replicas under load: that of a run does not change")
	}
	const ofProcessors = "limits that follow from the number, and waits for processors: "
	switch captured := r.Processors(); {
	case captured == 0:
		differ("processors", "", ofProcessors+"neither a limit nor the nodes are known")
	case captured != s.processors():
		differ("processors", strconv.Itoa(captured), ofProcessors+"each replica has %d", s.processors())
	case r.Limits["cpu"] != "" && r.Limits["cpu"] != strconv.Itoa(captured):
		differ("limits.cpu", r.Limits["cpu"], "waits for processors: each replica has %d whole ones", captured)
	}
	if captured := r.Memory(); captured > 0 && captured != int64(c.Memory) {
		limit := c.Memory.String()
		if c.Memory == 0 {
			limit = "none"
		}
		differ("limits.memory", r.Limits["memory"], "what happens at the limit: that of the run is %s", limit)
	}
	if s.Mesh.Sidecars.Real > 0 && r.MeshConfig["defaultProviders"] != nil {
		differ("meshConfig.defaultProviders", "", "metrics, and what sidecars are sent for them: the Envoys of real sidecars do not have Istio's filters, so that no sidecar is sent any")
	}
	if s.upgrade() != nil {
		to := s.nextVersion()
		for i := range s.Captured.Mesh.ControlPlane.Revisions {
			if other := &s.Captured.Mesh.ControlPlane.Revisions[i]; other != r && other.Release() == to {
				differ("configuration of revision "+other.Name, "", "what it sets: the new control plane of the upgrade has that of revision %s", r.Name)
			}
		}
	}
	settings, _ := r.Settings()
	for _, kv := range settings {
		if !slices.Contains(mask.Env(c.Env), kv) {
			name, value, _ := strings.Cut(kv, "=")
			differ("setting "+name, value, "what it sets: the run has another value")
		}
	}
	return all
}

// IsCaptured reports whether a variable of the control plane (NAME=VALUE) is as the captured one has it.
func (s Spec) IsCaptured(variable string) bool {
	if s.Captured == nil || s.Captured.Mesh.Served() == nil {
		return false
	}
	settings, _ := s.Captured.Mesh.Served().Settings()
	return slices.Contains(settings, variable)
}

// version returns the version of the control plane of a run, in full. Before settleVersions, it is the one that is asked for.
func (s Spec) version() string {
	return inFull(cmp.Or(s.Programs.Istio, s.ControlPlane.Version))
}

// nextVersion returns the version that an upgrade leads to, in full. Before settleVersions, it is the one that is asked for.
func (s Spec) nextVersion() string { return inFull(cmp.Or(s.NextVersion, s.ControlPlane.Upgrade.To)) }

// inFull returns a version in place of a line of versions. What is neither is refused when the run is checked.
func inFull(version string) string {
	if release, err := component.IstioRelease(version); err == nil {
		return release
	}
	return version
}

// CheckVersions returns an error for a version of Istio that cannot run, and takes those that run from images into the cache.
func (s Spec) CheckVersions(ctx context.Context, say func(string)) error {
	d, err := s.Driver()
	if err == nil {
		_, err = s.settleVersions(ctx, d, say)
	}
	return err
}

// settleVersions returns the run with the versions of Istio that run: one that can neither be built nor had from its images is
// replaced by the nearest.
func (s Spec) settleVersions(ctx context.Context, d controlplane.Driver, say func(string)) (Spec, error) {
	own := s.ownPrograms()
	own.Progress = say
	settled, err := component.SettleIstio(ctx, own, s.programs(d)...)
	if err != nil {
		return s, err
	}
	s.Programs.Istio = settled.Istio
	if s.upgrade() == nil {
		return s, nil
	}
	next := s.nextPrograms()
	next.Progress = say
	if settled, err = component.SettleIstio(ctx, next, d.Programs.Own...); err != nil {
		return s, err
	}
	s.NextVersion = settled.Istio
	if plan := s.upgrade(); plan.From == plan.To && s.ControlPlane.Version != s.ControlPlane.Upgrade.To {
		return s, scenario.Refuse("controlPlane.upgrade.to", s.ControlPlane.Upgrade.To, "a version whose programs can be had: %s would run in place of it or of %s, and be upgraded to itself", plan.To, s.ControlPlane.Version)
	}
	return s, nil
}

// capturedText states which control plane a run of a captured mesh has; "" = a stock one.
func (s Spec) capturedText() string {
	if s.Captured == nil || s.Captured.Mesh.Served() == nil {
		return ""
	}
	text := fmt.Sprintf("the control plane is configured as revision %s of the mesh: version %s, %s, %s", s.Captured.Mesh.Served().Name,
		s.version(), output.Many(s.ControlPlane.Replicas, "replica"), output.Many(len(s.ControlPlane.Env), "setting"))
	if n := len(s.notReproduced()); n > 0 {
		text += fmt.Sprintf("; not reproduced: %s, see mesh.notReproduced of the record", output.Many(n, "part"))
	}
	return text
}

// otherVersion returns the warning about a run whose control plane is of another version than the captured one; nil = it is not, or
// that is not known.
func (s Spec) otherVersion() *record.Warning {
	if s.Captured == nil || s.Captured.Mesh.Served() == nil {
		return nil
	}
	captured := s.Captured.Mesh.Served().Release()
	if captured == "" || captured == s.version() || captured == s.ControlPlane.Version {
		return nil // or replacedVersions says it
	}
	return &record.Warning{About: record.AboutVersion, Reason: record.ReasonOtherVersion, Component: s.version(), Detail: captured}
}

// replacedVersions returns the warnings about versions that run in place of others.
func (s Spec) replacedVersions() (all []record.Warning) {
	replaced := func(about, asked, runs string) {
		if want, err := component.IstioRelease(asked); err == nil && asked != "" && runs != "" && want != runs {
			all = append(all, record.Warning{About: about, Reason: record.ReasonReplacedVersion, Component: runs, Detail: want})
		}
	}
	replaced(record.AboutVersion, s.ControlPlane.Version, s.version())
	replaced(record.AboutNextVersion, s.ControlPlane.Upgrade.To, s.NextVersion)
	return all
}
