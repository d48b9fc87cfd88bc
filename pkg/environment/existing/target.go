package existing

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Target names a cluster.
type Target struct {
	Kubeconfig string // file with contexts; "" = KUBECONFIG, else ~/.kube/config
	Context    string // name of a context; "" = the current one
}

// Cluster is one that is there already: how its API server is reached.
type Cluster struct {
	Context string // name of the context
	Server  string // URL of the API server
	// Config has no rate limit of the client's own. Copy it before changing it.
	Config *rest.Config

	kubeconfig clientcmdapi.Config // of this context alone
}

// Open reads the kubeconfig. It sends nothing.
func (t Target) Open() (*Cluster, error) {
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
		return nil, fmt.Errorf("parsing --context %q: want a context of the kubeconfig, as 'kubectl config get-contexts' lists them", raw.CurrentContext)
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
