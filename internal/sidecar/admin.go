package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/pkg/convergence"
)

// Configuration is the configuration that an Envoy received over xDS.
type Configuration struct {
	// Held are the resources in use, with the part of their content that convergence
	// needs. Clusters and listeners that are still warming are not included.
	Held []convergence.Resource
	// Warming reports that a listener, or a new version of one, waits for something
	// before it is used: for routes, or for the certificate, which comes over another
	// connection.
	Warming bool
	// Refused are the resources whose last version Envoy rejected.
	Refused []Refusal
	// First is the time when Envoy accepted the first of the clusters, listeners and
	// routes that it holds now, by its own clock, to the millisecond; zero if it holds
	// none.
	First time.Time
	// Certificate is the time when it accepted over SDS the certificate that it presents
	// to others, by its own clock; zero while it has none, and for a certificate that was
	// not sent over SDS.
	Certificate time.Time
}

// Refusal is a resource that Envoy refused, with its error message.
type Refusal struct {
	Resource string // "LDS virtualInbound"
	Words    string
}

// String returns the refusal as one line.
func (r Refusal) String() string { return r.Resource + ": " + r.Words }

// Ready reports whether Envoy is LIVE: its initialization has ended, for which it waits until clusters have endpoints,
// and listeners have routes and certificates.
func (s *Sidecar) Ready(ctx context.Context) bool {
	return s.admin.ready(ctx) == nil
}

// Configuration reads what Envoy holds now. It returns an error while Envoy does not run.
func (s *Sidecar) Configuration(ctx context.Context) (Configuration, error) {
	text, err := s.admin.get(ctx, "/config_dump?include_eds")
	if err != nil {
		return Configuration{}, fmt.Errorf("reading the configuration of sidecar %s: %w", s.opts.Name, err)
	}
	c, err := ParseDump(text, s.opts.Certificate, s.opts.HoldsSecret)
	if err != nil {
		return Configuration{}, fmt.Errorf("reading the configuration of sidecar %s: %w", s.opts.Name, err)
	}
	return c, nil
}

// Received reads the bytes that Envoy received so far over the connections of the cluster
// used for ADS. It returns an error while Envoy does not run.
func (s *Sidecar) Received(ctx context.Context) (int64, error) {
	// Istio's bootstrap appends a semicolon to the name in statistics.
	filter := `^cluster\.` + regexp.QuoteMeta(s.opts.Cluster) + `;?\.upstream_cx_rx_bytes_total$`
	text, err := s.admin.get(ctx, "/stats?filter="+url.QueryEscape(filter))
	if err != nil {
		return 0, fmt.Errorf("reading the statistics of sidecar %s: %w", s.opts.Name, err)
	}
	var total int64
	found := false
	for line := range strings.Lines(string(text)) {
		_, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			total, found = total+n, true
		}
	}
	if !found {
		return 0, fmt.Errorf("reading the statistics of sidecar %s: it has no cluster %s yet", s.opts.Name, s.opts.Cluster)
	}
	return total, nil
}

type admin struct {
	url    string
	client *http.Client
}

func newAdmin(port int, dial func(ctx context.Context, network, address string) (net.Conn, error)) *admin {
	return &admin{
		url:    "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConns: 1, DialContext: dial}},
	}
}

func (a *admin) get(ctx context.Context, path string) ([]byte, error) {
	return httpget.Get(ctx, a.client, a.url+path)
}

// ready returns nil when Envoy reports that it is live; before, it answers 503.
func (a *admin) ready(ctx context.Context) error {
	_, err := a.get(ctx, "/ready")
	return err
}

// refused is an UpdateFailureState of envoy.admin.v3.
type refused struct {
	Details string `json:"details"`
}

// dump is the part of envoy.admin.v3.ConfigDump that is read here. Its JSON has
// the proto's own field names.
type dump struct {
	Configs []struct {
		DynamicActiveClusters []struct {
			Cluster struct {
				Name string `json:"name"`
				Type string `json:"type"`
			} `json:"cluster"`
			Updated time.Time `json:"last_updated"`
			Error   *refused  `json:"error_state"`
		} `json:"dynamic_active_clusters"`
		DynamicListeners []struct {
			Name   string `json:"name"`
			Active *struct {
				Listener listener  `json:"listener"`
				Updated  time.Time `json:"last_updated"`
			} `json:"active_state"`
			Warming *struct{} `json:"warming_state"`
			Error   *refused  `json:"error_state"`
		} `json:"dynamic_listeners"`
		DynamicRoutes []struct {
			Route struct {
				Name         string `json:"name"`
				VirtualHosts []struct {
					Domains []string `json:"domains"`
				} `json:"virtual_hosts"`
			} `json:"route_config"`
			Error *refused `json:"error_state"`
		} `json:"dynamic_route_configs"`
		DynamicEndpoints []struct {
			Endpoints assignment `json:"endpoint_config"`
			Error     *refused   `json:"error_state"`
		} `json:"dynamic_endpoint_configs"`
		DynamicSecrets []struct {
			Name    string    `json:"name"`
			Updated time.Time `json:"last_updated"`
			Error   *refused  `json:"error_state"`
		} `json:"dynamic_active_secrets"`
	} `json:"configs"`
}

// assignment is a ClusterLoadAssignment.
type assignment struct {
	Name      string `json:"cluster_name"`
	Endpoints []struct {
		LB []struct {
			Endpoint struct {
				Address struct {
					Socket struct {
						Address string `json:"address"`
						Port    uint16 `json:"port_value"`
					} `json:"socket_address"`
				} `json:"address"`
			} `json:"endpoint"`
			Health string `json:"health_status"`
		} `json:"lb_endpoints"`
	} `json:"endpoints"`
}

// maxAnswer bounds what an error quotes of an answer.
const maxAnswer = 300

// UnreadableError is an answer of an Envoy that is no configuration dump: Envoy cannot print one with a resource that it refused for a
// type that it does not have, and answers with a sentence.
type UnreadableError struct {
	Answer string // its beginning
}

// Error quotes the answer.
func (e *UnreadableError) Error() string {
	return "reading a configuration dump: Envoy answers " + strconv.Quote(e.Answer)
}

// ParseDump parses the answer of an Envoy's /config_dump?include_eds. certificate and
// holdsSecret have the same meaning as in Options.
func ParseDump(text []byte, certificate string, holdsSecret func(name string) bool) (Configuration, error) {
	var d dump
	if err := json.Unmarshal(text, &d); err != nil {
		return Configuration{}, &UnreadableError{Answer: string(text[:min(len(text), maxAnswer)])}
	}
	var c Configuration
	take := func(t convergence.Type, name string, e *refused, content *convergence.Content) {
		key := convergence.Key{Type: t, Name: name}
		if e != nil {
			c.Refused = append(c.Refused, Refusal{key.String(), e.Details})
		}
		if content != nil {
			c.Held = append(c.Held, convergence.Resource{Key: key, Content: content})
		}
	}
	taken := func(at time.Time) {
		if !at.IsZero() && (c.First.IsZero() || at.Before(c.First)) {
			c.First = at
		}
	}
	static := map[string]bool{} // clusters whose endpoints did not come over EDS
	for _, config := range d.Configs {
		for _, each := range config.DynamicActiveClusters {
			static[each.Cluster.Name] = each.Cluster.Type != "EDS"
		}
	}
	for _, config := range d.Configs {
		for _, each := range config.DynamicSecrets {
			if certificate != "" && each.Name == certificate {
				c.Certificate = each.Updated
			}
			if holdsSecret != nil && holdsSecret(each.Name) {
				take(convergence.SDS, each.Name, each.Error, &convergence.Content{})
			}
		}
		for _, each := range config.DynamicActiveClusters {
			taken(each.Updated)
			take(convergence.CDS, each.Cluster.Name, each.Error, &convergence.Content{})
		}
		for _, each := range config.DynamicListeners {
			var content *convergence.Content
			if each.Active != nil {
				content = &convergence.Content{Members: each.Active.Listener.members()}
				taken(each.Active.Updated)
			}
			c.Warming = c.Warming || each.Warming != nil
			take(convergence.LDS, each.Name, each.Error, content)
		}
		for _, each := range config.DynamicRoutes {
			content := &convergence.Content{}
			for _, host := range each.Route.VirtualHosts {
				content.Members = append(content.Members, host.Domains...)
			}
			slices.Sort(content.Members)
			take(convergence.RDS, each.Route.Name, each.Error, content)
		}
		for _, each := range config.DynamicEndpoints {
			if static[each.Endpoints.Name] {
				continue // listed all the same
			}
			take(convergence.EDS, each.Endpoints.Name, each.Error, &convergence.Content{Endpoints: each.Endpoints.endpoints()})
		}
	}
	return c, nil
}

func (a assignment) endpoints() convergence.Endpoints {
	all := convergence.Endpoints{}
	for _, locality := range a.Endpoints {
		for _, e := range locality.LB {
			addr, err := netip.ParseAddr(e.Endpoint.Address.Socket.Address)
			if err != nil {
				continue // a name, or an internal listener
			}
			health := convergence.Healthy // UNKNOWN is sent to, too
			switch e.Health {
			case "UNHEALTHY", "TIMEOUT":
				health = convergence.Unhealthy
			case "DRAINING":
				health = convergence.Draining
			}
			all[netip.AddrPortFrom(addr, e.Endpoint.Address.Socket.Port)] = health
		}
	}
	return all
}
