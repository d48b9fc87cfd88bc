//go:build !linux

package podnet

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"scaler.mesh/scaler/internal/process"
)

// Net is none: pods are connected on Linux.
type Net struct{}

// Check returns errors.ErrUnsupported.
func Check(uint32) error { return errors.ErrUnsupported }

// Open returns errors.ErrUnsupported.
func Open() (*Net, error) { return nil, errors.ErrUnsupported }

// Add returns errors.ErrUnsupported.
func (*Net) Add() (*Pod, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Net) Close() error { return nil }

// Pod is none.
type Pod struct{ Address netip.Addr }

// Apply returns errors.ErrUnsupported.
func (*Pod) Apply(Rules) error { return errors.ErrUnsupported }

// DialContext returns errors.ErrUnsupported.
func (*Pod) DialContext(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}

// Listen returns errors.ErrUnsupported.
func (*Pod) Listen(context.Context, string) (net.Listener, error) { return nil, errors.ErrUnsupported }

// Network returns none.
func (*Pod) Network() *process.Network { return nil }

// Rules are none.
type Rules struct{}

// ParseRules returns errors.ErrUnsupported.
func ParseRules(string) (Rules, error) { return Rules{}, errors.ErrUnsupported }
