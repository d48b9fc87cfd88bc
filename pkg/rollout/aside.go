package rollout

import (
	"context"
	"fmt"

	"scaler.mesh/scaler/pkg/experiment"
)

// keepAside keeps scaler, and with it all that it starts but the control plane,
// off the processors that the control plane is given: they are its own, as those
// of a node of its own would be. Taking it back lets scaler run everywhere again.
func (r *rolloutRun) keepAside(context.Context) (experiment.Undo, error) {
	all := experiment.Processors()
	r.given = lastProcessors(all, r.spec.ControlPlaneCPUs)
	if r.given == nil {
		return nil, nil
	}
	r.others = all[:len(all)-len(r.given)]
	if err := experiment.BindThreads(r.others); err != nil {
		return nil, fmt.Errorf("keeping off the control plane's processors: %w", err)
	}
	return func(context.Context) error { return experiment.BindThreads(all) }, nil
}
