package task

import (
	"context"
	"time"
)

// WaitUntil returns at the moment at, or with the cause of ctx when that ends first.
func WaitUntil(ctx context.Context, at time.Time) error {
	if !Sleep(ctx, time.Until(at)) {
		return context.Cause(ctx)
	}
	return nil
}
