// Package real runs a real ztunnel, as a process in a separate network namespace, for
// comparison with simulated ones. It gets the same environment, token and roots as in a
// pod of its DaemonSet. It serves no traffic: no istio-cni assigns pods to it, and
// nothing reaches its ports.
//
// internal/fidelity/wiretap records its messages.
package real

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/scenario"
)

// Name is the name of its process and its log.
const Name = "ztunnel"

// adminAddress is the address of ztunnel's admin server, in its own network namespace.
const adminAddress = "127.0.0.1:15000"

// dumpTimeout limits a request for a ztunnel's configuration.
const dumpTimeout = 20 * time.Second

// versionText finds the version in the output of ztunnel's command version.
var versionText = regexp.MustCompile(`BuildInfo\s*\{\s*Version:\s*"([^"]*)"`)

// Version returns the version that a program reports, which must be a ztunnel. The error
// names the field ztunnel.
func Version(ctx context.Context, program string) (string, error) {
	out, err := component.Ask(ctx, program, "version")
	if err != nil {
		return "", scenario.Refuse("ztunnel", program, "the path of a ztunnel: %v", err)
	}
	if m := versionText.FindStringSubmatch(out); m != nil {
		return m[1], nil
	}
	return "", scenario.Refuse("ztunnel", program, "the path of a ztunnel: it states no version of one")
}

// Place is the network namespace in which ztunnels run, one at a time.
type Place struct{ network *process.Network }

// NewPlace makes a network namespace, which needs root.
func NewPlace() (*Place, error) {
	network, err := process.OpenNetwork()
	if err != nil {
		return nil, err
	}
	return &Place{network}, nil
}

// Listen listens on a free port of the namespace's loopback address.
func (p *Place) Listen(ctx context.Context) (net.Listener, error) {
	return p.network.Listen(ctx, "127.0.0.1:0")
}

// Close closes the namespace. The ztunnel must have ended.
func (p *Place) Close() error { return p.network.Close() }

// Options configure a ztunnel to start.
type Options struct {
	Group   *process.Group // that it is a child of
	Program string         // path
	Dir     string         // of its files, a token among them; made where it is missing
	Log     string         // file

	Address string // host:port of the control plane, in the namespace
	RootPEM []byte // of the control plane
	Token   string // of its pod

	// As its pod's environment states them.
	Pod, Namespace, Account, IP, Node, Cluster string
}

// environment returns the environment of the container in ztunnel's chart, without the
// variables that are taken from the node.
func (o *Options) environment() []string {
	return []string{
		"XDS_ADDRESS=https://" + o.Address, "CA_ADDRESS=https://" + o.Address,
		"ISTIO_META_CLUSTER_ID=" + o.Cluster,
		"POD_NAME=" + o.Pod, "POD_NAMESPACE=" + o.Namespace, "NODE_NAME=" + o.Node, "INSTANCE_IP=" + o.IP, "SERVICE_ACCOUNT=" + o.Account,
		"RUST_LOG=info", "RUST_BACKTRACE=1",
		// Paths of files that differ from the container's; the socket of istio-cni does
		// not exist. There is no time to drain connections, because there are none.
		"XDS_ROOT_CA=" + o.rootFile(), "CA_ROOT_CA=" + o.rootFile(), "AUTH_TOKEN=" + o.tokenFile(),
		"INPOD_UDS=" + filepath.Join(o.Dir, "ztunnel.sock"), "CONNECTION_TERMINATION_DEADLINE=100ms",
	}
}

func (o *Options) rootFile() string  { return filepath.Join(o.Dir, "root-cert.pem") }
func (o *Options) tokenFile() string { return filepath.Join(o.Dir, "istio-token") }

// Ztunnel is a real ztunnel that was started.
type Ztunnel struct {
	process *process.Process
	client  *http.Client
}

// Start starts a ztunnel. It returns before the ztunnel has connected.
func (p *Place) Start(o Options) (*Ztunnel, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of %s: %w", Name, err)
	}
	for file, content := range map[string][]byte{o.rootFile(): o.RootPEM, o.tokenFile(): []byte(o.Token)} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return nil, fmt.Errorf("writing a file of %s: %w", Name, err)
		}
	}
	started, err := o.Group.Start(process.Spec{
		Name: Name, Path: o.Program, Env: o.environment(), Dir: o.Dir, Log: o.Log, Network: p.network,
	})
	if err != nil {
		return nil, err
	}
	return &Ztunnel{started, &http.Client{Timeout: dumpTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return p.network.Dial(ctx, address)
		},
	}}}, nil
}

// Ended is closed when the ztunnel has ended.
func (z *Ztunnel) Ended() <-chan struct{} { return z.process.Done() }

// Err returns the reason why it ended of its own accord; nil if it was stopped.
func (z *Ztunnel) Err() error { return z.process.Err() }

// Stop ends it, and returns when it has ended.
func (z *Ztunnel) Stop(ctx context.Context) error { return z.process.Stop(ctx) }

// Dump lists what a ztunnel reports to hold, by the names that the control plane gives
// the resources.
type Dump struct {
	Addresses      []string
	Authorizations []string
	Identities     []string // that it has certificates of
}

// Held asks it for what it holds.
func (z *Ztunnel) Held(ctx context.Context) (Dump, error) {
	text, err := httpget.Get(ctx, z.client, "http://"+adminAddress+"/config_dump")
	if err != nil {
		return Dump{}, fmt.Errorf("asking %s what it holds: %w", Name, err)
	}
	return parseDump(text)
}

// parseDump parses the answer to /config_dump (src/admin.rs).
func parseDump(text []byte) (d Dump, err error) {
	var dump struct {
		Workloads []struct {
			UID string `json:"uid"`
		} `json:"workloads"`
		Services []struct {
			Namespace string `json:"namespace"`
			Hostname  string `json:"hostname"`
		} `json:"services"`
		Policies []struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"policies"`
		Certificates []struct {
			Identity string `json:"identity"`
			State    string `json:"state"`
		} `json:"certificates"`
	}
	if err := json.Unmarshal(text, &dump); err != nil {
		return d, fmt.Errorf("reading what %s holds: %w", Name, err)
	}
	if dump.Workloads == nil || dump.Services == nil {
		return d, errors.New("reading what " + Name + " holds: no workloads or services in it")
	}
	for _, w := range dump.Workloads {
		d.Addresses = append(d.Addresses, w.UID)
	}
	for _, s := range dump.Services {
		d.Addresses = append(d.Addresses, s.Namespace+"/"+s.Hostname)
	}
	for _, p := range dump.Policies {
		d.Authorizations = append(d.Authorizations, p.Namespace+"/"+p.Name)
	}
	for _, c := range dump.Certificates {
		if c.State == "Available" {
			d.Identities = append(d.Identities, c.Identity)
		}
	}
	return d, nil
}
