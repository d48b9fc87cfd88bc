package experiment

import (
	"fmt"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/controlplane/drivers"
)

// FindDriver looks for the control plane called name among all; nil = those of
// package drivers. Its error names the flag, the value and what is wanted.
func FindDriver(all []controlplane.Driver, name string) (controlplane.Driver, error) {
	if all == nil {
		all = drivers.All()
	}
	driver, ok := controlplane.Find(all, name)
	if !ok {
		return driver, fmt.Errorf("parsing --control-plane %q: want %s", name, controlplane.Choices(all))
	}
	return driver, nil
}
