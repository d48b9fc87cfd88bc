package existing

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/scenario"
)

// InCluster is the context of a scaler that runs as a pod, with the rights of its service account. A
// context of this name in a kubeconfig takes precedence.
const InCluster = "in-cluster"

// Target names a cluster.
type Target struct {
	Kubeconfig string // file with contexts; "" = KUBECONFIG, else ~/.kube/config
	Context    string // name of a context, or InCluster; "" = the current one
}

// Cluster is an existing one: how its API server is reached.
type Cluster struct {
	Context string // name of the context
	Server  string // URL of the API server
	// Config has no rate limit of the client's own. Copy it before changing it.
	Config *rest.Config

	kubeconfig clientcmdapi.Config // of this context alone
}

// Open reads the kubeconfig, or what a pod has in place of one. It sends nothing.
func (t Target) Open() (*Cluster, error) {
	return t.open(pod{mount: "/var/run/secrets/kubernetes.io/serviceaccount", getenv: os.Getenv})
}

// contexts states which contexts a kubeconfig has.
func contexts(raw clientcmdapi.Config) string {
	names := slices.Sorted(maps.Keys(raw.Contexts))
	if len(names) == 0 {
		return "a context of the kubeconfig, which has none"
	}
	return "a context of the kubeconfig: " + output.FirstOf(names, contextsShown)
}

// contextsShown limits the contexts that an error lists.
const contextsShown = 10

func (t Target) open(in pod) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: t.Context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if t.Context != "" {
		raw.CurrentContext = t.Context
	}
	if raw.Contexts[raw.CurrentContext] == nil {
		if raw.CurrentContext != InCluster || t.Kubeconfig != "" {
			return nil, scenario.Refuse("place.context", raw.CurrentContext, "%s", contexts(raw))
		}
		if raw, err = in.kubeconfig(); err != nil {
			return nil, err
		}
	}
	if err := clientcmdapi.MinifyConfig(&raw); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := clientcmdapi.FlattenConfig(&raw); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config, err := clientcmd.NewDefaultClientConfig(raw, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return &Cluster{Context: raw.CurrentContext, Server: config.Host, Config: config, kubeconfig: raw}, nil
}

// pod is the access of a container to the API server of its cluster.
type pod struct {
	mount  string // of the service account's token
	getenv func(string) string
}

// kubeconfig has what rest.InClusterConfig reads, as a file for KWOK has it. The token stays a
// file: the kubelet replaces it before it expires.
func (p pod) kubeconfig() (clientcmdapi.Config, error) {
	host, port := p.getenv("KUBERNETES_SERVICE_HOST"), p.getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return clientcmdapi.Config{}, scenario.Refuse("place.context", InCluster, "it in a pod, or a context of that name in the kubeconfig: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = InCluster
	config.Contexts[InCluster] = &clientcmdapi.Context{Cluster: InCluster, AuthInfo: InCluster}
	config.Clusters[InCluster] = &clientcmdapi.Cluster{
		Server: "https://" + net.JoinHostPort(host, port), CertificateAuthority: filepath.Join(p.mount, "ca.crt"),
	}
	config.AuthInfos[InCluster] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(p.mount, "token")}
	for _, file := range []string{config.Clusters[InCluster].CertificateAuthority, config.AuthInfos[InCluster].TokenFile} {
		if _, err := os.Stat(file); err != nil {
			return clientcmdapi.Config{}, scenario.Refuse("place.context", InCluster, "a pod with the token of its service account (automountServiceAccountToken): %v", err)
		}
	}
	return *config, nil
}
