package experiment

import (
	"context"
	"time"

	"scaler.mesh/scaler/internal/task"
)

// WaitUntil returns at the moment at, or with the cause of ctx when that ends first.
func WaitUntil(ctx context.Context, at time.Time) error {
	if !task.Sleep(ctx, time.Until(at)) {
		return context.Cause(ctx)
	}
	return nil
}
