package experiment

import (
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/pkg/scenario"
)

// FindDriver looks for the control plane that a value of --control-plane names
// among all; nil = those of package drivers. address is that of an external one.
// Its error names the field of a scenario.
func FindDriver(all []controlplane.Driver, value string) (d controlplane.Driver, address string, err error) {
	if all == nil {
		all = drivers.All()
	}
	d, address, ok := controlplane.Find(all, value)
	if !ok {
		return d, "", scenario.Refuse("controlPlane.name", value, "%s", controlplane.Choices(all))
	}
	return d, address, nil
}
