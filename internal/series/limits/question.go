package limits

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Find is the value that a search looks for.
type Find string

// What can be searched for.
const (
	ChangeRate Find = "change-rate" // the most changes a second
	Pods       Find = "pods"        // the most pods
	Memory     Find = "memory"      // the least memory limit of the control plane
	CPUs       Find = "cpus"        // the fewest processors of the control plane
)

// Finds lists the values of Find.
var Finds = []Find{ChangeRate, Pods, Memory, CPUs}

// kinds state how the values of each Find are searched and printed.
var kinds = map[Find]struct {
	best   string // what is found
	unit   string // of the values
	harder bool
	step   float64
	print  func(float64) string
}{
	ChangeRate: {"highest change rate", "/s", true, 0, func(v float64) string { return short(v) + "/s" }},
	Pods:       {"largest mesh", "pods", true, 1, func(v float64) string { return short(v) + " pods" }},
	Memory:     {"smallest memory limit", "B", false, 1 << 20, func(v float64) string { return strconv.Itoa(int(v)>>20) + "Mi" }},
	CPUs: {"fewest processors", "cpus", false, 1, func(v float64) string {
		if v == 1 {
			return "1 processor"
		}
		return short(v) + " processors"
	}},
}

// short returns a number without needless digits.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// Print returns a value as people read it, such as 12/s or 512Mi.
func (f Find) Print(v float64) string { return kinds[f].print(v) }

// Parse reads a value: a rate as in 5/s, a number of pods or of processors, or an amount
// of memory as in 512Mi.
func (f Find) Parse(text string) (float64, error) {
	switch f {
	case ChangeRate:
		var rate scenario.Rate
		err := rate.UnmarshalText([]byte(text))
		return float64(rate), err
	case Memory:
		var s scenario.Scenario
		if err := s.ControlPlane.Memory.UnmarshalText([]byte(text)); err != nil {
			return 0, err
		}
		return float64(s.ControlPlane.Memory), s.CheckField("controlPlane.memory")
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("got %q, want a whole number from 1 on", text)
		}
		return float64(n), nil
	}
}

// Options are a search. All fields are needed but those that say otherwise.
type Options struct {
	Find      Find              // what is searched for
	Objective compare.Objective // that is to be met
	Scale     Scale             // Harder and Step are those of Find
	MaxRuns   int               // beyond which nothing is tried, those of a search that is resumed among them

	// Spec is the part of the specification that all runs share. With ChangeRate, its changes state the kind.
	// Out is the folder of the result and of all records.
	Spec run.Spec

	Progress run.Progress // zero = silent

	// Run does the run of a specification; nil = a rollout. Its error is that of
	// run.Ladder.Run.
	Run run.Runner
}

// complete fills in what follows from Find.
func (o *Options) complete() {
	o.Scale.Harder, o.Scale.Step = kinds[o.Find].harder, kinds[o.Find].step
	o.Spec.Instrument.Calibrate = false
}

// at returns the specification of the run with a value.
func (o Options) at(value float64) run.Spec {
	s := o.Spec
	switch o.Find {
	case ChangeRate:
		s.Load.Changes.PerSecond = scenario.Rate(value)
		if run.NeedsP99(o.Objective) {
			// long enough for a 99th percentile
			need := time.Duration(math.Ceil(record.ChangesForP99/value*10)) * time.Second / 10
			s.Phases.Changes = max(s.Phases.Changes, scenario.Duration(need))
		}
	case Pods:
		s.Mesh.Pods = scenario.List[int]{int(value)}
	case Memory:
		s.ControlPlane.Memory = scenario.Bytes(value)
	case CPUs:
		s.ControlPlane.Processors = int(value)
	}
	return s
}

// Validate returns an error for the first field that cannot be used. That of an option is a
// *[scenario.Error] of its name, as in maxRuns. Nothing has been started or created before it returns nil.
func (o Options) Validate() error {
	o.complete()
	s := o.Scale
	switch {
	case o.Find == Pods && o.Spec.Captured != nil:
		return scenario.Refuse("find", string(Pods), "another one with a captured mesh: its size is mesh.scale, which is not searched; a rollout with several scales, as in 1,2,4, does one run of each")
	case !(s.Min <= s.Start):
		return scenario.Refuse("min", o.Find.Print(s.Min), "at most %s, where the search starts", o.Find.Print(s.Start))
	case !(s.Start <= s.Max):
		return scenario.Refuse("max", o.Find.Print(s.Max), "at least %s, where the search starts", o.Find.Print(s.Start))
	case !(s.Resolution >= 0.01 && s.Resolution <= 1):
		return scenario.Refuse("resolution", fmt.Sprintf("%g%%", s.Resolution*100), "from 1%% to 100%%")
	case o.MaxRuns < 1 || o.MaxRuns > maxRuns:
		return scenario.Refuse("maxRuns", o.MaxRuns, "1 to %d", maxRuns)
	case o.Find == Memory:
		if err := controlplane.CanLimitMemory(); err != nil {
			return scenario.Refuse("find", string(Memory), "another one, since a limit that is not enforced cannot be searched: %v", err)
		}
	}
	if err := o.at(o.Scale.Start).CheckObjective(o.Objective); err != nil {
		return err
	}
	for _, value := range []float64{s.Start, s.Min, s.Max} {
		if err := o.at(value).Validate(); err != nil {
			return fmt.Errorf("with %s: %w", o.Find.Print(value), err)
		}
	}
	return nil
}

// maxRuns bounds a search: it ends even if maxRuns is mistyped.
const maxRuns = 100
