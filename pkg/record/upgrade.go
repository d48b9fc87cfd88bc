package record

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/internal/output"
)

// Upgrade is the move of a mesh from one version of its control plane to another, after
// the steady phase. Its stages are phases of the run, whose names begin with
// UpgradePrefix.
type Upgrade struct {
	From UpgradeVersion `json:"from"`
	To   UpgradeVersion `json:"to"`
	// Stages has the stages that ended, by name: start, wave-1 and so on, rollback, remove and after; of
	// an upgrade in place replace and restart.
	Stages map[string]*UpgradeStage `json:"stages,omitempty"`
	Room   *UpgradeRoom             `json:"room,omitempty"`
}

// UpgradeVersion is one of the two control planes of an upgrade.
type UpgradeVersion struct {
	Program  string `json:"program"`            // its name in samples and the time line
	Version  string `json:"version"`            // as the program reports
	Revision string `json:"revision,omitempty"` // by which pods know it; "" = there are none
}

// UpgradeStage is a part of an upgrade.
type UpgradeStage struct {
	Pods     *int          `json:"pods,omitempty"`     // of the workloads and proxies that are moved in it
	Replaced *int          `json:"replaced,omitempty"` // pods created in place of others
	Moved    []UpgradeUnit `json:"moved,omitempty"`    // what is moved in it: proxies and, of a captured mesh, what workloads follow
	From     *UpgradeSide  `json:"from,omitempty"`     // the old control plane; absent where it did not run
	To       *UpgradeSide  `json:"to,omitempty"`       // the new one
	// PeakCores and PeakMemoryBytes are those of both together, at one moment.
	PeakCores       *float64  `json:"peakCores,omitempty"`
	PeakMemoryBytes *float64  `json:"peakMemoryBytes,omitempty"`
	PeakPods        *int      `json:"peakPods,omitempty"` // the most pods that were there at once
	Latencies       Latencies `json:"latencies,omitzero"` // of the pods created meanwhile
}

// UpgradeUnit is a part of a mesh that is moved at once: the workloads of a captured mesh whose pods follow one label, or proxies that
// are no sidecars.
type UpgradeUnit struct {
	Kind       UpgradeKind `json:"kind"`
	Name       string      `json:"name"`                 // of the namespace, the tag, the revision, or the proxy of a node
	Namespaces []string    `json:"namespaces,omitempty"` // of its workloads
	Pods       int         `json:"pods"`                 // that have sidecars, or are proxies
}

// UpgradeKind states what an UpgradeUnit is, and what its pods follow.
type UpgradeKind string

// The kinds of an UpgradeUnit.
const (
	UpgradeNamespace UpgradeKind = "namespace" // the label of their namespace, which no other has to do with
	UpgradeTag       UpgradeKind = "tag"       // a tag, which is moved for all its namespaces
	UpgradeRevision  UpgradeKind = "revision"  // a revision that is newer in the captured mesh already
	UpgradeNodes     UpgradeKind = "nodes"     // the proxies of nodes, by the DaemonSet that has them
	UpgradeWaypoints UpgradeKind = "waypoints" // the waypoints, by the labels of their Gateways
)

// OfProxies reports whether a unit of this kind is proxies that are no sidecars.
func (k UpgradeKind) OfProxies() bool { return k == UpgradeNodes || k == UpgradeWaypoints }

// UpgradeSide is one control plane in a stage, and the proxies that are connected to it.
type UpgradeSide struct {
	ControlPlane *Usage                  `json:"controlPlane,omitempty"`
	Responses    *int64                  `json:"responses,omitempty"` // that its sidecars received
	Push         map[ChangeKind]*Latency `json:"push,omitempty"`      // endpoint change seen to a sidecar's having it
	// Stale is the mean number of stale endpoints at a moment, over all its sidecars: the time
	// for which sidecars held endpoints that were gone, added up, over the stage's length.
	Stale *float64 `json:"stale,omitempty"`
}

// UpgradeRoom is the usage of both control planes together at the peak of an upgrade, less
// the usage of the old one in the steady phase before it.
type UpgradeRoom struct {
	Cores       *float64 `json:"cores,omitempty"`
	CoresStage  string   `json:"coresStage,omitempty"` // the stage of the peak
	MemoryBytes *float64 `json:"memoryBytes,omitempty"`
	MemoryStage string   `json:"memoryStage,omitempty"`
	Pods        *int     `json:"pods,omitempty"` // pods there at once beyond those of the mesh
}

// UpgradePrefix begins the names of the phases that are stages of an upgrade.
const UpgradePrefix = "upgrade-"

// UpgradePhase returns the phase of a stage.
func UpgradePhase(stage string) PhaseName { return PhaseName(UpgradePrefix + stage) }

// UpgradeStages returns the names of a run's stages, in the order of time, and after them those
// that are no phases.
func (r *Run) UpgradeStages() []string {
	if r.Upgrade == nil {
		return nil
	}
	var all []string
	add := func(name string) {
		if r.Upgrade.Stages[name] != nil && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	for _, p := range r.Phases {
		if name, ok := strings.CutPrefix(string(p.Name), UpgradePrefix); ok {
			add(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Upgrade.Stages)) {
		add(name)
	}
	return all
}

// FindRoom sets the room of an upgrade from its stages and the steady phase. It sets
// nothing where one of these was not measured.
func (r *Run) FindRoom() {
	if r.Upgrade == nil || r.ControlPlane == nil || r.ControlPlane.Steady == nil {
		return
	}
	before := r.ControlPlane.Steady
	room := &UpgradeRoom{}
	greatest := func(before *float64, of func(*UpgradeStage) *float64) (more *float64, at string) {
		if before == nil {
			return nil, ""
		}
		for _, name := range r.UpgradeStages() {
			if peak := of(r.Upgrade.Stages[name]); peak != nil && (more == nil || *peak-*before > *more) {
				more, at = new(max(0, *peak-*before)), name
			}
		}
		return more, at
	}
	room.Cores, room.CoresStage = greatest(orZero(before.Cores).Mean, func(s *UpgradeStage) *float64 { return s.PeakCores })
	room.MemoryBytes, room.MemoryStage = greatest(orZero(before.MemoryBytes).Peak, func(s *UpgradeStage) *float64 { return s.PeakMemoryBytes })
	for _, s := range r.Upgrade.Stages {
		if s.PeakPods != nil && (room.Pods == nil || *s.PeakPods-r.PodCount() > *room.Pods) {
			room.Pods = new(max(0, *s.PeakPods-r.PodCount()))
		}
	}
	if room.Cores != nil && room.MemoryBytes != nil {
		r.Upgrade.Room = room
	}
}

// UpgradeSentence states what a cluster must have free during the upgrade; "" where that is
// not known.
func (r *Run) UpgradeSentence() string {
	u := r.Upgrade
	if u == nil || u.Room == nil {
		return ""
	}
	room := u.Room
	at := fmt.Sprintf("at its peak in %s", stageText(room.CoresStage))
	if room.MemoryStage != room.CoresStage {
		at = fmt.Sprintf("cores in %s, memory in %s", stageText(room.CoresStage), stageText(room.MemoryStage))
	}
	text := fmt.Sprintf("During the upgrade from %s to %s the cluster needs %s cores and %s more than before for control planes, %s",
		u.From.Version, u.To.Version, strconv.FormatFloat(*room.Cores, 'g', 3, 64), output.Bytes(*room.MemoryBytes), at)
	if room.Pods != nil && *room.Pods > 0 {
		text += ", and room for " + output.Many(*room.Pods, "more pod")
	}
	return text + "."
}

// waveNames is the most namespaces of a unit, and the most units of a wave, that a text names.
const waveNames = 3

// UpgradeWaves states what waves of an upgrade moved; "" where each moved workloads of a synthetic mesh, which are alike.
func (r *Run) UpgradeWaves() string {
	if r.Upgrade == nil {
		return ""
	}
	var waves []string
	for _, name := range r.UpgradeStages() {
		s := r.Upgrade.Stages[name]
		if n, ok := strings.CutPrefix(name, wavePrefix); ok && s.Moved != nil && s.Pods != nil {
			waves = append(waves, fmt.Sprintf("wave %s moved %s: %s", n, output.Many(*s.Pods, "pod"), UpgradeUnits(s.Moved)))
		}
	}
	if waves == nil {
		return ""
	}
	text := strings.Join(waves, "; ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// UpgradeUnits names what is moved; "" of nothing.
func UpgradeUnits(units []UpgradeUnit) string {
	var all []string
	var single []string // namespaces that are moved on their own
	for _, u := range units {
		switch u.Kind {
		case UpgradeNamespace:
			single = append(single, u.Name)
		case UpgradeTag:
			all = append(all, fmt.Sprintf("tag %s of %s", u.Name, namespacesText(u.Namespaces)))
		case UpgradeNodes:
			all = append(all, "the "+u.Name+"s")
		case UpgradeWaypoints:
			all = append(all, "the waypoints")
		case UpgradeRevision:
			all = append(all, fmt.Sprintf("revision %s, newer already, of %s", u.Name, namespacesText(u.Namespaces)))
		}
	}
	if single != nil {
		all = append(all, "by label "+namespacesText(single))
	}
	return output.FirstOf(all, waveNames)
}

// namespacesText names namespaces.
func namespacesText(names []string) string {
	if len(names) == 1 {
		return "namespace " + names[0]
	}
	return fmt.Sprintf("%d namespaces (%s)", len(names), output.FirstOf(names, waveNames))
}

// wavePrefix begins the names of stages that are waves.
const wavePrefix = "wave-"

// stageText returns the name of a stage in a sentence.
func stageText(stage string) string {
	if n, ok := strings.CutPrefix(stage, wavePrefix); ok {
		return "wave " + n
	}
	return "the stage " + stage
}

// pushesOf returns the pushes of a side.
func pushesOf(s *UpgradeSide) []Distribution {
	var all []Distribution
	for _, kind := range endpointChanges {
		all = append(all, Distribution{Path: "push." + string(kind), Label: "push: " + string(kind), Counts: "sidecar of each change", Latency: s.Push[kind],
			From: sliceSeen, To: sliceReceived,
			Note: "It is of the sidecars which that version serves."})
	}
	return all
}
