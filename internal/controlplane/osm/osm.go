package osm

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/interrupt"
)

const (
	namespace   = "osm-system"
	meshName    = "osm"
	account     = "osm" // of all programs
	trustDomain = "cluster.local"

	controllerName = "osm-controller"
	injectorName   = "osm-injector"
	bootstrapName  = "osm-bootstrap"
	validatorName  = "osm-validator"

	// serverName is in the certificate of the controller's ADS server.
	serverName = "ads." + trustDomain

	injectAnnotation = "openservicemesh.io/sidecar-injection"
	monitorLabel     = "openservicemesh.io/monitored-by"

	metricsPath = "/metrics"
)

// controlPlane is a running Open Service Mesh.
type controlPlane struct {
	// fixed after start
	options              controlplane.StartOptions
	report               component.Report // of the controller
	kubeconfig           string           // file with the token of their account
	client               kubernetes.Interface
	dynamic              dynamic.Interface
	secrets              secrets
	controller, injector *program
	bootstrapper         *program // ended once it has installed
}

// start installs Open Service Mesh, starts its programs and returns once they are ready and the
// API server can call their webhooks.
func start(ctx context.Context, o controlplane.StartOptions) (*controlPlane, error) {
	c := &controlPlane{options: o}
	var err error
	if c.report, err = o.Versions.Of(ctx, component.OSMController, o.Programs[component.OSMController]); err != nil {
		return nil, err
	}
	if c.client, err = kubernetes.NewForConfig(o.REST); err != nil {
		return nil, fmt.Errorf("making a client for the cluster of %s: %w", Name, err)
	}
	if c.dynamic, err = dynamic.NewForConfig(o.REST); err != nil {
		return nil, fmt.Errorf("making a client for the cluster of %s: %w", Name, err)
	}
	o.Report("installing Open Service Mesh " + c.report.Version)
	if err := c.install(ctx); err != nil {
		return nil, fmt.Errorf("installing Open Service Mesh: %w", err)
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	if err := c.installDefinitions(ctx, c.bootstrapOnce); err != nil {
		return nil, fmt.Errorf("installing Open Service Mesh: %w", err)
	}
	o.Report("starting " + controllerName + " and " + injectorName)
	for _, p := range []*program{c.controller, c.injector} { // the first makes the authority
		if err := p.Restart(ctx); err != nil {
			return nil, errors.Join(err, c.stop(interrupt.Uncancelled(ctx)))
		}
	}
	if c.secrets, err = watchSecrets(ctx, c.client); err != nil {
		return nil, errors.Join(err, c.stop(interrupt.Uncancelled(ctx)))
	}
	return c, nil
}

func (c *controlPlane) stop(ctx context.Context) error {
	return errors.Join(c.injector.Stop(ctx), c.controller.Stop(ctx))
}

// Describe is part of controlplane.Server.
func (c *controlPlane) Describe() controlplane.Description {
	settings := map[string]string{"enableWASMStats": "false"} // the mode is not a setting in addition
	return controlplane.Description{
		Name: Name, Version: c.report.Version, Replicas: 1, Limits: limits(c.options.Resources.Env),
		MaxProcs: c.options.Resources.Processors(), Settings: c.options.Resources.Settings(settings),
	}
}

// Endpoints is part of controlplane.Server.
func (c *controlPlane) Endpoints() controlplane.Endpoints {
	return controlplane.Endpoints{Proxies: local(c.controller.ports.ads), Metrics: c.controller.url(metricsPath)}
}

// permissive reports whether traffic is allowed without policies.
func (c *controlPlane) permissive() bool { return c.options.Knobs.Authz == modes()[0].Knobs.Authz }
