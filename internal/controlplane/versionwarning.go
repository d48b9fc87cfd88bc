package controlplane

import (
	"scaler.mesh/scaler/pkg/record"
)

// VersionWarning warns of a control plane of a version that its adapter has no
// expectations for; nil of one that it has.
func VersionWarning(d Description) *record.Warning {
	if d.Unchecked == "" {
		return nil
	}
	return &record.Warning{
		About: record.AboutVersion, Reason: record.ReasonVersionUnknown,
		Component: d.Name + " " + d.Version, Detail: d.Unchecked,
	}
}
