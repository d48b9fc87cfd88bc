package experiment

import (
	"context"
	"time"
)

// WaitUntil returns at the moment at, or with the cause of ctx when that ends first.
func WaitUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
