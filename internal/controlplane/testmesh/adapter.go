package testmesh

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// adapter is a running control plane.
type adapter struct {
	controlplane.Child
	options         controlplane.StartOptions
	program         string
	ads, monitoring string // HOST:PORT
	authority       *authority
}

// start starts the program and returns once it serves.
func start(ctx context.Context, program string, o controlplane.StartOptions) (*adapter, error) {
	client, err := kubernetes.NewForConfig(o.REST)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", Name, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); controlplane.Created(err) != nil {
		return nil, fmt.Errorf("creating namespace %s: %w", Namespace, err)
	}
	a := &adapter{options: o, program: program}
	if a.authority, err = ensureAuthority(ctx, client); err != nil {
		return nil, err
	}
	if a.program == "" {
		if a.program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("finding the program of %s: %w", Name, err)
		}
	}
	ports, err := process.FreePorts(2)
	if err != nil {
		return nil, fmt.Errorf("finding ports for %s: %w", Name, err)
	}
	a.ads, a.monitoring = local127(ports[0]), local127(ports[1])
	a.Child = controlplane.Child{Group: o.Group, Resources: o.Resources, LogDir: o.LogDir, Command: a.command, Ready: controlplane.Answers("http://" + a.monitoring + "/ready")}
	return a, a.Restart(ctx)
}

func local127(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// command is what the program is started with.
func (a *adapter) command() process.Spec {
	return process.Spec{
		Name: Name,
		Path: a.program,
		Args: []string{Name, "--kubeconfig", a.options.Kubeconfig, "--selector", kwok.RunLabel, "--ads", a.ads, "--monitoring", a.monitoring},
		Env:  []string{"HOME=" + a.options.LogDir, "PATH=/usr/bin:/bin"},
	}
}

// Describe is part of controlplane.Server.
func (a *adapter) Describe() controlplane.Description {
	return controlplane.Description{
		Name: Name, Version: a.options.Scaler, Replicas: 1,
		MaxProcs: a.options.Resources.Processors(), Settings: a.options.Resources.Settings(map[string]string{}),
	}
}

// Endpoints is part of controlplane.Server.
func (a *adapter) Endpoints() controlplane.Endpoints {
	return controlplane.Endpoints{Metrics: "http://" + a.monitoring + "/metrics"}
}

// metrics are what the server's own metrics mean.
func metrics() controlplane.Metrics {
	responses := map[convergence.Type]string{}
	for _, t := range xdsprobe.EnvoyTypesWithSecrets() {
		responses[t.Name] = fmt.Sprintf("sum(%s{type=%q})", metricResponses, t.Name)
	}
	return controlplane.Metrics{
		Phase: []controlplane.Metric{
			{Name: "responses", Expr: "sum(increase(" + metricResponses + "[$window]))"},
			{Name: "rejects", Expr: "sum(increase(" + metricRejects + "[$window]))"},
			{Name: "certificates", Expr: "sum(increase(" + metricCertificates + "[$window]))"},
		},
		Counters: controlplane.Counters{
			Responses: responses, Connected: "sum(" + metricStreams + ")",
			CertificateRequests: "sum(" + metricRequests + ")", Certificates: "sum(" + metricCertificates + ")",
		},
	}
}

// Spec is part of controlplane.Proxies: an Envoy with a bootstrap certificate and
// nothing else, as an injector would give it to the pod.
func (a *adapter) Spec(pod *corev1.Pod) (proxy.Spec, error) {
	w := workload{namespace: pod.Namespace, pod: pod.Name, service: pod.Labels[kwok.ServiceLabel], account: pod.Spec.ServiceAccountName}
	if w.service == "" || w.account == "" {
		return proxy.Spec{}, fmt.Errorf("pod %s has no label %s or no service account: it is not part of the mesh", w.id(), kwok.ServiceLabel)
	}
	chain, key, err := a.authority.bootstrap(w)
	if err != nil {
		return proxy.Spec{}, err
	}
	return proxy.Spec{
		ID: w.id(), Address: a.ads, ServerName: serverName, RootPEM: a.authority.rootPEM,
		ClientCertificatePEM: chain, ClientKeyPEM: key,
		XDS: string(xdsprobe.SotW), NodeID: w.id(), NodeCluster: w.namespace + "/" + w.service, Identity: w.identity(),
	}, nil
}
