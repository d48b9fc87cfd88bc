package linkerd

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/process"
)

// Names of the chart.
const (
	namespace   = "linkerd"
	trustDomain = "cluster.local" // and the cluster's

	destinationName = "linkerd-destination"
	identityName    = "linkerd-identity"
	injectorName    = "linkerd-proxy-injector"

	controllerLabel = "linkerd.io/control-plane-ns"

	metricsPath = "/metrics"
)

// Values of the chart.
const (
	opaquePorts        = "25,443,587,3306,5432,11211"
	issuerScheme       = "linkerd.io/tls"
	issuanceLifetime   = "24h0m0s"
	clockSkewAllowance = "20s"
)

// controlPlane is a running Linkerd.
type controlPlane struct {
	// fixed after start
	options   controlplane.StartOptions
	report    component.Report
	client    kubernetes.Interface
	dynamic   dynamic.Interface
	authority selfSigned
	webhook   selfSigned // that the injector serves with
	services  corelisters.ServiceLister

	destination, identity, injector *program
}

// start installs Linkerd, starts its programs and returns once they serve.
func start(ctx context.Context, o controlplane.StartOptions) (*controlPlane, error) {
	c := &controlPlane{options: o}
	var err error
	if c.report, err = o.Versions.Of(ctx, component.LinkerdController, o.Programs[component.LinkerdController]); err != nil {
		return nil, err
	}
	if c.client, err = kubernetes.NewForConfig(o.REST); err != nil {
		return nil, fmt.Errorf("making a client for the cluster of %s: %w", Name, err)
	}
	if c.dynamic, err = dynamic.NewForConfig(o.REST); err != nil {
		return nil, fmt.Errorf("making a client for the cluster of %s: %w", Name, err)
	}
	o.Report("installing Linkerd " + c.report.Version)
	if err := c.install(ctx); err != nil {
		return nil, fmt.Errorf("installing Linkerd: %w", err)
	}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	o.Report("starting " + destinationName + ", " + identityName + " and " + injectorName)
	for _, p := range []*program{c.identity, c.destination, c.injector} {
		if err := p.Restart(ctx); err != nil {
			return nil, errors.Join(err, c.stop(interrupt.Uncancelled(ctx)))
		}
	}
	if err := c.createWebhook(ctx); err != nil {
		return nil, errors.Join(err, c.stop(interrupt.Uncancelled(ctx)))
	}
	if c.services, err = watchServices(ctx, c.client); err != nil {
		return nil, errors.Join(err, c.stop(interrupt.Uncancelled(ctx)))
	}
	return c, nil
}

func (c *controlPlane) stop(ctx context.Context) error {
	return errors.Join(c.destination.Stop(ctx), c.identity.Stop(ctx), c.injector.Stop(ctx))
}

// program is one of the programs, which is started again on the same ports after it ended.
type program struct {
	controlplane.Child
	grpc, admin int // ports; the injector serves its webhook in place of gRPC
}

// prepare makes the programs, which do not run yet, with ports that are free.
func (c *controlPlane) prepare(ctx context.Context) error {
	free, err := process.FreePorts(6)
	if err != nil {
		return fmt.Errorf("finding ports for %s: %w", Name, err)
	}
	// Keys are no part of the record, and are deleted with the group.
	dir := c.options.Group.Dir()
	issuer, err := c.authority.write(dir)
	if err != nil {
		return err
	}
	mounts, err := c.writeMounts(dir)
	if err != nil {
		return err
	}
	common := []string{"-controller-namespace=" + namespace, "-identity-trust-domain=" + trustDomain}
	c.destination = c.program(destinationName, free[0], free[1], nil, slices.Concat(common, []string{
		"-metrics-addr=" + local(free[1]),
		"-enable-h2-upgrade=true",
		"-cluster-domain=" + trustDomain,
		"-default-opaque-ports=" + opaquePorts,
	}))
	c.identity = c.program(identityName, free[2], free[3], nil, slices.Concat(common, []string{
		"-admin-addr=" + local(free[3]),
		"-issuer=" + issuer,
		"-identity-scheme=" + issuerScheme,
		"-identity-issuance-lifetime=" + issuanceLifetime,
		"-identity-clock-skew-allowance=" + clockSkewAllowance,
	}))
	c.injector = c.program(injectorName, free[4], free[5], []string{"LINKERD_MOUNT_PATH=" + mounts}, []string{"-metrics-addr=" + local(free[5])})
	// What the control plane is given is destination's; times are those of all.
	times := controlplane.Resources{Env: controlplane.TimesIn(c.options.Resources.Env, component.LinkerdTimes)}
	c.identity.Resources, c.injector.Resources = times, times
	for _, p := range []*program{c.destination, c.identity, c.injector} {
		spec := p.Command()
		file, err := controlplane.Account{Namespace: namespace, Name: spec.Name}.WriteKubeconfig(ctx, c.client, c.options.Kubeconfig)
		if err != nil {
			return err
		}
		spec.Args = append(spec.Args, "-kubeconfig="+file)
		p.Command = func() process.Spec { return spec }
	}
	return nil
}

// program returns a program that is a command of the release's controller, on a port for gRPC and one for its metrics.
func (c *controlPlane) program(name string, grpc, admin int, env, args []string) *program {
	o := c.options
	spec := process.Spec{
		Name: name, Path: o.Programs[component.LinkerdController],
		Args: append([]string{
			name[len(namespace)+1:],
			"-addr=" + local(grpc),
			"-log-level=info", "-log-format=plain",
		}, args...),
		Env: append([]string{
			"HOME=" + o.LogDir, "PATH=/usr/bin:/bin",
			"LINKERD2_IDENTITY_TRUST_ANCHORS=" + base64.StdEncoding.EncodeToString(c.authority.certificate),
		}, env...),
	}
	p := &program{grpc: grpc, admin: admin}
	p.Child = controlplane.Child{
		Group: o.Group, Resources: o.Resources, LogDir: o.LogDir,
		Command: func() process.Spec { return spec }, Ready: p.ready,
	}
	return p
}

// ready fails unless it serves: its HTTP server is started last, or first.
func (p *program) ready(ctx context.Context) error {
	if err := controlplane.Answers(p.url("/ready"))(ctx); err != nil {
		return err
	}
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", local(p.grpc))
	if err != nil {
		return err
	}
	return connection.Close()
}

// url returns a URL of its HTTP server.
func (p *program) url(path string) string { return "http://" + local(p.admin) + path }

// local returns HOST:PORT on loopback.
func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Describe is part of controlplane.Server.
func (c *controlPlane) Describe() controlplane.Description {
	return controlplane.Description{
		Name: Name, Version: c.report.Version, Replicas: 1, Limits: limits(c.options.Resources.Env),
		MaxProcs: c.options.Resources.Processors(), Settings: c.options.Resources.Settings(map[string]string{
			"enable-endpoint-slices": "false", "enable-h2-upgrade": "true", "identity-issuance-lifetime": issuanceLifetime,
		}),
	}
}

// Endpoints is part of controlplane.Server.
func (c *controlPlane) Endpoints() controlplane.Endpoints {
	return controlplane.Endpoints{Proxies: local(c.destination.grpc), Metrics: c.destination.url(metricsPath)}
}
