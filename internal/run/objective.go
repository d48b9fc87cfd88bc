package run

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// NeedsP99 reports whether an objective is of a quantile that takes many changes at a rate.
func NeedsP99(o compare.Objective) bool {
	return within(o.Path, "change.push", "change.fromDue", "change.first", "change.last") && isP99(o.Path)
}

func isP99(path string) bool {
	return strings.HasSuffix(path, ".p99") || strings.HasSuffix(path, ".p999")
}

func within(path string, above ...string) bool {
	return slices.ContainsFunc(above, func(a string) bool { return record.Within(path, a) })
}

// checkThresholds checks that there are such figures, and that the run has them.
func (s Spec) checkThresholds(controlplane.Driver) error {
	for _, text := range s.Thresholds {
		o, err := compare.ParseObjective(text)
		if err == nil {
			err = s.CheckObjective(o)
		}
		if wrong, ok := errors.AsType[*scenario.Error](err); ok {
			wrong.Path = "thresholds"
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckObjective states what a run of the specification lacks to have an objective's figure. Its error
// is of type *[scenario.Error].
func (s Spec) CheckObjective(o compare.Objective) error {
	path := o.Path
	wrong := func(want string) error { return scenario.Refuse("objective", o.Text, "%s", want) }
	switch {
	case within(path, "change", "controlPlane.change") || strings.HasPrefix(path, "cluster.") && strings.Contains(path, ".change."):
		if s.Load.Changes.PerSecond == 0 {
			return wrong("load.changes with it: it is a figure of changes at a rate")
		}
		if s.Load.Changes.Kind.ConcernsNobody() && within(path, "change.push", "change.fromDue", "change.first", "change.last", "change.backlogSeconds") {
			return wrong("changes of another kind than metadata, which no sidecar needs to receive")
		}
		if n := s.Load.Changes.Count(time.Duration(s.Phases.Changes)); NeedsP99(o) && n < record.ChangesForP99 {
			return wrong(fmt.Sprintf("phases.changes %s or more with it: %d changes are made in %s, and it takes %d for that quantile",
				time.Duration(math.Ceil(record.ChangesForP99/float64(s.Load.Changes.PerSecond)))*time.Second, n, time.Duration(s.Phases.Changes), record.ChangesForP99))
		}
	case within(path, "latencies.push", "latencies.pushFromWrite", "latencies.propagation", "latencies.pushIntervals", "controlPlane.probe"):
		if s.Load.Probes == 0 {
			return wrong("load.probes above 0 with it: it is a figure of the probe phase")
		}
		if isP99(path) && s.Load.Probes < record.ChangesForP99 {
			return wrong(fmt.Sprintf("load.probes %d or more with it, which that quantile takes", record.ChangesForP99))
		}
	case within(path, "churn", "controlPlane.churn") && s.Load.Churn == 0:
		return wrong("load.churn with it: it is a figure of churn")
	}
	return nil
}
