package record

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"scaler.mesh/scaler/internal/boundedfile"
)

const (
	configurationFile = "configuration.json.gz"
	maxConfiguration  = 1 << 30 // bytes of it
	maxUnpacked       = 4 << 30 // bytes of what is in it
)

// Configuration has the resources that every simulated sidecar and gateway of a run held after the mesh had
// converged. Only runs that were told to keep it have it, as those of `scaler diff`.
type Configuration struct {
	// Resources are the resources that proxies held; equal contents are listed once.
	Resources []HeldResource `json:"resources"`
	Sidecars  []HeldBy       `json:"sidecars"`
	// Objects are the services and pods of the cluster, and hosts that the control plane assigned addresses to, without which the addresses and generated
	// names in the resources mean nothing in another run.
	Objects []AddressedObject `json:"objects"`
	// Unasked are the proxies of a captured mesh that its replay does not have: what they would hold is not known.
	Unasked []UnaskedProxies `json:"unasked,omitempty"`
}

// UnaskedProxies are proxies of one kind.
type UnaskedProxies struct {
	Kind string `json:"kind"` // ztunnel, waypoint or other revision's sidecar
	Pods int    `json:"pods"`
}

// HeldResource is one resource of an xDS server.
type HeldResource struct {
	Type    string `json:"type"` // as in CDS
	Name    string `json:"name"`
	Message []byte `json:"message"` // encoded, of the message that the type has
}

// HeldBy are the resources of one proxy.
type HeldBy struct {
	Namespace string    `json:"namespace"`
	Workload  string    `json:"workload"` // name of the service or the owner that the pod is of
	Pod       string    `json:"pod"`
	Kind      ProxyKind `json:"kind,omitempty"` // "" = a sidecar
	Resources []int     `json:"resources"`      // indices of Configuration.Resources
}

// ProxyKind is the kind of a proxy that runs without an application in its pod.
type ProxyKind string

// The kinds of proxies.
const (
	OfGateway  ProxyKind = "gateway"
	OfZtunnel  ProxyKind = "ztunnel" // the proxy of a node
	OfWaypoint ProxyKind = "waypoint"
)

// AddressedObject is a service, a pod or a host and its addresses.
type AddressedObject struct {
	Kind      string   `json:"kind"` // Service, Pod or ServiceEntry, whose name is then that of one of its hosts
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Workload  string   `json:"workload,omitempty"` // of a pod, as HeldBy has it
	Addresses []string `json:"addresses,omitempty"`
}

// Configuration writes what the run's sidecars hold, all of it or nothing.
func (w *Writer) Configuration(c *Configuration) error {
	return replaceFile(filepath.Join(w.dir, configurationFile), func(f io.Writer) error {
		packed := gzip.NewWriter(f)
		if err := json.NewEncoder(packed).Encode(c); err != nil {
			return err
		}
		return packed.Close()
	})
}

// ReadConfiguration reads what the sidecars held of the run whose folder is dir. The error names the
// file; where there is none it wraps fs.ErrNotExist.
func ReadConfiguration(dir string) (*Configuration, error) {
	path := filepath.Join(dir, configurationFile)
	c, err := readConfiguration(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, boundedfile.Cause(err))
	}
	return c, nil
}

func readConfiguration(path string) (*Configuration, error) {
	f, err := boundedfile.Open(path, maxConfiguration)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: unpacked, N: maxUnpacked}
	c := new(Configuration)
	decoder := json.NewDecoder(limited)
	err = decoder.Decode(c)
	if err == nil {
		if _, err = decoder.Token(); err == nil { // reads the checksum, too
			err = errors.New("something follows its end")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		if limited.N <= 0 {
			return nil, boundedfile.ErrTooLarge
		}
		return nil, err
	}
	for _, s := range c.Sidecars {
		for _, r := range s.Resources {
			if r < 0 || r >= len(c.Resources) {
				return nil, fmt.Errorf("resource %d of sidecar %s/%s does not exist: want 0 to %d", r, s.Namespace, s.Pod, len(c.Resources)-1)
			}
		}
	}
	if len(c.Sidecars) == 0 {
		return nil, errors.New("it has no sidecars")
	}
	return c, nil
}
