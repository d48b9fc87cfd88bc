package controlplane

import (
	"context"
	"errors"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/recorder"
)

// Program is a control plane as a program that runs here.
type Program interface {
	// Life is that of the program that runs now, or ran last.
	Life() Life
	// Restart starts it again after it ended, on the same addresses.
	Restart(ctx context.Context) error
}

// Life is one life of a program, from its start to its end.
type Life interface {
	// Usage returns a new source that reads what the program uses in this life. It
	// belongs to the caller.
	Usage() recorder.Source
	// Done is closed when the life is over.
	Done() <-chan struct{}
	// Err returns why the life is over: nil before, and when Stop or Kill was called.
	// IsOutOfMemory recognises an end for want of memory, which is returned always.
	Err() error
	// Stop ends the program gracefully, or at once when ctx is done, and returns when
	// it has ended.
	Stop(ctx context.Context) error
	// Kill ends the program at once and does not wait.
	Kill()
}

// LifeOf returns the life of a child process.
func LifeOf(p *process.Process) Life { return life{p} }

type life struct{ *process.Process }

func (l life) Usage() recorder.Source { return recorder.OfProcess(l.Handle()) }

// IsOutOfMemory reports whether an error is that the kernel killed a program for
// exceeding its memory limit.
func IsOutOfMemory(err error) bool {
	var outOfMemory *process.OutOfMemoryError
	return errors.As(err, &outOfMemory)
}

// CanLimitMemory returns nil if the memory of a program can be limited on this
// machine, and otherwise why it cannot.
func CanLimitMemory() error { return process.CanLimitMemory() }
