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

// Waits between two tries of a failed request.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 2 * time.Second
)

// Persist repeats a request until it succeeds, fails for a reason that a retry does not
// solve, or ctx is done; then it returns the last error. An API server that is away for a
// while delays a rollout but does not end it. Tries are counted from 0; an earlier try
// may have succeeded although its answer was lost.
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

// mayPass reports whether an error is a failure to reach the API server, or comes from
// one that is starting or overloaded.
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
