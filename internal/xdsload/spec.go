package xdsload

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"net/netip"
	"strings"
	"text/template"
	"time"

	"scaler.mesh/scaler/internal/credentialfile"
	"scaler.mesh/scaler/internal/nodetemplate"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Spec holds the options of `scaler xds`. The zero value of a field is not its default:
// DefaultSpec has those.
type Spec struct {
	Address  string        // host:port of the ADS server
	Clients  int           // simulated sidecars
	XDS      string        // "delta" or "sotw"
	Duration time.Duration // from the first sidecar's start; 0 = until stopped
	Rate     float64       // sidecars started a second; 0 = all at once

	Plaintext  bool              // no TLS, no token
	TLSCA      string            // file with the roots, in PEM; needed without Plaintext
	TokenFile  string            // file with the bearer token of all streams, read again for new ones; "" = none
	ServerName string            // that the server's certificate must carry; "" = the host of Address
	Headers    map[string]string // gRPC metadata of every stream

	// NodeID, NodeCluster and Metadata are templates of each sidecar's node; see Node.
	// Metadata must result in a JSON object, "" = none.
	NodeID, NodeCluster, Metadata string
	Namespace                     string // for the templates

	MetricsAddress string // host:port that serves scaler's own metrics; "" = none
}

// Node holds the properties of a sidecar that the templates of a Spec can use.
type Node struct {
	Index     int        // from 0
	IP        netip.Addr // one for each index, in 100.64.0.0/10
	Namespace string
}

// DefaultSpec returns the options of `scaler xds` without flags. istiod accepts sidecars
// with these node properties.
func DefaultSpec() Spec {
	return Spec{
		Clients:     100,
		XDS:         string(xdsprobe.Delta),
		NodeID:      "sidecar~{{.IP}}~client-{{.Index}}.{{.Namespace}}~{{.Namespace}}.svc.cluster.local",
		NodeCluster: "client-{{.Index}}.{{.Namespace}}",
		Metadata:    `{"NAMESPACE": "{{.Namespace}}", "CLUSTER_ID": "Kubernetes", "INSTANCE_IPS": "{{.IP}}"}`,
		Namespace:   "default",
	}
}

// maxClients is more than the number of ports that one process has toward one address.
const maxClients = 100_000

// Validate returns a *[scenario.Error] of the first field with an invalid value. Nothing is started or created before it returns nil.
func (s Spec) Validate() error {
	if err := scenario.CheckAddress("address", s.Address); err != nil {
		return err
	}
	if s.Clients < 1 || s.Clients > maxClients {
		return scenario.Refuse("clients", s.Clients, "1 to %d", maxClients)
	}
	if err := scenario.CheckOneOf("xds", s.XDS, []string{string(xdsprobe.Delta), string(xdsprobe.SotW)}); err != nil {
		return err
	}
	const longest = 30 * 24 * time.Hour
	if s.Duration < 0 || s.Duration > longest {
		return scenario.Refuse("duration", s.Duration, "a duration to %s, or 0 to run until stopped", longest)
	}
	if math.IsNaN(s.Rate) || s.Rate < 0 || s.Rate > 1e6 || s.Rate > 0 && s.Rate < 1e-3 {
		return scenario.Refuse("rate", s.Rate, "0.001 to 1000000 sidecars a second, or 0 for all at once")
	}
	if s.MetricsAddress != "" {
		if err := scenario.CheckListenAddress("metricsAddress", s.MetricsAddress, 0); err != nil {
			return err
		}
	}
	if err := s.validTransport(); err != nil {
		return err
	}
	for name := range s.Headers {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
			return scenario.Refuse("header", name, "NAME=VALUE, a name of letters, digits and -_.")
		}
	}
	nodes, err := s.nodes()
	if err != nil {
		return err
	}
	for _, i := range []int{0, s.Clients - 1} {
		if _, err := nodes.config(i); err != nil {
			return err
		}
	}
	return nil
}

// validTransport checks the options of the connection to the server, and the files for
// it.
func (s Spec) validTransport() error {
	if s.Plaintext {
		for _, f := range []struct{ name, value string }{{"tlsCA", s.TLSCA}, {"tokenFile", s.TokenFile}, {"serverName", s.ServerName}} {
			if f.value != "" {
				return scenario.Refuse(f.name, f.value, "none with plaintext")
			}
		}
		return nil
	}
	if s.TLSCA == "" {
		return scenario.Refuse("tlsCA", "", "a file with the roots of the server's certificate, or plaintext")
	}
	if _, err := credentialfile.Roots(s.TLSCA); err != nil {
		return scenario.Refuse("tlsCA", nil, "a file with the roots of the server's certificate: %v", err)
	}
	if s.TokenFile != "" {
		if _, err := credentialfile.Token(s.TokenFile); err != nil {
			return scenario.Refuse("tokenFile", nil, "a file with a token: %v", err)
		}
	}
	return nil
}

// nodes makes the node of each sidecar.
type nodes struct {
	namespace             string
	id, cluster, metadata *template.Template
}

func (s Spec) nodes() (*nodes, error) {
	n := &nodes{namespace: s.Namespace}
	for _, t := range []struct {
		field, text string
		parsed      **template.Template
	}{{"nodeID", s.NodeID, &n.id}, {"nodeCluster", s.NodeCluster, &n.cluster}, {"metadata", s.Metadata, &n.metadata}} {
		var err error
		if *t.parsed, err = nodetemplate.Parse(t.field, t.text); err != nil {
			return nil, scenario.Refuse(t.field, t.text, "a template: %v", err)
		}
	}
	return n, nil
}

// config returns the part of a sidecar's Config that describes its node.
func (n *nodes) config(index int) (c xdsprobe.Config, err error) {
	node := Node{Index: index, IP: address(index), Namespace: n.namespace}
	var metadata string
	for _, t := range []struct {
		template *template.Template
		text     *string
	}{{n.id, &c.NodeID}, {n.cluster, &c.NodeCluster}, {n.metadata, &metadata}} {
		if *t.text, err = nodetemplate.Execute(t.template, node); err != nil {
			return c, scenario.Refuse(t.template.Name(), nil, "a template that can be filled in for sidecar %d: %v", index, err)
		}
	}
	if c.NodeID == "" {
		return c, scenario.Refuse("nodeID", "", "a template, as in client-{{.Index}}")
	}
	if strings.TrimSpace(metadata) != "" {
		if err := json.Unmarshal([]byte(metadata), &c.Metadata); err != nil || c.Metadata == nil {
			return c, scenario.Refuse("metadata", metadata, "a JSON object for sidecar %d", index)
		}
	}
	return c, nil
}

// address returns the address of a sidecar, different for each: from the block for
// carriers' networks (RFC 6598), which is unlikely to be used by pods or machines.
func address(index int) netip.Addr {
	base := [4]byte{100, 64, 0, 1}
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], binary.BigEndian.Uint32(base[:])+uint32(index))
	return netip.AddrFrom4(ip)
}
