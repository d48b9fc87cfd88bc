//go:build !linux

package linux

import (
	"errors"
	"syscall"
	"time"
)

// Flags and clocks that only Linux has.
const (
	ClockBoot   = -1
	CloseOnExec = 0
	NoExec      = 0
)

// EndWithParent does nothing.
func EndWithParent(*syscall.SysProcAttr, syscall.Signal) {}

// EndSelfWithParent returns errors.ErrUnsupported.
func EndSelfWithParent(syscall.Signal) error { return errors.ErrUnsupported }

// AdoptOrphans returns errors.ErrUnsupported.
func AdoptOrphans() error { return errors.ErrUnsupported }

// GrantReading does nothing.
func GrantReading(*syscall.SysProcAttr) {}

// AwaitExit does nothing.
func AwaitExit(int) {}

// OpenProcess returns errors.ErrUnsupported.
func OpenProcess(int) (int, error) { return 0, errors.ErrUnsupported }

// SignalProcess returns errors.ErrUnsupported.
func SignalProcess(int, syscall.Signal) error { return errors.ErrUnsupported }

// ThreadID returns what states that it is not known.
func ThreadID() int { return 0 }

// NewNetwork returns errors.ErrUnsupported.
func NewNetwork() error { return errors.ErrUnsupported }

// EnterNetwork returns errors.ErrUnsupported.
func EnterNetwork(int) error { return errors.ErrUnsupported }

// RaiseLoopback returns errors.ErrUnsupported.
func RaiseLoopback() error { return errors.ErrUnsupported }

// NewTimer returns errors.ErrUnsupported.
func NewTimer() (int, error) { return 0, errors.ErrUnsupported }

// SetTimer returns errors.ErrUnsupported.
func SetTimer(int, time.Duration) error { return errors.ErrUnsupported }

// NewWatcher returns errors.ErrUnsupported.
func NewWatcher() (int, error) { return 0, errors.ErrUnsupported }

// Watch returns errors.ErrUnsupported.
func Watch(int, string) error { return errors.ErrUnsupported }

// Changed returns what states that it is not known.
func Changed(*syscall.Stat_t) (uint64, time.Time) { return 0, time.Time{} }

// MemoryBytes returns what states that it is not known.
func MemoryBytes() int64 { return 0 }

// Processors returns what states that it is not known.
func Processors() []int { return nil }
