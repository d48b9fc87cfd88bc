package istio

import (
	"fmt"
	"net"
	"strconv"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/process"
)

// instance is one istiod, which is started again on the same addresses after it ended.
// What all istiods of a control plane have in common is the ControlPlane's.
type instance struct {
	controlplane.Child
	c     *ControlPlane
	name  string // of its process, its pod, its log and its metrics; no other of the cluster has it
	ports ports
}

// ports are the ports that an istiod listens on, on loopback. A controlZ of 0 keeps the
// default, which the first istiod of a machine gets.
type ports struct{ plain, secure, http, webhook, monitoring, controlZ int }

// newInstance makes an istiod that does not run yet. One that is not alone has a port of
// its own for ControlZ.
func (c *ControlPlane) newInstance(name string, alone bool) (*instance, error) {
	free, err := process.FreePorts(6)
	if err != nil {
		return nil, fmt.Errorf("finding ports for %s: %w", name, err)
	}
	i := &instance{c: c, name: name, ports: ports{free[0], free[1], free[2], free[3], free[4], 0}}
	if !alone {
		i.ports.controlZ = free[5]
	}
	i.Child = controlplane.Child{
		Group: c.opts.Group, Resources: c.opts.Resources, LogDir: c.opts.LogDir,
		Command: i.command, Ready: controlplane.Answers("http://" + local(i.ports.http) + "/ready"),
	}
	return i, nil
}

// Name is part of controlplane.Replica.
func (i *instance) Name() string { return i.name }

// Address is part of controlplane.Replica.
func (i *instance) Address() string { return local(i.ports.secure) }

// Endpoints is part of controlplane.Replica.
func (i *instance) Endpoints() controlplane.Endpoints {
	return controlplane.Endpoints{
		Proxies: i.Address(),
		Metrics: "http://" + local(i.ports.monitoring) + "/metrics",
		Collect: "http://" + local(i.ports.http) + "/debug/pprof/heap?gc=1", // net/http/pprof
		Sync:    i.sync(),
	}
}

// local returns HOST:PORT on loopback.
func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// command returns the command that starts it.
func (i *instance) command() process.Spec {
	args := []string{"discovery",
		"--kubeconfig", i.c.opts.Kubeconfig,
		"--domain", trustDomain,
		"--grpcAddr", local(i.ports.plain),
		"--secureGRPCAddr", local(i.ports.secure),
		"--httpAddr", local(i.ports.http),
		"--httpsAddr", local(i.ports.webhook),
		"--monitoringAddr", local(i.ports.monitoring),
		"--keepaliveMaxServerConnectionAge", i.c.connectionAge,
		"--log_output_level=default:info",
	}
	if i.ports.controlZ != 0 {
		args = append(args, "--ctrlz_port", strconv.Itoa(i.ports.controlZ))
	}
	return process.Spec{Name: i.name, Path: i.c.opts.Programs[component.Istiod], Args: args, Env: i.c.environment(i.name)}
}
