package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/process"
)

// aboutName is the file in a cluster's folder that describes it to others.
const aboutName = "cluster.json"

// about is its content.
type about struct {
	Server  string    `json:"server"`
	Started time.Time `json:"started"`
}

// State is the state of a cluster, in one word.
type State string

// States of a cluster.
const (
	Running  State = "running"  // all processes run
	Degraded State = "degraded" // some have ended
	Stopped  State = "stopped"  // none runs, as after a restart of the machine
)

// Status is a cluster as seen from outside.
type Status struct {
	Name       string            `json:"name"`
	State      State             `json:"state"`
	Started    time.Time         `json:"started"`
	Server     string            `json:"server"` // URL of its API server
	Kubeconfig string            `json:"kubeconfig"`
	Owner      int               `json:"owner,omitempty"` // process that runs it and will end it; 0: none
	Kept       bool              `json:"kept"`            // is to live on without an owner
	Processes  []ComponentStatus `json:"processes"`
}

// ComponentStatus describes a process of a cluster: a component or another process in its
// group. If several have the same name, it is the last one.
type ComponentStatus struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"`
	Alive bool   `json:"alive"`
}

// List describes all clusters in root, sorted by name; none if root does not exist.
// Clusters that cannot be read are reported as errors; the others are returned
// nevertheless.
func List(root string) ([]Status, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	var all []Status
	var errs []error
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		s, err := inspect(root, e.Name())
		switch {
		case errors.Is(err, fs.ErrNotExist): // no cluster's
		case err != nil:
			errs = append(errs, err)
		default:
			all = append(all, s)
		}
	}
	return all, errors.Join(errs...)
}

func inspect(root, name string) (Status, error) {
	dir, err := filepath.Abs(filepath.Join(root, name))
	if err != nil {
		return Status{}, fmt.Errorf("inspecting cluster %s: %w", name, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, aboutName))
	if err != nil {
		return Status{}, fmt.Errorf("inspecting cluster %s: %w", name, err)
	}
	var a about
	if err := json.Unmarshal(data, &a); err != nil {
		return Status{}, fmt.Errorf("inspecting cluster %s: reading %s: %w", name, aboutName, err)
	}
	group, err := process.Inspect(dir)
	if err != nil {
		return Status{}, fmt.Errorf("inspecting cluster %s: %w", name, err)
	}
	s := Status{
		Name: name, Started: a.Started, Server: a.Server, Kubeconfig: kubeconfigIn(dir),
		Kept: group.Kept, Processes: processes(group.Children),
	}
	if group.OwnerAlive {
		s.Owner = group.Owner
	}
	s.State = state(s.Processes)
	return s, nil
}

func processes(children []process.Child) []ComponentStatus {
	var all []ComponentStatus
	for _, c := range children {
		all = slices.DeleteFunc(all, func(earlier ComponentStatus) bool { return earlier.Name == c.Name })
		all = append(all, ComponentStatus{Name: c.Name, PID: c.PID, Alive: c.Alive})
	}
	return all
}

func state(processes []ComponentStatus) State {
	alive := 0
	for _, p := range processes {
		if p.Alive {
			alive++
		}
	}
	switch alive {
	case 0:
		return Stopped
	case len(processes):
		return Running
	default:
		return Degraded
	}
}

// ErrNotFound reports that there is no cluster of the given name.
var ErrNotFound = errors.New("no such cluster")

// Stop ends a cluster that has no owner and deletes its folder. The error is ErrNotFound
// if there is none. A cluster whose owner lives is not changed, and an error returned.
func Stop(ctx context.Context, root, name string) error {
	if err := ValidateName(name); err != nil {
		return err // it might name a folder elsewhere
	}
	group, err := process.Inspect(filepath.Join(root, name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stopping cluster %s: %w in %s", name, ErrNotFound, root)
	}
	if err != nil {
		return fmt.Errorf("stopping cluster %s: %w", name, err)
	}
	if err := group.Remove(ctx); err != nil {
		return fmt.Errorf("stopping cluster %s: %w", name, err)
	}
	return nil
}
