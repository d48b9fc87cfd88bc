package capacity

import (
	"fmt"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// Verification is the result of running a control plane as a plan requests.
type Verification struct {
	// Record is the folder of the run; "" if it has none.
	Record string `json:"record,omitempty"`
	// Replicas is the number of processes of the control plane; Processors and
	// MemoryBytes are the limits of each.
	Replicas    int   `json:"replicas"`
	Processors  int   `json:"processors"`
	MemoryBytes int64 `json:"memoryBytes"`
	// NotReproduced lists the parts of the control plane of the plan's runs that differ in the verification.
	NotReproduced []record.NotReproduced `json:"notReproduced,omitempty"`
	Checks        []Check                `json:"checks"`
	Passed        bool                   `json:"passed"` // every check did
}

// Check is one verified property of a plan.
type Check struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Figure is the path in the record of the compared figure, with its value and the
	// bounds, in Unit; all are absent if nothing was compared.
	Figure   string   `json:"figure,omitempty"`
	Unit     string   `json:"unit,omitempty"`
	Measured *float64 `json:"measured,omitempty"`
	Low      *float64 `json:"low,omitempty"`
	High     *float64 `json:"high,omitempty"`
	Why      string   `json:"why,omitempty"` // what happened, where no figure states it
}

// Verdict is the outcome of a Check.
type Verdict string

// The outcomes.
const (
	Passed      Verdict = "passed"
	Failed      Verdict = "failed"
	Unknown     Verdict = "unknown"      // it was not measured, or the plan has no bounds
	NotEnforced Verdict = "not enforced" // the limit was a setting alone, so that nothing could have exceeded it
)

// Within compares a figure with an interval. Without a measurement, or without a bound,
// the verdict is unknown.
func Within(figure, unit string, measured, low, high *float64) Check {
	c := Check{Name: figure, Figure: figure, Unit: unit, Measured: measured, Low: low, High: high, Verdict: Passed}
	switch {
	case measured == nil:
		c.Verdict, c.Why = Unknown, "the run did not measure it"
	case low == nil && high == nil:
		c.Verdict, c.Why = Unknown, "the plan has no interval: want more runs"
	case low != nil && *measured < *low:
		c.Verdict, c.Why = Failed, "below the interval"
	case high != nil && *measured > *high:
		c.Verdict, c.Why = Failed, "above the interval"
	}
	return c
}

// Add enters checks, and whether all passed.
func (v *Verification) Add(checks ...Check) {
	v.Checks = append(v.Checks, checks...)
	v.Passed = true
	for _, c := range v.Checks {
		v.Passed = v.Passed && c.Verdict == Passed
	}
}

// write writes with what the plan was verified, and what each check found.
func (v *Verification) write(d *output.Document) {
	d.Paragraph(v.sentence())
	t := output.Table{Head: []string{"check", "verdict", "measured", "low", "high", "why"}}
	for _, c := range v.Checks {
		t.Add(c.Name, string(c.Verdict), amount(c.Unit, c.Measured), amount(c.Unit, c.Low), amount(c.Unit, c.High), c.Why)
	}
	grid(d, t)
}

// sentence states with what the plan was verified, and the verdict.
func (v *Verification) sentence() string {
	verdict := "passed"
	if !v.Passed {
		verdict = "not passed"
	}
	replicas := ""
	if v.Replicas > 1 {
		replicas = output.Many(v.Replicas, "replica") + " of "
	}
	text := fmt.Sprintf("Verified with %s%s and %s of memory: %s.", replicas, output.Many(v.Processors, "processor"), mebibytes(float64(v.MemoryBytes)), verdict)
	for _, n := range v.NotReproduced {
		text += fmt.Sprintf(" Not as in the runs: %s (%s).", strings.TrimSpace(n.What+" "+n.Value), n.Changes)
	}
	return text
}

// Measured returns a run's value of a figure that plans forecast, by its name in the plan, on the plan's processor; nil if the run did
// not measure it, plans have no such figure, or the speed of its machine is not known where the plan has one.
func (p *Plan) Measured(run *record.Run, name string) *float64 {
	if p.Processor != nil {
		own, ok := run.Environment.Processor.Speed()
		switch {
		case ok && own.Work == p.Processor.Work:
			run = run.OnProcessor(p.Processor.Speed)
		case name == rolloutCPU:
			return nil
		}
	}
	for _, f := range figures {
		if f.name == name {
			return f.of(run)
		}
	}
	return run.Value(name)
}
