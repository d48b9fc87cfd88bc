package dataplane

import (
	"context"
	"fmt"
	"os"
	"time"

	"scaler.mesh/scaler/internal/linux"
)

// clock is the time source of the generator. Tests use a fake one.
type clock interface {
	// wait returns after d, or with the cause of ctx's end.
	wait(ctx context.Context, d time.Duration) error
	close() error
}

// precise waits by a kernel timer that the runtime polls like a connection. Go's own
// timers are only accurate to a millisecond in an idle program, which is more than a
// request on one machine takes.
type precise struct {
	fd   int
	file *os.File
	stop func() bool
}

// newPrecise makes a clock whose waits end with ctx.
func newPrecise(ctx context.Context) (*precise, error) {
	fd, err := linux.NewTimer()
	if err != nil {
		return nil, fmt.Errorf("making a timer: %w", err)
	}
	p := &precise{fd: fd, file: os.NewFile(uintptr(fd), "timer")}
	p.stop = context.AfterFunc(ctx, func() {
		_ = p.file.SetReadDeadline(time.Unix(1, 0)) // fails only after close
	})
	return p, nil
}

func (p *precise) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 { // zero would disarm the timer
		return context.Cause(ctx)
	}
	if err := linux.SetTimer(p.fd, d); err != nil {
		return fmt.Errorf("setting a timer: %w", err)
	}
	var expirations [8]byte
	_, err := p.file.Read(expirations[:])
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("waiting for a timer: %w", err)
	}
	return nil
}

func (p *precise) close() error {
	p.stop()
	return p.file.Close()
}
