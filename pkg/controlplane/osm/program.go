package osm

import (
	"context"
	"crypto/tls"
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
	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/controlplane"
)

// startTimeout bounds how long a program may take until it serves.
const startTimeout = time.Minute

// Images of the chart, which the injector writes into pods and which nothing pulls.
const (
	sidecarImage     = "envoyproxy/envoy-distroless:v1.22.2"
	initImage        = "openservicemesh/init:v1.2.4"
	healthcheckImage = "openservicemesh/osm-healthcheck:v1.2.4"
)

// program is one of the programs, which is started again on the same ports after it ended.
type program struct {
	// fixed after prepare
	name, path, readyPath string
	group                 *process.Group
	logDir                string
	resources             controlplane.Resources
	ports                 ports
	args, env             []string

	mu      sync.Mutex
	process *process.Process
}

// ports are those of a program: ADS is the controller's alone.
type ports struct{ ads, http, webhook, debug int }

// prepare makes the programs, which do not run yet, with ports that are free.
func (c *controlPlane) prepare() error {
	free, err := process.FreePorts(7)
	if err != nil {
		return fmt.Errorf("finding ports for %s: %w", Name, err)
	}
	common := []string{
		"--verbosity", "info",
		"--osm-namespace", namespace,
		"--mesh-name", meshName,
		"--osm-version", c.report.Version,
		"--ca-bundle-secret-name", caSecret,
		"--certificate-manager", "tresor",
		"--trust-domain", trustDomain,
		"--enable-reconciler=false",
	}
	c.controller = c.program(controllerName, component.OSMController, "/health/ready", ports{free[0], free[1], free[2], free[3]},
		append([]string{"--osm-service-account", account, "--validator-webhook-config", validatorName + "-mesh-" + meshName, "--validate-traffic-target=true"}, common...),
		[]string{"CONTROLLER_POD_NAME=" + controllerName, "KUBECONFIG=" + c.kubeconfig})
	c.injector = c.program(injectorName, component.OSMInjector, "/healthz", ports{0, free[4], free[5], free[6]},
		append([]string{"--webhook-config-name", injectorName + "-webhook-" + meshName, "--kubeconfig", c.kubeconfig}, common...),
		[]string{
			"INJECTOR_POD_NAME=" + injectorName,
			"OSM_DEFAULT_ENVOY_IMAGE=" + sidecarImage,
			"OSM_DEFAULT_INIT_CONTAINER_IMAGE=" + initImage,
			"OSM_DEFAULT_HEALTHCHECK_CONTAINER_IMAGE=" + healthcheckImage,
		})
	c.injector.resources = controlplane.Resources{} // what the control plane is given is the controller's
	return nil
}

func (c *controlPlane) program(name, of, readyPath string, at ports, args, env []string) *program {
	o := c.options
	return &program{
		name: name, path: o.Programs[of], readyPath: readyPath, group: o.Group, logDir: o.LogDir, resources: o.Resources, ports: at,
		args: args,
		env: append([]string{
			"OSM_NAMESPACE=" + namespace,
			"OSM_ADS_PORT=" + strconv.Itoa(at.ads),
			"OSM_HTTP_PORT=" + strconv.Itoa(at.http),
			"OSM_DEBUG_PORT=" + strconv.Itoa(at.debug),
			"OSM_INJECTOR_WEBHOOK_PORT=" + strconv.Itoa(at.webhook),
			"OSM_VALIDATOR_WEBHOOK_PORT=" + strconv.Itoa(at.webhook),
			"HOME=" + o.LogDir,
			"PATH=/usr/bin:/bin",
		}, env...),
	}
}

// Life is part of controlplane.Program.
func (p *program) Life() controlplane.Life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return controlplane.LifeOf(p.process)
}

// Restart is part of controlplane.Program.
func (p *program) Restart(ctx context.Context) error {
	started, err := p.group.Start(p.resources.Apply(process.Spec{
		Name: p.name,
		Path: p.path,
		Args: append(p.args, p.resources.Args...),
		Env:  p.resources.Environment(p.env...),
		Dir:  p.logDir,
		Log:  filepath.Join(p.logDir, p.name+".log"),
	}))
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.mu.Lock()
	p.process = started
	p.mu.Unlock()
	ready, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	err = process.WaitReady(ready, started, func(ctx context.Context) error {
		if _, err := httpget.Get(ctx, client, p.url(p.readyPath)); err != nil {
			return err
		}
		return serves(ctx, local(p.ports.webhook))
	})
	if err != nil {
		return errors.Join(fmt.Errorf("waiting for %s: %w", p.name, err), started.Stop(interrupt.Uncancelled(ctx)))
	}
	return nil
}

// serves fails unless a webhook serves there: its program does not wait for it.
func serves(ctx context.Context, address string) error {
	// Who serves is the API server's matter, which has the authority's certificate.
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

// stop ends it if it runs.
func (p *program) stop(ctx context.Context) error {
	p.mu.Lock()
	running := p.process
	p.mu.Unlock()
	if running == nil {
		return nil
	}
	return running.Stop(ctx)
}

// url is one of its HTTP server.
func (p *program) url(path string) string { return "http://" + local(p.ports.http) + path }

// local is host:port on loopback.
func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
