package run

import (
	"context"
	"fmt"

	"scaler.mesh/scaler/internal/experiment"
)

// affinity is which processors run what.
type affinity struct {
	given  []int // processors of the control plane alone; nil = there are none
	others []int // those that everything else keeps to; nil = all
}

// reserveProcessors keeps scaler, and with it all that it starts except the control
// plane, off the processors that the control plane is given: they are its own, as
// those of a node of its own would be. Taking it back lets scaler run everywhere again.
func (r *run) reserveProcessors(context.Context) (experiment.Undo, error) {
	all := experiment.Processors()
	a, err := reserve(all, r.spec.ControlPlane.CPUs)
	if err != nil || a.given == nil {
		return nil, err
	}
	r.affinity = a
	return func(context.Context) error { return experiment.BindThreads(all) }, nil
}

// reserve binds scaler to all processors but the last n; to all of them if n is 0 or
// all.
func reserve(all []int, n int) (affinity, error) {
	a := affinity{given: lastProcessors(all, n)}
	if a.given == nil {
		return a, nil
	}
	a.others = all[:len(all)-len(a.given)]
	if err := experiment.BindThreads(a.others); err != nil {
		return affinity{}, fmt.Errorf("keeping off the control plane's processors: %w", err)
	}
	return a, nil
}
