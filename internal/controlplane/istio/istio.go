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
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/process"
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

// Options state where and how istiod runs.
type Options struct {
	Program    string         // istiod's binary
	Manifests  string         // the folder component.IstioManifests of its version
	Kubeconfig string         // file istiod reads
	REST       *rest.Config   // the same cluster, for scaler's own requests
	Group      *process.Group // the children that istiod joins
	LogDir     string         // the log of its name is written there
	// Revision is the one that Manifests install; "" = there are no revisions. Its pods are
	// those whose label says so, and its tag "default" is left out with Next.
	Revision string
	Next     bool // another revision serves the mesh already, which keeps the tag
	// Namespace is that of an istiod that a cluster has already; "" = istio-system.
	Namespace string

	// Versions knows what programs report; nil = istiod is asked.
	Versions *component.Versions
	Progress func(string) // nil = silent

	// Resources is what istiod is given of this machine; the chart sets GOMAXPROCS
	// from the processor limit, too.
	Resources controlplane.Resources

	// As is the captured revision whose configuration it has; nil = that of a stock installation.
	As *capture.Revision
	// Set are settings (PATH=VALUE) of its configuration, in place of those that it would have.
	Set []string

	// Name is that of its process, pod and log, where other istiods run in its cluster; ""
	// = Name, of one that is the only one of its cluster.
	Name string

	// Replicas is how many istiods share the work, reached as through a Service; 0 = one,
	// which is reached directly.
	Replicas int
	Spare    int // that are made in addition and not started

	// UpstreamEnvoy makes istiod send only what an Envoy understands that has
	// none of Istio's own filters. False leaves the chart's settings.
	UpstreamEnvoy bool

	// ProxyVersion is the one that simulated sidecars report; "" = istiod's.
	ProxyVersion string

	// Ambient makes istiod serve ztunnels, and pods without sidecars. False leaves all that is
	// about ambient mode as the chart has it: off.
	Ambient bool
	// Mixed makes pods of some namespaces have sidecars although Ambient is true: see ambient.Serves.
	Mixed bool

	// Waypoints is what has a waypoint each in ambient mode, as controlplane.StartOptions has it.
	Waypoints string

	// ConnectionAge is that at which istiod closes a proxy's connection, as its
	// flag takes it; "" leaves the chart's, connectionAge.
	ConnectionAge string
}

// ControlPlane is a running istiod.
type ControlPlane struct {
	// fixed after Start
	opts   Options
	report component.Report // of istiod
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

// reached is where proxies and the API server reach a control plane.
type reached struct {
	address         string // host:port that simulated proxies connect to
	secure, webhook int    // ports on loopback, for real proxies and the API server
}

// Start installs Istio into the cluster, starts istiod and returns once it is
// ready, its webhooks are served, and its root certificate is known.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	opts.ConnectionAge = cmp.Or(opts.ConnectionAge, connectionAge.String())
	c := &ControlPlane{opts: opts}
	var err error
	if c.report, err = opts.Versions.Of(ctx, component.Istiod, opts.Program); err != nil {
		return nil, err
	}
	c.sendsUnready = sendsUnready(c.report.Version, opts.Resources.Environment(c.environment(Name)...))
	if opts.UpstreamEnvoy {
		if c.bootstrap, err = os.ReadFile(filepath.Join(opts.Manifests, component.IstioBootstrapFile)); err != nil {
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
	opts.Progress("installing Istio " + c.report.Version)
	if err := c.install(ctx); err != nil {
		return nil, fmt.Errorf("installing Istio: %w", err)
	}
	opts.Progress("starting istiod")
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.stop(interrupt.Uncancelled(ctx)))
	}
	return c, nil
}

// prepare makes the istiods, and decides where they are reached. None runs yet.
func (c *ControlPlane) prepare() (err error) {
	if c.opts.Replicas > 0 {
		c.replicas, err = c.newReplicas(c.opts.Replicas, c.opts.Spare)
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
		"keepaliveMaxServerConnectionAge": c.opts.ConnectionAge,
		"ISTIOD_CUSTOM_HOST":              customHost,
	}
	if c.opts.UpstreamEnvoy {
		for _, setting := range upstreamEnvironment {
			name, value, _ := strings.Cut(setting, "=")
			settings[name] = value
		}
		settings["meshConfig.defaultProviders.metrics"] = "none"
		settings["meshConfig.enablePrometheusMerge"] = "false"
	}
	if c.opts.Ambient {
		settings[ambientSetting] = "true"
	}
	if c.opts.Mixed {
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

// environment is what the chart gives the istiod of a pod, and what a host process needs
// in addition: ISTIOD_CUSTOM_HOST adds the name that the webhooks are called by
// to istiod's serving certificate.
func (c *ControlPlane) environment(pod string) []string {
	var upstream []string
	if c.opts.UpstreamEnvoy {
		upstream = upstreamEnvironment
	}
	if c.opts.Ambient {
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

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
