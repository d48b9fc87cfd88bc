// Package guard ends a run that burdens a cluster which others use, too, by limits that its user has set, and
// refuses one where the cluster has more load than a limit already.
package guard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/pkg/scenario"
)

// Subject is the value that a condition bounds.
type Subject string

// Subjects.
const (
	// APIServerP99 is the 99th percentile, in seconds, of the times that the run's own requests to the API
	// server took in the last Window, without watches.
	APIServerP99 Subject = "apiserver-p99"
	// PendingPods is the number of the cluster's pods in phase Pending that are not the run's.
	PendingPods Subject = "pending-pods"
	// ControlPlaneCores is the mean of the control plane's cores in the last Window.
	ControlPlaneCores Subject = "control-plane-cores"
)

// subjects are all, in the order of error messages.
var subjects = []Subject{APIServerP99, PendingPods, ControlPlaneCores}

// Condition ends a run, or refuses one, when its subject is above a limit.
type Condition struct {
	Subject Subject
	Limit   float64 // in the subject's unit
}

// String returns the form that Parse reads.
func (c Condition) String() string { return string(c.Subject) + ">" + c.Subject.exact(c.Limit) }

// exact returns a limit of the subject as Parse reads it.
func (s Subject) exact(limit float64) string {
	if s == APIServerP99 {
		return duration(limit).String()
	}
	return strconv.FormatFloat(limit, 'f', -1, 64)
}

// rounded returns a measured value of the subject, for people.
func (s Subject) rounded(value float64) string {
	if s == APIServerP99 {
		return duration(value).Round(time.Microsecond).String()
	}
	return strconv.FormatFloat(value, 'g', 4, 64)
}

func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

// Conditions are alternatives: one of them is enough.
type Conditions []Condition

// String returns the form that Parse reads; "" of none.
func (c Conditions) String() string {
	var texts []string
	for _, one := range c {
		texts = append(texts, one.String())
	}
	return strings.Join(texts, ",")
}

// Refuse fails where one of the conditions holds before a run: the error says which, and what was measured. Measure
// gives what a subject is now, in its unit; its errors are returned.
func (c Conditions) Refuse(ctx context.Context, measure func(context.Context, Subject) (float64, error)) error {
	for _, one := range c {
		value, err := measure(ctx, one.Subject)
		if err != nil {
			return fmt.Errorf("checking place.refuseIf %s: %w", one, err)
		}
		if value > one.Limit {
			return fmt.Errorf("%w: %s is %s before the run, and place.refuseIf has %s", ErrLoaded, one.Subject, one.Subject.rounded(value), one)
		}
	}
	return nil
}

// ErrLoaded marks a run that was refused because of the load of its cluster.
var ErrLoaded = errors.New("the cluster has too much load for a run")

// Parse reads the field at a path: SUBJECT>LIMIT, as in apiserver-p99>1s; several are separated by commas, and ""
// is none. Each subject may occur once, and no limit is negative. Its error is of type *[scenario.Error].
func Parse(path, text string) (Conditions, error) {
	var all Conditions
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, limit, _ := strings.Cut(strings.TrimSpace(part), ">")
		c := Condition{Subject: Subject(strings.TrimSpace(name))}
		var err error
		switch limit = strings.TrimSpace(limit); c.Subject {
		case APIServerP99:
			var d time.Duration
			d, err = time.ParseDuration(limit)
			c.Limit = d.Seconds()
		case PendingPods:
			var n int
			n, err = strconv.Atoi(limit)
			c.Limit = float64(n)
		case ControlPlaneCores:
			c.Limit, err = strconv.ParseFloat(limit, 64)
		default:
			return nil, wanted(path, part)
		}
		if err != nil || !(c.Limit >= 0) || c.Limit > 1e9 { // NaN is none of these
			return nil, wanted(path, part)
		}
		if slices.ContainsFunc(all, func(other Condition) bool { return other.Subject == c.Subject }) {
			return nil, scenario.Refuse(path, strings.TrimSpace(part), "%s once", c.Subject)
		}
		all = append(all, c)
	}
	return all, nil
}

func wanted(path, part string) error {
	return scenario.Refuse(path, strings.TrimSpace(part), "%s>1s, %s>20 or %s>4", subjects[0], subjects[1], subjects[2])
}
