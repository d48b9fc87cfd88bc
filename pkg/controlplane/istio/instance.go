package istio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/controlplane"
)

// instance is one istiod, which is started again on the same addresses after it ended.
// What all istiods of a control plane have in common is the ControlPlane's.
type instance struct {
	// fixed after newInstance
	c     *ControlPlane
	name  string // of its process, its pod, its log and its metrics; no other of the cluster has it
	ports ports

	mu      sync.Mutex
	process *process.Process
}

// ports are those that an istiod listens on, on loopback. A controlZ of 0 leaves the
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
	return i, nil
}

// Name is part of controlplane.Replica.
func (i *instance) Name() string { return i.name }

// Life is part of controlplane.Program.
func (i *instance) Life() controlplane.Life {
	i.mu.Lock()
	defer i.mu.Unlock()
	return controlplane.LifeOf(i.process)
}

// Restart is part of controlplane.Program.
func (i *instance) Restart(ctx context.Context) error { return i.run(ctx) }

// Address is part of controlplane.Replica.
func (i *instance) Address() string { return local(i.ports.secure) }

// Endpoints is part of controlplane.Replica.
func (i *instance) Endpoints() controlplane.Endpoints {
	return controlplane.Endpoints{
		Proxies: i.Address(),
		Metrics: "http://" + local(i.ports.monitoring) + "/metrics",
		Collect: "http://" + local(i.ports.http) + "/debug/pprof/heap?gc=1", // net/http/pprof
	}
}

// stop ends it if it runs.
func (i *instance) stop(ctx context.Context) error {
	i.mu.Lock()
	p := i.process
	i.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.Stop(ctx)
}

// local is host:port on loopback.
func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// run starts it and returns once it is ready.
func (i *instance) run(ctx context.Context) error {
	opts := i.c.opts
	args := []string{"discovery",
		"--kubeconfig", opts.Kubeconfig,
		"--domain", trustDomain,
		"--grpcAddr", local(i.ports.plain),
		"--secureGRPCAddr", local(i.ports.secure),
		"--httpAddr", local(i.ports.http),
		"--httpsAddr", local(i.ports.webhook),
		"--monitoringAddr", local(i.ports.monitoring),
		"--keepaliveMaxServerConnectionAge", opts.ConnectionAge,
		"--log_output_level=default:info",
	}
	if i.ports.controlZ != 0 {
		args = append(args, "--ctrlz_port", strconv.Itoa(i.ports.controlZ))
	}
	p, err := opts.Group.Start(opts.Resources.Apply(process.Spec{
		Name: i.name,
		Path: opts.Program,
		Args: append(args, opts.Resources.Args...),
		Env:  i.c.environment(i.name),
		Dir:  opts.LogDir,
		Log:  filepath.Join(opts.LogDir, i.name+".log"),
	}))
	if err != nil {
		return fmt.Errorf("starting %s: %w", i.name, err)
	}
	i.mu.Lock()
	i.process = p
	i.mu.Unlock()
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	err = process.WaitReady(ready, p, func(ctx context.Context) error {
		_, err := httpget.Get(ctx, client, "http://"+local(i.ports.http)+"/ready")
		return err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("waiting for %s: %w", i.name, err), p.Stop(interrupt.Uncancelled(ctx)))
	}
	return nil
}
