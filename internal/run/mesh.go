package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// MeshFile is a captured mesh that is rolled out.
type MeshFile struct {
	File   string // as it was named: a path, or the name of a sample
	Digest string // first 12 digits of the SHA-256 of its content
	Scale  int    // copies that Mesh has of the file's mesh, 1 or more
	Mesh   capture.Mesh

	ztunnels  int  // of one copy; 0 = the scenario decides about nodes
	byNode    bool // pods in ambient mode have the proxy of their node, see [capture.Mesh.ByNode]
	waypoints bool // its waypoints are replayed
	perNode   bool // the scenario states how many pods a node has

	lacks []capture.Difference // of the file's mesh, where an existing cluster cannot have all of it
}

// capturedKnobs are the knobs of a captured mesh: its own configuration decides.
var capturedKnobs = scenario.Settings{MTLS: topology.Captured, Scope: topology.Captured, Authz: topology.Captured}

// ReadMesh reads the file of a captured mesh, or a sample. The error names the field, mesh.file.
func ReadMesh(path string) (*MeshFile, error) {
	f, err := capture.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	digest := sha256.New()
	mesh, err := capture.Read(path, io.TeeReader(f, digest))
	if err != nil {
		return nil, fmt.Errorf("mesh.file: %w", err)
	}
	if pods := mesh.Pods(); pods[capture.Sidecar]+pods[capture.Gateway]+pods[capture.Ambient] == 0 {
		return nil, scenario.Refuse("mesh.file", path, "one with a sidecar or a pod in ambient mode at least")
	}
	return &MeshFile{File: path, Digest: hex.EncodeToString(digest.Sum(nil))[:12], Scale: 1, Mesh: mesh}, nil
}

// useDataplane makes the mesh that of the document's data plane. Where the document leaves it to the file, and has nothing that goes with
// sidecars alone, it is the one that the mesh has: pods in ambient mode have the proxy of their node then, and the document states how many pods a node has.
func (m *MeshFile) useDataplane(s Spec, d *scenario.Document) error {
	const dataplane, perNode, waypoints = "mesh.dataplane", "mesh.podsPerNode", "mesh.waypoints"
	pods := m.Mesh.Pods()
	sidecars := pods[capture.Sidecar]+pods[capture.Gateway] > 0
	s.Scenario = d.Scenario
	if pods[capture.Ambient] > 0 && !d.Given(dataplane) && !ofSidecarsAlone(d) {
		driver, err := s.Driver()
		if err != nil {
			return err
		}
		if at := slices.IndexFunc(driver.Dataplanes, func(one controlplane.OtherDataplane) bool { return one.Mixed == sidecars }); at >= 0 {
			if err := d.Fill(dataplane, m.File, driver.Dataplanes[at].Name); err != nil {
				return err
			}
		}
	}
	s.Scenario = d.Scenario
	m.byNode, m.perNode = !s.WithSidecars(), d.Stated(perNode)
	if m.byNode && !d.Stated(waypoints) && len(m.Mesh.OwnWaypoints()) > 0 {
		if err := d.Fill(waypoints, m.File, controlplane.CapturedWaypoints); err != nil {
			return err
		}
	}
	m.waypoints = m.byNode && d.Scenario.Mesh.Waypoints == controlplane.CapturedWaypoints
	ztunnels := pods[capture.Ztunnel]
	if !m.byNode || ztunnels == 0 {
		if !m.byNode && m.perNode && s.Mesh.PodsPerNode != scenario.Default().Mesh.PodsPerNode {
			return scenario.Refuse(perNode, s.Mesh.PodsPerNode, "it with mesh.dataplane ambient or mixed")
		}
		return nil
	}
	all := -ztunnels
	for _, n := range pods {
		all += n
	}
	of := min(maxPerNode, max(1, int(math.Round(float64(all)/float64(ztunnels)))))
	if m.perNode && s.Mesh.PodsPerNode != of { // else it is that of the file, as a record or a printed scenario has it
		return nil
	}
	m.perNode = false
	return d.Fill(perNode, m.File, strconv.Itoa(of))
}

// maxPerNode is the most pods that a node has in a scenario.
const maxPerNode = 250

// ofSidecarsAlone reports whether a document has something that a mesh in which nodes have proxies cannot have.
func ofSidecarsAlone(d *scenario.Document) bool {
	return slices.ContainsFunc([]string{"mesh.sidecars.startDelay", "mesh.sidecars.real", "mesh.sidecars.xds", "mesh.sidecars.certificateLifetime"}, d.Stated) ||
		d.Scenario.Place.Context != ""
}

// nodes returns the number of nodes that have a proxy each, as many as the captured mesh had; 0 = it is not known.
func (m *MeshFile) nodes() int {
	return m.ztunnels * m.Scale
}

// of reduces the mesh to one of its revisions, by [capture.Mesh.Of]; "" changes nothing. The error names the field, mesh.revision.
func (m *MeshFile) of(revision string) error {
	if revision == "" {
		return nil
	}
	mesh, err := m.Mesh.Of(revision)
	if err != nil {
		return scenario.Refuse("mesh.revision", revision, "%s", err)
	}
	m.Mesh = mesh
	return nil
}

// times returns the mesh of a file, or a share of the pods of its workloads, at each of several scales, of which there is one at
// least. The error names the field, mesh.scale.
func (m *MeshFile) times(scales []int, share scenario.Share) (all []*MeshFile, err error) {
	if err := eachOnce("mesh.scale", scales); err != nil {
		return nil, err
	}
	of := *m
	if share > 0 {
		of.Mesh = m.Mesh.Share(float64(share))
	}
	if !m.perNode {
		of.ztunnels = of.Mesh.Pods()[capture.Ztunnel]
	}
	for _, scale := range scales {
		scaled := of
		scaled.Scale = scale
		if scaled.Mesh, err = of.Mesh.Times(scale); err != nil {
			return nil, err
		}
		if m.byNode {
			scaled.Mesh, scaled.lacks = scaled.Mesh.ByNode(m.waypoints)
		}
		all = append(all, &scaled)
	}
	return all, nil
}

// Replay makes a specification, which has the scenario of a record, one of the captured mesh that the run replayed, at
// a scale. The file must have the content of that digest. Errors of fields are of type *[scenario.Error].
func (s *Spec) Replay(digest string, scale int) error {
	m, err := ReadMesh(s.Mesh.File)
	if err != nil {
		return err
	}
	if m.Digest != digest {
		return scenario.Refuse("mesh.file", s.Mesh.File, "the file that the runs replayed, whose SHA-256 begins with %s, not with %s", digest, m.Digest)
	}
	if err := m.of(s.Mesh.Revision); err != nil {
		return err
	}
	if s.ControlPlane.Configuration == scenario.StockConfiguration {
		m.Mesh.ControlPlane = nil
	}
	m.byNode, m.waypoints = !s.WithSidecars(), s.Mesh.Waypoints == controlplane.CapturedWaypoints
	all, err := m.times([]int{scale}, s.Mesh.Share)
	if err != nil {
		return err
	}
	driver, err := s.Driver()
	if err != nil {
		return err
	}
	s.UseMesh(all[0])
	s.Mesh.Mode = scenario.List[string]{driver.Modes[0].Name} // which the record of a captured mesh does not state
	return nil
}

// UseMesh makes a specification one of a captured mesh, which decides its size.
func (s *Spec) UseMesh(m *MeshFile) {
	s.Captured = m
	s.Mesh.Scale = scenario.List[int]{m.Scale}
	sidecars, _ := m.Mesh.Members()
	s.Mesh.Pods, s.Mesh.Services, s.Mesh.Namespaces = scenario.List[int]{sidecars}, len(m.Mesh.Services), len(m.Mesh.Namespaces)
}

// placed returns the specification with a captured mesh in the form that an existing cluster has it in; any other one as it is. It is
// called once. The error names the field, mesh.file.
func (s Spec) placed() (Spec, error) {
	if s.Captured == nil || s.Existing == nil {
		return s, nil
	}
	m := *s.Captured
	mesh, lacks, err := m.Mesh.Into("mesh-"+s.Existing.ID+"-", map[string]string{kwok.RunLabel: s.Existing.Label(s.shortName())})
	if err != nil {
		return s, scenario.Refuse("mesh.file", m.File, "one whose namespaces can have names of a run: %s", err)
	}
	m.Mesh, m.lacks = mesh, lacks
	s.Captured = &m
	return s, nil
}

// placedMesh returns the mesh of a specification that was placed, under the names that it has in its cluster.
func (s Spec) placedMesh() topology.Mesh {
	if s.Captured != nil {
		return s.mesh()
	}
	return s.place().mesh(s.mesh())
}

// mesh returns the mesh that is rolled out.
func (s Spec) mesh() topology.Mesh {
	if s.Captured != nil {
		return s.Captured.Mesh.Topology()
	}
	mesh := topology.Build(s.topology())
	if driver, err := s.Driver(); err == nil && !s.WithSidecars() {
		for i := range mesh.Services {
			of := &mesh.Services[i]
			of.ByNode = !driver.Mixed || !controlplane.MixedSidecars(mesh, of.Namespace)
		}
	}
	if s.Existing != nil && s.Mesh.Sidecars.Real > 0 {
		_ = fleet.SpreadReal(mesh.Services, s.Mesh.Sidecars.Real) // checkReal reports its error
	}
	return mesh
}

// checkMesh checks what goes with a captured mesh.
func (s Spec) checkMesh(d controlplane.Driver) error {
	if s.Captured == nil {
		if s.Mesh.Waypoints == controlplane.CapturedWaypoints {
			return scenario.Refuse("mesh.waypoints", s.Mesh.Waypoints, "it with mesh.file")
		}
		return nil
	}
	refused := func(path string, value any, why string) error {
		return scenario.Refuse(path, value, "none with mesh.file, %s", why)
	}
	pods := s.Captured.Mesh.Pods()
	sidecars, ambient := pods[capture.Sidecar]+pods[capture.Gateway], pods[capture.Ambient]
	switch {
	case d.Captured == nil:
		return scenario.Refuse("mesh.file", s.Captured.File, "none with controlPlane.name %s, which cannot replay one", s.ControlPlane.Name)
	case s.WithSidecars() && sidecars == 0:
		return scenario.Refuse("mesh.file", s.Captured.File, "one with a sidecar at least: its %d pods in ambient mode are not replayed here", ambient)
	case s.WithSidecars():
	case ambient == 0:
		return refused("mesh.dataplane", s.Dataplane(), "which has no pods in ambient mode")
	case sidecars > 0 && !d.Mixed:
		return refused("mesh.dataplane", s.Dataplane(), fmt.Sprintf("which has %d pods with sidecars, too", sidecars))
	case s.Mesh.Waypoints != controlplane.NoWaypoints && s.Mesh.Waypoints != controlplane.CapturedWaypoints:
		return scenario.Refuse("mesh.waypoints", s.Mesh.Waypoints, "%s or %s with mesh.file", controlplane.CapturedWaypoints, controlplane.NoWaypoints)
	case s.Mesh.Waypoints == controlplane.CapturedWaypoints && s.Captured.Mesh.Waypoints == nil:
		return scenario.Refuse("mesh.waypoints", s.Mesh.Waypoints, "%s: the mesh has no waypoint", controlplane.NoWaypoints)
	}
	if sidecars, _ := s.Captured.Mesh.Members(); sidecars != s.Pods() {
		return scenario.Refuse("mesh.file", s.Captured.File, "none where sizes are searched for: it has %d pods with sidecars; mesh.scale multiplies them", sidecars)
	}
	if err := d.Captured.Check(&s.Captured.Mesh); err != nil {
		return fmt.Errorf("mesh.file: %w", err)
	}
	return nil
}

// recordedMesh describes a captured mesh for the record, as far as it is known before anything runs.
func (s Spec) recordedMesh() *record.Mesh {
	m := s.Captured
	if m == nil {
		return nil
	}
	_, outside := m.Mesh.Members()
	others := m.Mesh.Pods()[capture.OtherRevision]
	r := &record.Mesh{
		Digest: m.Digest, Anonymized: m.Mesh.Anonymized,
		Namespaces: len(m.Mesh.Namespaces), Services: len(m.Mesh.Services), Workloads: len(m.Mesh.Workloads), Outside: outside - others, OtherRevisions: others,
		Zones: len(m.Mesh.Zones()), Endpoints: m.Mesh.Endpoints(), Objects: map[string]int{},
	}
	for _, w := range m.Mesh.Workloads {
		if w.Spec.Proxy == capture.Gateway {
			r.Gateways += w.Spec.Replicas
		}
	}
	for _, of := range s.notReproduced() {
		r.NotReproduced = append(r.NotReproduced, record.NotReproduced(of))
	}
	for _, of := range m.Mesh.ObjectCounts() {
		r.Objects[of.Kind] = of.Count
	}
	return r
}

// templates returns the templates of the workloads' pods. They name only these templates of injection; others
// that they named are not part of the replay.
func (m *MeshFile) templates(injection []string) (all []corev1.PodTemplateSpec, stock record.NotChecked) {
	stock.What = record.UncheckedTemplates
	zoned := len(m.Mesh.Zones()) > 0
	for _, w := range m.Mesh.Workloads {
		w, others := w.WithTemplates(injection)
		if others != nil && w.Spec.HasSidecar() {
			stock.Count += w.Spec.Replicas
			stock.Examples = append(stock.Examples, strings.Join(others, ",")+" of "+w.ID())
		}
		template := w.Template()
		if len(w.Spec.Zones) == 0 && zoned {
			kwok.OutsideZones(&template.Spec) // nodeLabels has nodes for them
		}
		all = append(all, template)
	}
	stock.Examples = stock.Examples[:min(len(stock.Examples), 3)]
	return all, stock
}

// replay has an applier make the mesh, whose pods have templates. injected are the labels of namespaces with sidecars.
func (m *MeshFile) replay(a *workload.Applier, templates []corev1.PodTemplateSpec, injected map[string]string) {
	a.Templates, a.Around = templates, m.Mesh.Surroundings(injected)
	for _, w := range m.Mesh.Workloads {
		a.Annotations = append(a.Annotations, w.Annotations())
	}
}

// makeInjection creates the objects of the mesh that change what injection gives a pod. They are there from before the baseline: a
// control plane takes a change in after a time in which there is no further one, and injects pods that come before as if it were
// not there.
func (r *run) makeInjection(ctx context.Context) error {
	var first, others []*unstructured.Unstructured
	for _, o := range r.applier.Objects {
		if o.GetKind() == "ProxyConfig" {
			first = append(first, o)
		} else {
			others = append(others, o)
		}
	}
	if len(first) == 0 {
		return nil
	}
	if err := r.applier.Prepare(ctx, first); err != nil {
		return fmt.Errorf("creating what injection reads: %w", err)
	}
	r.applier.Objects = others
	return nil
}

// takenBy gives a control plane the mesh, and returns the parts of the mesh that are not compared with the configuration of sidecars.
func (m *MeshFile) takenBy(c *controlplane.ControlPlane) (unchecked []record.NotChecked) {
	c.Mesh, unchecked = c.Captured.Replay(&m.Mesh)
	if c.Nodes != nil {
		c.Nodes = c.Captured.Nodes(&m.Mesh)
	}
	c.Probes, c.Unprobed = c.Captured.Probes(&m.Mesh)
	c.Distributed = c.Captured.Distributed(&m.Mesh)
	return unchecked
}

// capturedEnv returns the settings that a control plane needs for a captured mesh; nil = none.
func (s Spec) capturedEnv(d controlplane.Driver) []string {
	if s.Captured == nil || d.Captured.Env == nil {
		return nil
	}
	return d.Captured.Env(&s.Captured.Mesh)
}

// useMesh makes the control plane that of a captured mesh, if there is one.
func (r *run) useMesh(ctx context.Context) error {
	if r.spec.Captured == nil {
		return nil
	}
	if err := r.adapter.Captured.Prepare(ctx, &r.spec.Captured.Mesh); err != nil {
		return fmt.Errorf("preparing the control plane for the captured mesh: %w", err)
	}
	unchecked := r.spec.Captured.takenBy(r.adapter)
	r.machines = r.adapter.Captured.Machines(&r.spec.Captured.Mesh)
	injection, err := r.adapter.Captured.Templates(ctx)
	if err != nil {
		return err
	}
	var stock record.NotChecked
	if r.templates, stock = r.spec.Captured.templates(injection); stock.Count > 0 {
		unchecked = append(unchecked, stock)
		r.progress.say(fmt.Sprintf("injection templates that the file does not have: %s injected without them (%s)", output.Many(stock.Count, "pod"), strings.Join(stock.Examples, "; ")))
	}
	r.unchecked = unchecked
	r.journal.Update(func(run *record.Run) { run.Mesh.NotChecked = unchecked })
	return nil
}
