// Package istio is scaler's adapter for Istio: istiod as a host process,
// installed from the output of `istioctl manifest generate` and started as the
// chart would start it, and everything a proxy of that version sends to it and
// must receive from it.
//
// What scaler does with these answers (connecting, timing, comparing) is left
// to other packages.
package istio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/pkg/record"
)

const (
	namespace   = "istio-system"
	clusterID   = "Kubernetes"
	trustDomain = "cluster.local"
	serverName  = "istiod." + namespace + ".svc" // of an installation without revisions

	// connectionAge is the chart's --keepaliveMaxServerConnectionAge.
	connectionAge = 30 * time.Minute

	// customHost is the name that the API server calls istiod's webhooks by.
	customHost = "localhost"
)

// ControlPlane is a running istiod.
type ControlPlane struct {
	// fixed after Start
	opts          controlplane.StartOptions
	home          string           // namespace of an istiod that a cluster has already; "" = istio-system
	connectionAge string           // at which istiod closes a proxy's connection, as its flag takes it
	report        component.Report // of istiod
	// sendsUnready reports that endpoints that are not ready are sent, too.
	sendsUnready bool
	bootstrap    []byte // Envoy's bootstrap template, for real sidecars; nil = there are none
	client       kubernetes.Interface
	dynamic      dynamic.Interface
	root         []byte
	others       []otherService // services that are no part of the mesh
	podless      []string       // in ambient mode, the names of workloads that are endpoints without a pod
	first        *instance      // the istiod that was started first
	reached      reached
	replicas     *replicas // nil: there is one istiod

	configured map[string]string // settings of its configuration that a stock installation does not have

	promoted atomic.Bool // the tag "default" was moved to this revision
}

// reached has the addresses at which proxies and the API server reach a control plane.
type reached struct {
	address         string // host:port that simulated proxies connect to
	secure, webhook int    // ports on loopback, for real proxies and the API server
}

// Start installs Istio into the cluster, starts istiod and returns once it is
// ready, its webhooks are served, and its root certificate is known. istiod closes
// a proxy's connection at this age; connectionAge is the chart's.
func Start(ctx context.Context, opts controlplane.StartOptions, age time.Duration) (*ControlPlane, error) {
	c := &ControlPlane{opts: opts, connectionAge: age.String()}
	var err error
	if c.report, err = opts.Versions.Of(ctx, component.Istiod, opts.Programs[component.Istiod]); err != nil {
		return nil, err
	}
	c.sendsUnready = sendsUnready(c.report.Version, opts.Resources.Environment(c.environment(Name)...))
	if opts.RealSidecars {
		if c.bootstrap, err = os.ReadFile(filepath.Join(opts.Programs[component.IstioManifests], component.IstioBootstrapFile)); err != nil {
			return nil, fmt.Errorf("reading the bootstrap template of real sidecars: %w", err)
		}
	}
	if c.client, err = kubernetes.NewForConfig(opts.REST); err != nil {
		return nil, fmt.Errorf("making a client for istiod's cluster: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(opts.REST); err != nil {
		return nil, fmt.Errorf("making a client for istiod's cluster: %w", err)
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	opts.Report("installing Istio " + c.report.Version)
	if err := c.install(ctx); err != nil {
		return nil, fmt.Errorf("installing Istio: %w", err)
	}
	opts.Report("starting istiod")
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.stop(interrupt.Uncancelled(ctx)))
	}
	return c, nil
}

// prepare makes the istiods, and decides where they are reached. None runs yet.
func (c *ControlPlane) prepare() (err error) {
	if c.opts.Replicas > 0 {
		c.replicas, err = c.newReplicas(c.opts.Replicas, c.opts.SpareReplicas)
		return err
	}
	if c.first, err = c.newInstance(cmp.Or(c.opts.Name, Name), c.opts.Name == ""); err != nil {
		return err
	}
	c.reached = reached{c.first.Address(), c.first.ports.secure, c.first.ports.webhook}
	return nil
}

// start starts the istiods, and returns when the first has put itself in charge of what
// they all share: webhooks, and the root certificate.
func (c *ControlPlane) start(ctx context.Context) error {
	if err := c.first.Restart(ctx); err != nil {
		return err
	}
	if err := c.first.checkTaken(); err != nil {
		return err
	}
	if err := c.awaitInstalled(ctx); err != nil {
		return fmt.Errorf("waiting for Istio's webhooks and root certificate: %w", err)
	}
	if c.replicas != nil {
		if err := c.replicas.startOthers(ctx); err != nil {
			return err
		}
	}
	return c.findOtherServices(ctx)
}

// stop ends the istiods that run.
func (c *ControlPlane) stop(ctx context.Context) error {
	if c.replicas != nil {
		return c.replicas.stop(ctx)
	}
	return c.first.Stop(ctx)
}

// Describe states which istiod runs and how: the settings that its figures depend
// on, or that differ from the chart's.
func (c *ControlPlane) Describe() controlplane.Description {
	settings := map[string]string{
		"keepaliveMaxServerConnectionAge": c.connectionAge,
		"ISTIOD_CUSTOM_HOST":              customHost,
	}
	if c.opts.RealSidecars {
		for _, setting := range upstreamEnvironment {
			name, value, _ := strings.Cut(setting, "=")
			settings[name] = value
		}
		settings["meshConfig.defaultProviders.metrics"] = "none"
		settings["meshConfig.enablePrometheusMerge"] = "false"
	}
	if c.hasZtunnels() {
		settings[ambientSetting] = "true"
	}
	if c.mixed() {
		settings["meshConfig.defaultConfig.proxyMetadata."+hboneSetting] = "true"
	}
	maps.Copy(settings, c.configured)
	resources := c.opts.Resources
	var limits *record.Limits
	if expected(c.report.Version) {
		limits = Limits(resources.Env)
	}
	return controlplane.Description{
		Name: cmp.Or(c.opts.Name, Name), Version: c.report.Version, Unchecked: unchecked(c.report.Version), ProxyVersion: c.proxyVersion(), Replicas: max(1, c.opts.Replicas), MaxProcs: resources.Processors(),
		Settings: resources.Settings(settings), Limits: limits,
		Retries: inboundRetries,
	}
}

// environment returns the variables that the chart sets for the istiod of a pod, and what a host process needs
// in addition: ISTIOD_CUSTOM_HOST adds the name that the webhooks are called by
// to istiod's serving certificate.
func (c *ControlPlane) environment(pod string) []string {
	var upstream []string
	if c.opts.RealSidecars {
		upstream = upstreamEnvironment
	}
	if c.hasZtunnels() {
		upstream = append(slices.Clone(upstream), ambientSetting+"=true")
	}
	return append([]string{
		"REVISION=" + cmp.Or(c.opts.Revision, "default"),
		"PILOT_CERT_PROVIDER=istiod",
		"POD_NAME=" + pod,
		"POD_NAMESPACE=" + namespace,
		"SERVICE_ACCOUNT=" + c.named("istiod"),
		"CLUSTER_ID=" + clusterID,
		"CA_TRUSTED_NODE_ACCOUNTS=istio-system/ztunnel",
		"PILOT_TRACE_SAMPLING=1",
		"PILOT_ENABLE_ANALYSIS=false",
		"ISTIOD_CUSTOM_HOST=" + customHost,
		"INJECTION_WEBHOOK_CONFIG_NAME=" + c.mutatingWebhook(),
		"VALIDATION_WEBHOOK_CONFIG_NAME=" + c.validatingWebhook(),
		"HOME=" + c.opts.LogDir,
		"PATH=/usr/bin:/bin",
	}, upstream...)
}
