package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/pkg/scenario"
)

// Installed states how to use a control plane that a cluster has already. Nothing of it is
// changed: neither its programs and their settings, nor what is configured for other
// workloads of its mesh.
type Installed struct {
	// Rights are the rights to the objects of its own kinds that a run makes.
	Rights []rbacv1.PolicyRule
	// MeshRights are the rights to the objects of a captured mesh, in addition.
	MeshRights []rbacv1.PolicyRule
	// Find looks for it. Its error names what is missing, or what cannot be used, and what
	// is wanted.
	Find func(ctx context.Context, o FindOptions) (Installation, error)
	// Attach returns what a run works with.
	Attach func(ctx context.Context, o AttachOptions) (*ControlPlane, error)
	// Sidecar describes the sidecar of injected pods on real nodes; nil = such pods are not supported.
	Sidecar *InjectedSidecar
	// Check states what of a mode's knobs an installation cannot be used with; "" = nothing.
	Check func(i Installation, knobs scenario.Settings) string
}

// InjectedSidecar is the sidecar of an injected pod: an Envoy whose admin interface is on loopback of the pod.
type InjectedSidecar struct {
	Container   string // its name in a pod
	AdminPort   int
	Cluster     string // of Envoy, that ADS comes over
	Certificate string // the secret that the certificate for others comes in, over SDS
	// Processes are the names of the programs that run in the container.
	Processes []string
	// NotInjected are labels of a pod that gets none, whatever its namespace says.
	NotInjected map[string]string
}

// FindOptions state where a control plane is looked for.
type FindOptions struct {
	REST      *rest.Config // the cluster; it must be set
	Namespace string       // "" = where it is installed by default
	Revision  string       // of several; "" = the only one
}

// Installation is a control plane that a cluster has.
type Installation struct {
	Namespace string
	Revision  string   // "" = it has no revisions
	Revisions []string // all that the cluster has; nil = there are none
	Version   string   // by its image; "" = that is not known before it is asked
	// Deployment is the name of what runs it; "" = it runs outside of the cluster, and what
	// follows is not known.
	Deployment      string
	Replicas, Ready int
	Autoscaler      *Autoscaler // nil = none scales it
	Pods            []string    // names of those that are ready
	Requests        map[string]string
	Limits          map[string]string
	Env             []string          // NAME=VALUE of its container, without values from elsewhere
	Settings        map[string]string // that figures depend on
	ProxyPort       int               // that proxies connect to
	MetricsPort     int
	// ServiceAddress is HOST:PORT that the cluster's own proxies connect to.
	ServiceAddress string
}

// Describe says in a line what it is.
func (i Installation) Describe() string {
	text := i.Namespace
	if i.Deployment == "" {
		text += ", without a Deployment in the cluster"
	} else {
		text += fmt.Sprintf("/%s, %d of %d replicas ready", i.Deployment, i.Ready, i.Replicas)
	}
	if i.Version != "" {
		text += ", version " + i.Version
	}
	if len(i.Revisions) > 0 {
		text += ", revision " + cmp.Or(i.Revision, "default") + " of " + strings.Join(i.Revisions, ", ")
	}
	if i.Autoscaler != nil {
		text += fmt.Sprintf(", scaled from %d to %d replicas by an autoscaler", i.Autoscaler.Min, i.Autoscaler.Max)
	}
	return text
}

// Autoscaler bounds how many replicas there are.
type Autoscaler struct{ Min, Max int }

// AttachOptions state how an installation is reached.
type AttachOptions struct {
	REST         *rest.Config // the cluster; it must be set
	Installation Installation // that was found
	Address      string       // HOST:PORT that simulated proxies connect to
	Instances    []Instance   // whose metrics are read; nil = none are known
	ProxyVersion string       // that simulated sidecars report; "" = that of the control plane
}

// Instance is one program of a control plane that runs elsewhere.
type Instance struct {
	Name    string         // of its metrics and figures
	Metrics string         // URL of its own metrics
	Usage   measure.Source // reads what it uses
}
