package drivers

import (
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/scenario"
)

// Find looks for the control plane that a value of controlPlane.name names
// among all; nil = all that there are. address is that of an external one.
// Its error names the field of a scenario.
func Find(all []controlplane.Driver, value string) (d controlplane.Driver, address string, err error) {
	if all == nil {
		all = All()
	}
	d, address, ok := controlplane.Find(all, value)
	if !ok {
		return d, "", scenario.Refuse("controlPlane.name", value, "%s", controlplane.Choices(all))
	}
	return d, address, nil
}
