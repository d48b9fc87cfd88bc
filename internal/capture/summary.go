package capture

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/output"
)

// rootNamespace is the namespace whose configuration applies to the whole mesh.
const rootNamespace = "istio-system"

// maxReported limits the dangling references that a summary names.
const maxReported = 10

// Summary prints the contents of a mesh, what was left out and why, and dangling
// references.
func (m *Mesh) Summary(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(what string, count int, note string) { fmt.Fprintf(table, "%s\t%d\t%s\n", what, count, note) }
	line("namespaces", len(m.Namespaces), "")
	var headless, external, ports int
	for _, s := range m.Services {
		ports += len(s.Spec.Ports)
		switch {
		case s.Spec.Type == corev1.ServiceTypeExternalName:
			external++
		case s.Spec.ClusterIP == corev1.ClusterIPNone:
			headless++
		}
	}
	line("services", len(m.Services), fmt.Sprintf("%d ports; %d headless, %d ExternalName; %d endpoints", ports, headless, external, m.Endpoints()))
	owners := map[string]int{}
	for _, of := range m.Workloads {
		owners[of.Spec.Owner]++
	}
	line("workloads", len(m.Workloads), counted(owners))
	pods := m.Pods()
	line("pods with sidecars", pods[Sidecar]+pods[Gateway], fmt.Sprintf("%d of them gateways", pods[Gateway]))
	if ambient := pods[Ambient] + pods[Ztunnel] + pods[Waypoint]; ambient > 0 {
		line("pods in ambient mode", pods[Ambient], "which have no proxy of their own")
		line("ztunnels", pods[Ztunnel], "")
		line("waypoints", pods[Waypoint], "")
	}
	line("pods without", pods[NoProxy], "")
	zones := map[string]int{}
	for _, z := range m.Zones() {
		zones[z.Zone] = z.Pods
	}
	line("zones", len(zones), counted(zones))
	m.summarizeControlPlane(line)
	fmt.Fprintf(table, "\nOBJECTS\tREAD\tKEPT\n")
	for _, c := range m.Captured {
		fmt.Fprintf(table, "%s\t%d\t%d\n", c.Kind, c.Read, c.Kept)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, text := range m.histories() {
		fmt.Fprintln(w, text)
	}
	for _, l := range m.LeftOut {
		count := ""
		if l.Count > 0 {
			count = strconv.Itoa(l.Count) + " "
		}
		fmt.Fprintf(w, "left out: %s%s: %s\n", count, l.Kind, l.Reason)
	}
	replay, without := *m, []Difference(nil)
	if m.Pods()[Ambient] > 0 {
		replay, without = m.ByNode(true)
	}
	for _, d := range append(without, replay.Differences()...) {
		fmt.Fprintf(w, "not reproduced: %s\n", d)
	}
	dangling := m.Dangling()
	for _, r := range dangling[:min(len(dangling), maxReported)] {
		fmt.Fprintf(w, "refers to nothing: %s\n", r)
	}
	if more := len(dangling) - maxReported; more > 0 {
		fmt.Fprintf(w, "refers to nothing: %d more\n", more)
	}
	return nil
}

// summarizeControlPlane prints what is known of the control plane, revision by revision.
func (m *Mesh) summarizeControlPlane(line func(what string, count int, note string)) {
	if m.ControlPlane == nil {
		line("control planes", 0, "a rollout runs one with the settings of a stock installation")
		return
	}
	served := m.Served()
	for i := range m.ControlPlane.Revisions {
		r := &m.ControlPlane.Revisions[i]
		parts := []string{"version " + cmp.Or(r.Release(), "not known"), "replicas not known"}
		if r.Replicas > 0 {
			parts[1] = output.Many(r.Replicas, "replica")
		}
		if r.Autoscaler != nil {
			parts = append(parts, fmt.Sprintf("autoscaled %d to %d", r.Autoscaler.Min, r.Autoscaler.Max))
		}
		if len(r.Tags) > 0 {
			parts = append(parts, "tags "+strings.Join(r.Tags, ", "))
		}
		settings, _ := r.Settings()
		parts = append(parts, output.Many(len(settings), "setting"), output.Many(len(r.Namespaces), "namespace"))
		if r.MeshConfig == nil {
			parts = append(parts, "mesh configuration not known")
		}
		if r.Injection == nil {
			parts = append(parts, "injection not known")
		}
		if r == served && len(m.ControlPlane.Revisions) > 1 {
			parts = append(parts, "which a rollout runs")
		}
		line("pods of revision "+r.Name, r.Pods, strings.Join(parts, ", "))
	}
	if m.ControlPlane.Masked > 0 {
		line("credentials masked", m.ControlPlane.Masked, "in settings, arguments, mesh configuration, values and templates")
	}
}

// String returns the difference as it is reported.
func (d Difference) String() string {
	text := d.What
	if d.Value != "" {
		text += " = " + d.Value
	}
	return text + ": may change " + d.Changes
}

// Count is the number of objects of a kind.
type Count struct {
	Kind  string // plural and group, as in `kubectl get`
	Count int
}

// ObjectCounts counts the objects of the mesh's configuration and its EndpointSlices, sorted by kind.
func (m *Mesh) ObjectCounts() []Count {
	counts := map[string]int{}
	for _, o := range m.Objects {
		r, _ := Configuration(o.GroupVersionKind())
		counts[r.name()]++
	}
	if len(m.Slices) > 0 {
		counts[endpointSlices.name()] = len(m.Slices)
	}
	var all []Count
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, Count{kind, counts[kind]})
	}
	return all
}

// counted formats counts as in "12 Deployment, 3 StatefulSet", the largest first.
func counted(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

// text formats a set of labels as a selector.
func text(labels map[string]string) string { return output.Pairs(labels, ",") }
