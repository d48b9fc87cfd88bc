package experiment

import (
	"fmt"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
)

// FindDriver looks for the control plane that a value of --control-plane names
// among all; nil = those of package drivers. address is that of an external one.
// Its error names the flag, the value and what is wanted.
func FindDriver(all []controlplane.Driver, value string) (d controlplane.Driver, address string, err error) {
	if all == nil {
		all = drivers.All()
	}
	d, address, ok := controlplane.Find(all, value)
	if !ok {
		return d, "", fmt.Errorf("parsing --control-plane %q: want %s", value, controlplane.Choices(all))
	}
	return d, address, nil
}
