// Package place defines where a run happens: an API server, the programs around
// it with their metrics and resource usage, and the removal of what a run made
// there. Embedded clusters implement it in package embedded; a user's own cluster
// can implement it without a process of this machine.
//
// It leaves to others what a run does there: objects, control planes, recording.
package place

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/measure"
)

// APIServer is the name of the [Component] that is the Kubernetes API server.
const APIServer = "kube-apiserver"

// Environment is the cluster in which a run happens. Its methods may be called by several
// goroutines.
type Environment interface {
	// API returns the access to its API server.
	API() API
	// Components returns its programs, in the order in which they were started. A
	// component keeps its name when it is started again; its Usage is the new
	// life's.
	Components() []Component
	// Died delivers an error for each component that ended unexpectedly.
	// It is never closed; nil if the components are not watched.
	Died() <-chan error
	// Delete deletes all objects that carry the run's label (kwok.RunLabel),
	// fake nodes and namespaces included, and returns when they are gone, or, of
	// namespaces, are empty and about to go. It may be called again, and for a run that made nothing. It returns what was
	// deleted also with an error, which is ErrNoAPIServer where nothing can be
	// deleted.
	Delete(ctx context.Context, run string) (Deleted, error)
}

// ErrNoAPIServer reports that the environment's API server does not run, or not what it keeps objects in.
var ErrNoAPIServer = errors.New("the API server does not run")

// API is the access to an API server, with all rights that a run needs.
type API struct {
	// Config has no rate limit of the client's own. Copy it before changing it.
	Config *rest.Config
	// Kubeconfig is the path of a file for programs that are started; it refers
	// to no other files.
	Kubeconfig string
}

// Component is one program of an environment.
type Component struct {
	Name string
	// Target is the endpoint of its metrics; its Job is the name. nil = it is not
	// scraped.
	Target *measure.Target
	// Usage reads what its present life uses; nil = not known. Each call of
	// Components makes a new one, which belongs to the caller.
	Usage measure.Source
	// Settings are the settings that differ from the stock ones and that figures depend
	// on, by name; nil = not known.
	Settings map[string]string
	// Note says in a sentence what the component is here; "" = as everywhere.
	Note string
}

// Find returns the component of a name.
func Find(env Environment, name string) (Component, error) {
	for _, c := range env.Components() {
		if c.Name == name {
			return c, nil
		}
	}
	return Component{}, fmt.Errorf("finding %s: no such component", name)
}
