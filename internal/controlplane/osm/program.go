package osm

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/process"
)

// Images of the chart, which the injector writes into pods and which nothing pulls.
const (
	sidecarImage     = "envoyproxy/envoy-distroless:v1.22.2"
	initImage        = "openservicemesh/init:v1.2.4"
	healthcheckImage = "openservicemesh/osm-healthcheck:v1.2.4"
)

// program is one of the programs, which is started again on the same ports after it ended.
type program struct {
	controlplane.Child
	ports ports
}

// ports are the ports of a program: only the controller has ADS, and osm-bootstrap has HTTP only.
type ports struct{ ads, http, webhook, debug int }

// prepare makes the programs, which do not run yet, with ports that are free.
func (c *controlPlane) prepare() error {
	free, err := process.FreePorts(8)
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
	c.bootstrapper = c.program(bootstrapName, component.OSMBootstrap, "/healthz", ports{http: free[7]}, common,
		[]string{"BOOTSTRAP_POD_NAME=" + bootstrapName, "KUBECONFIG=" + c.kubeconfig})
	// What the control plane is given is the controller's; times are those of both that serve.
	c.injector.Resources = controlplane.Resources{Env: controlplane.TimesIn(c.options.Resources.Env, component.OSMTimes)}
	c.bootstrapper.Resources = controlplane.Resources{}
	return nil
}

func (c *controlPlane) program(name, of, readyPath string, at ports, args, env []string) *program {
	o := c.options
	spec := process.Spec{
		Name: name, Path: o.Programs[of], Args: args,
		Env: append([]string{
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
	p := &program{ports: at}
	p.Child = controlplane.Child{
		Group: o.Group, Resources: o.Resources, LogDir: o.LogDir, Command: func() process.Spec { return spec },
		Ready: func(ctx context.Context) error { // its webhook included if it has one
			if err := controlplane.Answers(p.url(readyPath))(ctx); err != nil || at.webhook == 0 {
				return err
			}
			return serves(ctx, local(at.webhook))
		},
	}
	return p
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

// url returns a URL of its HTTP server.
func (p *program) url(path string) string { return "http://" + local(p.ports.http) + path }

// local returns HOST:PORT on loopback.
func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
