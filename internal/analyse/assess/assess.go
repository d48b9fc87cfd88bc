// Package assess judges an upgrade of a captured mesh: whether its control plane can be moved to another version as it
// is set, from the records of a rehearsal and what was captured.
//
// It is pure: facts go in, a verdict with its reasons and what to set come out. Who captures, makes the runs and keeps
// their records is left to others.
package assess

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/analyse/diff"
	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Facts are the facts that determine a verdict.
type Facts struct {
	Captured Captured
	// From is the captured version at the captured state, Onto the new version with the same mesh, and Upgrade the
	// move from one to the other in waves.
	From, Onto, Upgrade Step
	// Environment states which variables that are set the new version still reads; nil = the versions were not asked.
	Environment *Environment
	// Diff has the differences between the configurations that proxies hold of both versions; nil = a side did not keep them.
	Diff *diff.Result
	// Held has the sizes of what proxies held with the captured version, by type; nil = they were not kept.
	Held map[string]Held
	// Growth is the plan of a larger mesh; nil = none was asked for.
	Growth *Growth
}

// CopiesFolder is the folder, below that of an assessment, of the runs that [Growth] is planned from.
const CopiesFolder = "copies"

// Growth is the plan for several copies of the mesh. One istiod of the new version serves all of them.
type Growth struct {
	Scale   int            `json:"scale"`             // copies that are planned for
	Plan    *capacity.Plan `json:"plan,omitempty"`    // nil = the runs do not allow one
	Unknown string         `json:"unknown,omitempty"` // why there is none
}

// paragraphs state what a larger mesh needs.
func (g *Growth) paragraphs() []string {
	if g.Plan == nil {
		return []string{fmt.Sprintf("What %d copies of the mesh need is not known: %s.", g.Scale, strings.TrimSuffix(g.Unknown, "."))}
	}
	all := g.Plan.Paragraphs()
	all[0] = fmt.Sprintf("%d copies of the mesh, %s, with one istiod of the new version: %s", g.Scale, output.Many(g.Plan.Target.Pods, "pod"), all[0])
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// Step is one run of a rehearsal.
type Step struct {
	Run         *record.Run
	OutOfMemory bool // the kernel killed the control plane for exceeding its memory limit
}

// withSidecars reports whether each pod of a run has a proxy of its own.
func withSidecars(r *record.Run) bool { return r.Dataplane() == record.SidecarDataplane }

// namedRun is the run of a step of the rehearsal, by the name that a Moment has for the step.
type namedRun struct {
	name string
	run  *record.Run
}

// steps returns the runs of the rehearsal in their order.
func (f Facts) steps() []namedRun {
	return []namedRun{{"from", f.From.Run}, {"to", f.Onto.Run}, {"upgrade", f.Upgrade.Run}}
}

// completed reports whether all phases of the step were done.
func (s Step) completed() bool { return s.Run.Status == record.StatusCompleted }

// Captured describes the control plane in production, and the parts of the mesh's configuration that are
// searched for in what proxies hold.
type Captured struct {
	Release string `json:"release,omitempty"` // version that runs in production; "" = it is not known
	// Stated reports that the version of the rehearsal was stated by the user, in place of Release.
	Stated bool `json:"stated,omitempty"`
	// Installed reports that the installation could be read: replicas, requests and limits are known.
	Installed  bool                `json:"installed"`
	Replicas   int                 `json:"replicas,omitempty"`
	Autoscaler *capture.Autoscaler `json:"autoscaler,omitempty"`
	Requests   map[string]string   `json:"requests,omitempty"` // of each replica, by resource
	Limits     map[string]string   `json:"limits,omitempty"`
	History    *capture.History    `json:"history,omitempty"`   // nil = it was captured without a Prometheus
	Variables  []capture.Variable  `json:"variables,omitempty"` // that not every installation sets
	Patches    []Patch             `json:"patches,omitempty"`   // of EnvoyFilters
	// NodeSpeed is the speed of the nodes that istiod runs on in production; nil = it is not known.
	NodeSpeed *record.Speed `json:"nodeSpeed,omitempty"`
}

// NewCaptured returns what is known of a captured mesh; stated is [Captured.Stated].
func NewCaptured(m *capture.Mesh, stated bool) Captured {
	c := Captured{Stated: stated, Patches: patchesOf(m)}
	if r := m.Served(); r != nil {
		c.Release, c.Installed = r.Release(), r.Replicas > 0
		c.Variables = r.Variables()
		c.Replicas, c.Autoscaler, c.Requests, c.Limits, c.History = r.Replicas, r.Autoscaler, r.Requests, r.Limits, r.History
	}
	return c
}

// Observed returns a figure of the captured history; nil = the file does not have it.
func (c Captured) Observed(figure, kind string) *capture.Observed {
	if c.History == nil {
		return nil
	}
	i := slices.IndexFunc(c.History.Figures, func(o capture.Observed) bool { return o.Figure == figure && o.Kind == kind })
	if i < 0 {
		return nil
	}
	return &c.History.Figures[i]
}

// Verdict is the answer of an assessment.
type Verdict string

// The verdicts.
const (
	Go            Verdict = "GO"
	GoWithChanges Verdict = "GO WITH CHANGES" // once Settings are set
	NoGo          Verdict = "NO GO"
	CannotTell    Verdict = "CANNOT TELL"
)

// Outcome is the outcome of one check.
type Outcome string

// The outcomes.
const (
	Holds      Outcome = "holds"
	Needs      Outcome = "needs a change"
	Broken     Outcome = "broken"
	Unknown    Outcome = "cannot tell"
	NotChecked Outcome = "not checked"
)

// Check is one thing that was looked at.
type Check struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Text    string  `json:"text"`
	// Basis reports that the other checks have no meaning where the outcome of this one is Unknown.
	Basis bool `json:"basis,omitempty"`
	// Aside reports that its outcome does not affect the verdict.
	Aside bool `json:"aside,omitempty"`
}

// Assessment is a verdict and all behind it.
type Assessment struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"` // Assessment
	Verdict    Verdict `json:"verdict"`
	// Mesh describes the mesh in one line.
	Mesh string `json:"mesh"`
	From string `json:"from"` // versions that ran
	To   string `json:"to"`
	// Reasons are the texts of the checks that decide.
	Reasons []string `json:"reasons"`
	Checks  []Check  `json:"checks"`
	// Moments have the usage of one istiod in each phase, in the order of the runs.
	Moments []Moment `json:"moments"`
	// OfNodes reports that cores of Moments are those of production's nodes.
	OfNodes bool `json:"ofNodes,omitempty"`
	// Worst is the moment of the greatest memory; nil = none was measured.
	Worst *Moment `json:"worst,omitempty"`
	// Installed describes the control plane in production.
	Installed Captured `json:"installed"`
	// Room states what the cluster needs in addition during the upgrade; "" = it is not known.
	Room     string    `json:"room,omitempty"`
	Settings []Setting `json:"settings"`
	// Differences are the differences of what proxies hold; nil = they are not known.
	Differences *diff.Result `json:"differences,omitempty"`
	// NotReproduced lists the parts of the captured cluster that differ in the rehearsal.
	NotReproduced []record.NotReproduced `json:"notReproduced,omitempty"`
	// Growth is the plan of a larger mesh, of which no verdict is made; nil = none was asked for.
	Growth *Growth `json:"growth,omitempty"`

	sidecars bool // each pod has one
}

// Judge judges an upgrade.
func Judge(f Facts) Assessment {
	a := Assessment{
		APIVersion: record.APIVersion, Kind: "Assessment", Installed: f.Captured, Differences: f.Diff, Growth: f.Growth, Settings: []Setting{}, sidecars: withSidecars(f.From.Run),
		Mesh: meshText(f.From.Run), From: f.From.Run.Environment.ControlPlane.Version, To: f.Onto.Run.Environment.ControlPlane.Version,
	}
	if f.From.Run.Mesh != nil {
		a.NotReproduced = f.From.Run.Mesh.NotReproduced
	}
	processorTime := f.processorTime()
	speed, whyNot := f.nodeSpeed(f.From.Run, f.Onto.Run, f.Upgrade.Run)
	if a.OfNodes = speed > 0; a.OfNodes {
		for _, s := range []*Step{&f.From, &f.Onto, &f.Upgrade} {
			s.Run = s.Run.OnProcessor(speed)
		}
	}
	if f.share() == 0 {
		a.Room = f.Upgrade.Run.UpgradeSentence()
	}
	a.Moments = f.moments()
	a.Worst = worst(a.Moments)
	model, agreement := f.model()
	memory, settings := f.memory(a.Worst, agreement)
	processors, requests := f.processors(a.Moments, whyNot)
	a.Settings = append(append(a.Settings, settings...), requests...)
	a.Checks = []Check{
		f.version(), f.state(), model, processorTime, f.onto(), f.upgrade(), memory, processors, f.configuration(), f.patches(), f.environment(),
		f.recovery(), f.changes(), f.pushes(), f.bytes(),
	}
	a.Verdict, a.Reasons = conclude(a.Checks)
	return a
}

// share returns the share of the pods of each workload that was rehearsed; 0 = all.
func (f Facts) share() scenario.Share { return f.From.Run.Scenario.Mesh.Share }

// conclude makes the verdict of checks. Where the rehearsal is not of what production is, nothing else counts.
func conclude(checks []Check) (Verdict, []string) {
	of := func(is func(Check) bool) (texts []string) {
		for _, c := range checks {
			if is(c) && (!c.Aside || c.Outcome == Holds) {
				texts = append(texts, c.Name+": "+c.Text)
			}
		}
		return texts
	}
	if texts := of(func(c Check) bool { return c.Basis && c.Outcome == Unknown }); texts != nil {
		return CannotTell, texts
	}
	for _, one := range []struct {
		outcome Outcome
		verdict Verdict
	}{{Broken, NoGo}, {Unknown, CannotTell}, {Needs, GoWithChanges}} {
		if texts := of(func(c Check) bool { return c.Outcome == one.outcome }); texts != nil {
			return one.verdict, texts
		}
	}
	return Go, of(func(c Check) bool { return c.Outcome == Holds })
}

// meshText describes a mesh in one line.
func meshText(r *record.Run) string {
	proxies := "with sidecars"
	if !withSidecars(r) {
		proxies = "in data plane " + r.Dataplane()
	}
	text := fmt.Sprintf("%s %s, %s, %s", output.Many(r.PodCount(), "pod"), proxies, output.Many(r.ServiceCount(), "service"), output.Many(r.NamespaceCount(), "namespace"))
	if m := r.Mesh; m != nil {
		objects := 0
		for _, n := range m.Objects {
			objects += n
		}
		text += fmt.Sprintf(", %s of configuration, %s outside the mesh; file %s", output.Many(objects, "object"), output.Many(m.Outside, "pod"), m.Digest)
		if of := r.Scenario.Mesh.Revision; of != "" {
			text += fmt.Sprintf(", revision %s alone, with %s of others as endpoints", of, output.Many(m.OtherRevisions, "pod"))
		}
		if share := r.Scenario.Mesh.Share; share > 0 {
			text += fmt.Sprintf(", %s of the pods of each workload", share)
		}
		if scale := r.Scenario.Mesh.Scale.First(); scale > 1 {
			text += fmt.Sprintf(", %d copies of each namespace", scale)
		}
	}
	return text
}

// last names the last phase of a run in words.
func last(r *record.Run) string {
	if len(r.Phases) == 0 {
		return "its start"
	}
	name := string(r.Phases[len(r.Phases)-1].Name)
	if stage, ok := strings.CutPrefix(name, record.UpgradePrefix); ok {
		return "stage " + stage + " of the upgrade"
	}
	return name
}
