package run

import (
	"context"

	"scaler.mesh/scaler/internal/component"
)

// Variables lists the variables that the control plane of a run reads, with their defaults; nil = that is not known.
func Variables(ctx context.Context, s Spec) (map[string]string, error) {
	driver, err := s.Driver()
	if err != nil || driver.Variables == nil {
		return nil, err
	}
	programs, err := component.Paths(ctx, s.ownPrograms(), driver.Programs.Own[0])
	if err != nil {
		return nil, err
	}
	return driver.Variables(ctx, programs)
}
