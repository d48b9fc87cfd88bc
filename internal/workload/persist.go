package workload

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Waits between two tries of a request that could not be made.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 2 * time.Second
)

// Persist makes a request until it succeeds, fails for a reason that trying
// again does not solve, or ctx is done: then it returns the last error. An API
// server that is away for a while makes a rollout late and does not end it.
// Tries counts from 0; what was asked for by an earlier try may have been done
// though its answer was lost.
func Persist(ctx context.Context, do func(ctx context.Context, try int) error) error {
	wait := firstWait
	for try := 0; ; try++ {
		err := do(ctx, try)
		if err == nil || !mayPass(err) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		wait = min(2*wait, lastWait)
	}
}

// mayPass reports whether an error is one of reaching the API server, or of an
// API server that is starting or overloaded.
func mayPass(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var netErr net.Error
	return errors.As(err, &netErr) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}
