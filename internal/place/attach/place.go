package attach

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/pkg/scenario"
)

// Place is an existing cluster, with its control plane, in which a run makes objects with its label
// and deletes them at its end.
type Place struct {
	Target Target
	ID     string // distinguishes the runs of the cluster
}

// NewPlace returns the place that a scenario states, with an ID of its own. It sends nothing. Errors
// of fields are of type *[scenario.Error].
func NewPlace(p scenario.Place) (Place, error) {
	for _, address := range []struct{ path, value string }{{"place.address", p.Address}, {"place.metrics", p.Metrics}} {
		if address.value == "" {
			continue
		}
		if err := scenario.CheckAddress(address.path, address.value); err != nil {
			return Place{}, err
		}
	}
	var random [3]byte
	if _, err := rand.Read(random[:]); err != nil {
		return Place{}, err
	}
	return Place{ID: hex.EncodeToString(random[:]), Target: Target{
		Target:    existing.Target{Context: p.Context, Kubeconfig: p.Kubeconfig},
		Namespace: p.Namespace, Revision: p.Revision, Address: p.Address, Metrics: p.Metrics,
	}}, nil
}

// Label returns the value of the run label on everything that a run with a name makes there.
func (p *Place) Label(name string) string { return name + "-" + p.ID }

// Stays states how what a run with a label left there is deleted.
func (p *Place) Stays(run string) string {
	return "'" + p.Target.removal(run) + "' deletes what is left"
}

// ErrNotInspected marks a run in a cluster that was not inspected before.
var ErrNotInspected = errors.New("the existing cluster was not inspected")

// Found describes a cluster, and what a run would make there.
type Found struct {
	Cluster      *existing.Cluster
	Kubernetes   string // version
	Neighbours   existing.Neighbours
	Installation controlplane.Installation

	Run     string           // value of the label of all that the run makes
	Objects []runtime.Object // that the run creates, in their order, as it has stated them
	Removal string           // command that deletes what the run has left
}

// Inspect looks at the cluster and fails when a run with a label must not start there. It creates
// nothing. The control plane must be one that can have all of the knobs.
func (p *Place) Inspect(ctx context.Context, d controlplane.Driver, run string, knobs ...scenario.Settings) (*Found, error) {
	f := &Found{Run: run, Removal: p.Target.removal(run)}
	for _, c := range checks(d, p.Target, knobs, run) {
		if _, err := c.do(ctx, f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Adapter returns the adapter of the control plane, for what it decides about the objects of a run: its programs are not
// connected to. proxyVersion is the one that simulated sidecars report; "" = the control plane's.
func (f *Found) Adapter(ctx context.Context, d controlplane.Driver, proxyVersion string) (*controlplane.ControlPlane, error) {
	i := f.Installation
	i.Version = cmp.Or(i.Version, "unknown") // it is not asked
	return d.Installed.Attach(ctx, controlplane.AttachOptions{REST: f.Cluster.Config, Installation: i, ProxyVersion: proxyVersion})
}

// removal returns the command that deletes what a run with a label has left in the cluster.
func (t Target) removal(label string) string {
	command := "scaler cleanup --run " + label + " --context " + t.Context
	if t.Kubeconfig != "" {
		command += " --kubeconfig " + t.Kubeconfig
	}
	return command
}
