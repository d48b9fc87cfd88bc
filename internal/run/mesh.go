package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
)

// MeshFile is a captured mesh that is rolled out.
type MeshFile struct {
	File   string // as it was named
	Digest string // first 12 digits of the SHA-256 of its content
	Scale  int    // copies that Mesh has of the file's mesh, 1 or more
	Mesh   capture.Mesh
}

// capturedKnobs are those of a captured mesh: its own configuration decides.
var capturedKnobs = controlplane.Knobs{MTLS: topology.Captured, Scope: topology.Captured, Authz: topology.Captured}

// ReadMesh reads the file of a captured mesh and makes so many copies of it. The error names
// the flag, --mesh or --scale.
func ReadMesh(path string, scale int) (*MeshFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("parsing --mesh: %w", err)
	}
	defer f.Close()
	digest := sha256.New()
	mesh, err := capture.Read(path, io.TeeReader(f, digest))
	if err != nil {
		return nil, fmt.Errorf("parsing --mesh: %w", err)
	}
	m := &MeshFile{File: path, Digest: hex.EncodeToString(digest.Sum(nil))[:12], Scale: scale}
	if m.Mesh, err = mesh.Times(scale); err != nil {
		return nil, err
	}
	return m, nil
}

// UseMesh makes a specification one of a captured mesh.
func (s *Spec) UseMesh(m *MeshFile) {
	s.Mesh = m
	sidecars, _ := m.Mesh.Sidecars()
	s.Topology = topology.Spec{
		Pods: sidecars, Services: len(m.Mesh.Services), Namespaces: len(m.Mesh.Namespaces), Shape: topology.Captured, Seed: s.Topology.Seed,
	}
}

// mesh is what is rolled out.
func (s Spec) mesh() topology.Mesh {
	if s.Mesh != nil {
		return s.Mesh.Mesh.Topology()
	}
	mesh := topology.Build(s.Topology)
	if s.Existing != nil && s.RealSidecars > 0 {
		_ = fleet.SpreadReal(mesh.Services, s.RealSidecars) // checkReal reports its error
	}
	return mesh
}

// checkMesh checks what goes with a captured mesh.
func (s Spec) checkMesh(d controlplane.Driver) error {
	if s.Mesh == nil {
		return nil
	}
	refused := func(flag string, value any, why string) error {
		return fmt.Errorf("parsing --%s %v: want none with --mesh, %s", flag, value, why)
	}
	switch {
	case d.CheckMesh == nil:
		return fmt.Errorf("parsing --mesh %s: want none with --control-plane %s, which cannot replay one", s.Mesh.File, s.ControlPlane)
	case !s.withSidecars():
		return refused("dataplane", s.Dataplane, "whose pods have sidecars")
	case s.Topology.Pods == 0:
		return fmt.Errorf("parsing --mesh %s: want one with a sidecar at least", s.Mesh.File)
	case s.Probes > 0:
		return refused("probes", s.Probes, "whose changes are not followed")
	case s.Change.PerSecond > 0:
		return refused("change", s.Change, "whose changes are not followed")
	case s.RealSidecars > 0:
		return refused("real-sidecars", s.RealSidecars, "whose sidecars are simulated")
	case s.Upgrade != nil:
		return errors.New("parsing --mesh: want none in an upgrade")
	}
	if sidecars, _ := s.Mesh.Mesh.Sidecars(); sidecars != s.Topology.Pods {
		return fmt.Errorf("parsing --mesh %s: want none where sizes are searched for: it has %d pods with sidecars; --scale multiplies them", s.Mesh.File, sidecars)
	}
	if err := d.CheckMesh(&s.Mesh.Mesh); err != nil {
		return fmt.Errorf("parsing --mesh: %w", err)
	}
	return nil
}

// record is what a record states of the mesh, as far as it is known before anything runs.
func (m *MeshFile) record() *record.Mesh {
	if m == nil {
		return nil
	}
	_, outside := m.Mesh.Sidecars()
	r := &record.Mesh{
		File: m.File, Digest: m.Digest, Anonymized: m.Mesh.Anonymized, Scale: m.Scale,
		Services: len(m.Mesh.Services), Workloads: len(m.Mesh.Workloads), Outside: outside,
		Zones: len(m.Mesh.Zones()), Endpoints: m.Mesh.Endpoints(), Objects: map[string]int{},
	}
	for _, w := range m.Mesh.Workloads {
		if w.Spec.Gateway {
			r.Gateways += w.Spec.Replicas
		}
	}
	for _, of := range m.Mesh.ObjectCounts() {
		r.Objects[of.Kind] = of.Count
	}
	return r
}

// templates are those of the workloads' pods.
func (m *MeshFile) templates() []corev1.PodTemplateSpec {
	var all []corev1.PodTemplateSpec
	for _, w := range m.Mesh.Workloads {
		all = append(all, w.Template())
	}
	return all
}

// useMesh makes the control plane that of a captured mesh, if there is one.
func (r *run) useMesh(ctx context.Context) error {
	if r.spec.Mesh == nil {
		return nil
	}
	if err := r.adapter.Captured.Prepare(ctx, &r.spec.Mesh.Mesh); err != nil {
		return fmt.Errorf("preparing the control plane for the captured mesh: %w", err)
	}
	mesh, unchecked := r.adapter.Captured.Replay(&r.spec.Mesh.Mesh)
	r.adapter.Mesh, r.adapter.Probes = mesh, nil
	r.journal.Update(func(run *record.Run) { run.Mesh.NotChecked = unchecked })
	return nil
}
