package controlplane

import (
	"context"
	"errors"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/process"
)

// Program is a control plane as a program that runs here.
type Program interface {
	// Life returns the life of the program that runs now, or ran last.
	Life() Life
	// Restart starts it after it ended, on the same addresses, and returns when it serves.
	Restart(ctx context.Context) error
}

// Replicas are the programs of a control plane that has several of the same kind. Each
// connection goes to one of them, as through a Service.
type Replicas interface {
	// All returns the replicas that were started with the control plane, in their order, and after
	// them the Spare ones that were not: Restart starts such a one. Replicas that have ended are
	// included.
	All() []Replica
	Spare() int
	// Service returns the address that simulated proxies connect to. It represents the
	// replicas that serve, as a Service's address does.
	Service() string
	// Serve sets the replicas that the API server and real proxies reach from now on:
	// each connection goes to one of them, at random.
	Serve(replicas []Replica)
	// Close ends the forwarding.
	Close() error
}

// Replica is one of several programs of a control plane.
type Replica interface {
	Program
	Name() string         // of its process, and of its metrics
	Address() string      // host:port that proxies connect to
	Endpoints() Endpoints // where this one is asked about itself
}

// Helper is a program that helps a control plane.
type Helper struct {
	Name    string // of its process, and of its metrics
	Program Program
	Metrics string // URL of its own metrics; "" = it has none
}

// Life is one life of a program, from its start to its end.
type Life interface {
	// Usage returns a new source that reads what the program uses in this life. It
	// belongs to the caller.
	Usage() measure.Source
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

// life implements Life for a child process.
type life struct{ *process.Process }

func (l life) Usage() measure.Source { return measure.OfProcess(l.Handle()) }

// IsOutOfMemory reports whether an error is that the kernel killed a program for
// exceeding its memory limit.
func IsOutOfMemory(err error) bool {
	var outOfMemory *process.OutOfMemoryError
	return errors.As(err, &outOfMemory)
}

// CanLimitMemory returns nil if the memory of a program can be limited on this
// machine, and otherwise why it cannot.
func CanLimitMemory() error { return process.CanLimitMemory() }
