// Package clusterprometheus asks the Prometheus of an existing cluster what its control plane used and did in the last days, by the
// programs' own metrics and the containers' of cAdvisor. It finds that Prometheus and reads figures at steps of time. What they become
// in the file of a captured mesh is left to others.
package clusterprometheus

import (
	"errors"
	"net/url"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Address names a Prometheus. The zero value is none.
type Address struct {
	// URL is its URL from here; "" = through the API server, as a Service of the cluster.
	URL string
	// Detect has a Service be found.
	Detect  bool
	Service Service
}

// Service names a Service of the cluster to which the API server passes requests.
type Service struct {
	Scheme          string // "" = http
	Namespace, Name string
	Port            string // name or number
	Path            string // that the API is below, as in /prometheus; "" = none
}

const (
	detect        = "detect"
	servicePrefix = "service:"
)

// errAddress states what an address is to be.
var errAddress = errors.New("want detect, service:NAMESPACE/NAME:PORT, or an address that is reached from here, as in http://localhost:9090")

// ParseAddress reads an Address: "" for none, detect, service:NAMESPACE/[https:]NAME:PORT[/PATH], or a URL, which has no
// credentials: it becomes part of a record. The error does not contain the text.
func ParseAddress(text string) (Address, error) {
	if text == "" {
		return Address{}, nil
	}
	if text == detect {
		return Address{Detect: true}, nil
	}
	if service, ok := strings.CutPrefix(text, servicePrefix); ok {
		return parseService(service)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
		return Address{}, errAddress
	case u.User != nil:
		return Address{}, errors.New("want no user and password, which would be in the record: want a bearer token instead")
	}
	return Address{URL: strings.TrimRight(u.String(), "/")}, nil
}

func parseService(text string) (Address, error) {
	var s Service
	var rest string
	var ok bool
	if s.Namespace, rest, ok = strings.Cut(text, "/"); !ok {
		return Address{}, errAddress
	}
	if path := strings.IndexByte(rest, '/'); path >= 0 {
		rest, s.Path = rest[:path], strings.TrimRight(rest[path:], "/")
	}
	parts := strings.Split(rest, ":")
	if len(parts) == 3 && (parts[0] == "http" || parts[0] == "https") {
		s.Scheme, parts = parts[0], parts[1:]
	}
	if s.Scheme == "http" {
		s.Scheme = ""
	}
	if len(parts) != 2 {
		return Address{}, errAddress
	}
	s.Name, s.Port = parts[0], parts[1]
	for _, word := range []string{s.Namespace, s.Name, s.Port} {
		if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
			return Address{}, errAddress
		}
	}
	if strings.ContainsAny(s.Path, "?#%@") || strings.Contains(s.Path, "..") {
		return Address{}, errAddress
	}
	return Address{Service: s}, nil
}

// String returns the address as ParseAddress reads it.
func (a Address) String() string {
	switch {
	case a.Detect:
		return detect
	case a.URL != "":
		return a.URL
	case a.Service == Service{}:
		return ""
	}
	return a.Service.String()
}

// String returns the service as it is written in an Address.
func (s Service) String() string {
	scheme := ""
	if s.Scheme != "" {
		scheme = s.Scheme + ":"
	}
	return servicePrefix + s.Namespace + "/" + scheme + s.Name + ":" + s.Port + s.Path
}

// proxyPath returns the path of the API server that passes requests to the service.
func (s Service) proxyPath() string {
	return "/api/v1/namespaces/" + s.Namespace + "/services/" + utilnet.JoinSchemeNamePort(s.Scheme, s.Name, s.Port) + "/proxy" + s.Path
}
