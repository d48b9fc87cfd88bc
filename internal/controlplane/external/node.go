package external

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/credentialfile"
	"scaler.mesh/scaler/internal/istioagent"
	"scaler.mesh/scaler/internal/nodetemplate"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/proxy"
)

// Templates of what a sidecar reports of itself, as sidecars of Istio do.
const (
	DefaultNodeID      = "sidecar~{{.IP}}~{{.Pod}}.{{.Namespace}}~{{.Namespace}}.svc.cluster.local"
	DefaultNodeCluster = "{{.Service}}.{{.Namespace}}"
	DefaultMetadata    = `{"NAME": "{{.Pod}}", "NAMESPACE": "{{.Namespace}}", "CLUSTER_ID": "Kubernetes", "INSTANCE_IPS": "{{.IP}}", "LABELS": {"app": "{{.Service}}"}}`
)

// keepalive is between the proxies' HTTP/2 pings, as of Istio's agent.
const keepalive = 30 * time.Second

// Node has the fields of a sidecar that the templates can use.
type Node struct{ Pod, Namespace, Service, Account, IP string }

// nodes makes what each sidecar reports of itself.
type nodes struct{ id, cluster, metadata *template.Template }

func parseNodes(r controlplane.Remote) (n nodes, err error) {
	for _, t := range []struct {
		name, text string
		parsed     **template.Template
	}{
		{"nodeID", cmp.Or(r.NodeID, DefaultNodeID), &n.id},
		{"nodeCluster", cmp.Or(r.NodeCluster, DefaultNodeCluster), &n.cluster},
		{"metadata", cmp.Or(r.Metadata, DefaultMetadata), &n.metadata},
	} {
		if *t.parsed, err = nodetemplate.Parse(field+t.name, t.text); err != nil {
			return n, fmt.Errorf("%s%s: got %q: %w", field, t.name, t.text, err)
		}
	}
	_, _, _, err = n.of(Node{Pod: "pod", Namespace: "namespace", Service: "service", Account: "account", IP: "10.0.0.1"})
	return n, err
}

// of fills in the templates.
func (n nodes) of(node Node) (id, cluster string, metadata map[string]any, err error) {
	var text string
	for _, t := range []struct {
		template *template.Template
		into     *string
	}{{n.id, &id}, {n.cluster, &cluster}, {n.metadata, &text}} {
		if *t.into, err = nodetemplate.Execute(t.template, node); err != nil {
			return "", "", nil, fmt.Errorf("%s: %w", t.template.Name(), err)
		}
	}
	if err := json.Unmarshal([]byte(text), &metadata); err != nil || metadata == nil {
		return "", "", nil, fmt.Errorf("%smetadata: for pod %s it reads %q: want a JSON object", field, node.Pod, text)
	}
	return id, cluster, metadata, nil
}

// newProxy returns an ADS client that requests no certificate.
func newProxy(spec proxy.Spec, s controlplane.ProxyServices) (proxy.Proxy, error) {
	services := istioagent.Services{Store: s.Store, Observer: s.Observer}
	if spec.TokenFile != "" {
		services.Token = tokenFile(spec.TokenFile)
	}
	agent, err := istioagent.New(spec, services)
	if err != nil {
		return nil, err
	}
	return agent, nil
}

// Spec is part of controlplane.Proxies.
func (s *server) Spec(pod *corev1.Pod) (proxy.Spec, error) {
	id := pod.Namespace + "/" + pod.Name
	if pod.Status.PodIP == "" {
		return proxy.Spec{}, fmt.Errorf("pod %s has no IP yet", id)
	}
	nodeID, cluster, metadata, err := s.nodes.of(Node{
		Pod: pod.Name, Namespace: pod.Namespace, Service: pod.Labels[kwok.ServiceLabel], Account: pod.Spec.ServiceAccountName, IP: pod.Status.PodIP,
	})
	return proxy.Spec{
		ID: id, Address: s.remote.Address, ServerName: s.trust.serverName, RootPEM: s.trust.rootPEM,
		ClientCertificatePEM: s.trust.certPEM, ClientKeyPEM: s.trust.keyPEM,
		NodeID: nodeID, NodeCluster: cluster, Metadata: metadata, Keepalive: keepalive, TokenFile: s.remote.TokenFile,
	}, err
}

// tokenLife is the time after which a token file is read again.
const tokenLife = time.Minute

// tokenFile provides what a file holds, for all pods.
type tokenFile string

// Token is part of proxy.TokenSource.
func (f tokenFile) Token(context.Context) (proxy.Token, error) {
	token, err := credentialfile.Token(string(f))
	return proxy.Token{Value: token, Expires: time.Now().Add(tokenLife)}, err
}
