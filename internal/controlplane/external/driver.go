// Package external is scaler's adapter for any existing ADS server,
// as --control-plane xds://HOST:PORT. It starts, samples and configures nothing:
// scaler's own cluster has the pods, and their sidecars connect to the server.
//
// What a sidecar must receive is in a file, see Expectations; without one, a
// sidecar is complete when everything that it asked for was answered.
package external

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/scenario"
)

// Name is the name of the control plane, and the scheme of its address.
const Name = "xds"

// Mode is the only mode: the mesh is configured by others.
const Mode = "served"

// dialTimeout bounds the first connection, which shows that a server is there.
const dialTimeout = 10 * time.Second

// Driver is any ADS server.
func Driver() controlplane.Driver {
	return controlplane.Driver{
		Name:    Name,
		Summary: "any existing ADS server",
		External: func(r controlplane.Remote) error {
			_, err := prepare(r)
			return err
		},
		Dataplane: controlplane.Dataplane{
			Modes: []controlplane.Mode{{Name: Mode}},
			// They request no token: one that is sent comes from a file.
			Proxy: controlplane.Proxy{XDS: controlplane.BothVariants(), New: newProxy},
		},
		Figures: controlplane.Figures{Meanings: map[string]string{
			"latencies.podAdmission":          controlplane.NotInjected,
			"latencies.completeConfiguration": "from the first request on the ADS stream to the last resource that controlPlane.connection.expect states, or to the answers to all requests",
		}},
		Start: start,
	}
}

// server is the ADS server as its sidecars see it.
type server struct {
	remote  controlplane.Remote
	trust   credentials
	nodes   nodes
	expects *Expectations // nil = none were stated
}

// prepare reads the files and templates. Its errors name the field of the scenario.
func prepare(r controlplane.Remote) (*server, error) {
	s := &server{remote: r}
	host, port, err := net.SplitHostPort(r.Address)
	if err != nil || host == "" || port == "" {
		return nil, scenario.Refuse("controlPlane.name", Name+"://"+r.Address, "%s://HOST:PORT", Name)
	}
	if s.trust, err = readCredentials(r); err != nil {
		return nil, err
	}
	if s.nodes, err = parseNodes(r); err != nil {
		return nil, err
	}
	if r.Expect != "" {
		if s.expects, err = ReadExpectations(r.Expect); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func start(ctx context.Context, o controlplane.StartOptions) (*controlplane.ControlPlane, error) {
	s, err := prepare(o.Remote)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", o.Remote.Address)
	if err != nil {
		return nil, fmt.Errorf("connecting to the ADS server %s: %w", o.Remote.Address, err)
	}
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return nil, fmt.Errorf("connecting to the ADS server %s: %w", o.Remote.Address, err)
	}
	return &controlplane.ControlPlane{Server: s, Mesh: s, Proxies: s}, nil
}

// Describe is part of controlplane.Server.
func (s *server) Describe() controlplane.Description {
	settings := map[string]string{"address": s.remote.Address}
	switch {
	case s.remote.Plaintext:
		settings["transport"] = "plaintext"
	case s.trust.certPEM != nil:
		settings["transport"] = "mutual TLS"
	default:
		settings["transport"] = "TLS"
	}
	if s.expects != nil {
		settings["expect"] = s.expects.Digest
	}
	return controlplane.Description{Name: Name, Settings: settings}
}

// Endpoints is part of controlplane.Server: none are known.
func (s *server) Endpoints() controlplane.Endpoints { return controlplane.Endpoints{} }
