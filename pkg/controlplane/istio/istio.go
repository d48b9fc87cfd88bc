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
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/record"
)

const (
	namespace   = "istio-system"
	clusterID   = "Kubernetes"
	trustDomain = "cluster.local"
	revision    = "default"
	serverName  = "istiod." + namespace + ".svc"

	// connectionAge is the chart's --keepaliveMaxServerConnectionAge.
	connectionAge = "30m"

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
	LogDir     string         // istiod.log is written there

	// Versions knows what programs report; nil = istiod is asked.
	Versions *component.Versions
	Progress func(string) // nil = silent

	// Resources is what istiod is given of this machine; the chart sets GOMAXPROCS
	// from the processor limit, too.
	Resources controlplane.Resources

	// UpstreamEnvoy makes istiod send only what an Envoy understands that has
	// none of Istio's own filters. False leaves the chart's settings.
	UpstreamEnvoy bool

	// ProxyVersion is the one that simulated sidecars report; "" = istiod's.
	ProxyVersion string

	// ConnectionAge is that at which istiod closes a proxy's connection, as its
	// flag takes it; "" leaves the chart's 30m.
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
	ports        ports
	root         []byte
	others       []otherService // services that are no part of the mesh

	mu      sync.Mutex
	process *process.Process
}

type ports struct{ plain, secure, http, webhook, monitoring int }

// Start installs Istio into the cluster, starts istiod and returns once it is
// ready, its webhooks are served, and its root certificate is known.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	opts.ConnectionAge = cmp.Or(opts.ConnectionAge, connectionAge)
	free, err := process.FreePorts(5)
	if err != nil {
		return nil, fmt.Errorf("finding ports for istiod: %w", err)
	}
	c := &ControlPlane{opts: opts, ports: ports{free[0], free[1], free[2], free[3], free[4]}}
	if c.report, err = opts.Versions.Of(ctx, component.Istiod, opts.Program); err != nil {
		return nil, err
	}
	c.sendsUnready = sendsUnready(c.report.Version, c.environment())
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
	i := installer{c}
	opts.Progress("installing Istio " + c.report.Version)
	if err := i.install(ctx); err != nil {
		return nil, fmt.Errorf("installing Istio: %w", err)
	}
	opts.Progress("starting istiod")
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	if err := i.awaitInstalled(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for Istio's webhooks and root certificate: %w", err), c.Life().Stop(interrupt.Uncancelled(ctx)))
	}
	if err := i.findOtherServices(ctx); err != nil {
		return nil, errors.Join(err, c.Life().Stop(interrupt.Uncancelled(ctx)))
	}
	return c, nil
}

// Restart starts istiod again after it ended, on the same addresses, as a
// Deployment would.
func (c *ControlPlane) Restart(ctx context.Context) error { return c.run(ctx) }

// Life is that of the istiod that runs now, or ran last.
func (c *ControlPlane) Life() controlplane.Life {
	c.mu.Lock()
	defer c.mu.Unlock()
	return controlplane.LifeOf(c.process)
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
	resources := c.opts.Resources
	var limits *record.Limits
	if expected(c.report.Version) {
		limits = Limits(resources.Env)
	}
	return controlplane.Description{
		Name: Name, Version: c.report.Version, Unchecked: unchecked(c.report.Version), ProxyVersion: c.proxyVersion(), Replicas: 1, MaxProcs: resources.Processors(),
		Settings: resources.Settings(settings), Limits: limits,
		Retries: inboundRetries,
	}
}

// environment is what the chart gives istiod, and what a host process needs
// in addition: ISTIOD_CUSTOM_HOST adds the name that the webhooks are called by
// to istiod's serving certificate.
func (c *ControlPlane) environment() []string {
	var upstream []string
	if c.opts.UpstreamEnvoy {
		upstream = upstreamEnvironment
	}
	return c.opts.Resources.Environment(append([]string{
		"REVISION=" + revision,
		"PILOT_CERT_PROVIDER=istiod",
		"POD_NAME=istiod",
		"POD_NAMESPACE=" + namespace,
		"SERVICE_ACCOUNT=istiod",
		"CLUSTER_ID=" + clusterID,
		"CA_TRUSTED_NODE_ACCOUNTS=istio-system/ztunnel",
		"PILOT_TRACE_SAMPLING=1",
		"PILOT_ENABLE_ANALYSIS=false",
		"ISTIOD_CUSTOM_HOST=" + customHost,
		"INJECTION_WEBHOOK_CONFIG_NAME=" + mutatingWebhook,
		"VALIDATION_WEBHOOK_CONFIG_NAME=" + validatingWebhook,
		"HOME=" + c.opts.LogDir,
		"PATH=/usr/bin:/bin",
	}, upstream...)...)
}

func (c *ControlPlane) run(ctx context.Context) error {
	address := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	p, err := c.opts.Group.Start(c.opts.Resources.Apply(process.Spec{
		Name: Name,
		Path: c.opts.Program,
		Args: append([]string{"discovery",
			"--kubeconfig", c.opts.Kubeconfig,
			"--domain", trustDomain,
			"--grpcAddr", address(c.ports.plain),
			"--secureGRPCAddr", address(c.ports.secure),
			"--httpAddr", address(c.ports.http),
			"--httpsAddr", address(c.ports.webhook),
			"--monitoringAddr", address(c.ports.monitoring),
			"--keepaliveMaxServerConnectionAge", c.opts.ConnectionAge,
			"--log_output_level=default:info",
		}, c.opts.Resources.Args...),
		Env: c.environment(),
		Dir: c.opts.LogDir,
		Log: filepath.Join(c.opts.LogDir, "istiod.log"),
	}))
	if err != nil {
		return fmt.Errorf("starting istiod: %w", err)
	}
	c.mu.Lock()
	c.process = p
	c.mu.Unlock()
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	err = process.WaitReady(ready, p, func(ctx context.Context) error {
		_, err := httpget.Get(ctx, client, "http://"+address(c.ports.http)+"/ready")
		return err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("waiting for istiod: %w", err), p.Stop(interrupt.Uncancelled(ctx)))
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
