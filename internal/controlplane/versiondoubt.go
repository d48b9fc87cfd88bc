package controlplane

import (
	"scaler.mesh/scaler/pkg/record"
)

// VersionDoubt warns of a control plane of a version that its adapter has no
// expectations for; nil of one that it has.
func VersionDoubt(d Description) *record.Warning {
	if d.Unchecked == "" {
		return nil
	}
	return &record.Warning{
		About: "environment.controlPlane.version", Reason: record.ReasonVersionUnknown,
		Component: d.Name + " " + d.Version, Detail: d.Unchecked,
	}
}
