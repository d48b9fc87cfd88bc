package wiretap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// typeNames maps type URLs to their short names.
var typeNames = map[string]string{
	"type.googleapis.com/envoy.config.cluster.v3.Cluster":                "CDS",
	"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment": "EDS",
	"type.googleapis.com/envoy.config.listener.v3.Listener":              "LDS",
	"type.googleapis.com/envoy.config.route.v3.RouteConfiguration":       "RDS",
	"type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig":      "ECDS",
	"type.googleapis.com/istio.networking.nds.v1.NameTable":              "NDS",
	"type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig":                "PCDS",
	"type.googleapis.com/istio.workload.Address":                         "Address",
	"type.googleapis.com/istio.security.Authorization":                   "Authorization",
}

// typeName returns the short name of a resource type, such as CDS, or its URL if it has
// none.
func typeName(url string) string {
	if name, ok := typeNames[url]; ok {
		return name
	}
	return url
}

// Requests returns the requests of a stream in order, each as text: its type, + the names
// subscribed to, - those unsubscribed from, ~ those of initial_resource_versions (~!
// where the version is not the one received last), and "ack" or "nack" with the names in
// that response. The text has nothing that differs between two proxies that behave the
// same: a request names the response that it answers by its content. Names are sorted:
// their order means nothing.
//
// versions holds those received on earlier streams, by type and name, as [Versions] gives
// them; nil if there were none.
func (s *Stream) Requests(versions map[Key]string) []string {
	responses := map[string]Message{}
	held := map[Key]string{}
	maps.Copy(held, versions)
	var requests []string
	for _, m := range s.Messages {
		if !m.Request {
			responses[m.Type+" "+m.Nonce] = m
			for _, r := range m.Resources {
				held[Key{m.Type, r.Name}] = r.Version
			}
			continue
		}
		words := []string{m.Type}
		words = append(words, signed("+", m.Subscribe)...)
		words = append(words, signed("-", m.Unsubscribe)...)
		var initial []string
		for name, version := range m.Initial {
			if held[Key{m.Type, name}] != version {
				name = "!" + name
			}
			initial = append(initial, name)
		}
		words = append(words, signed("~", initial)...)
		if m.Nonce != "" {
			words = append(words, answered(responses[m.Type+" "+m.Nonce], m)...)
		}
		requests = append(requests, strings.Join(words, " "))
	}
	return requests
}

// Responses returns the responses of a stream in order, each as text: its type, the names
// of its resources, and with a - the names of removed ones.
func (s *Stream) Responses() []string {
	var responses []string
	for _, m := range s.Messages {
		if !m.Request {
			words := append([]string{m.Type}, answered(m, m)[1:]...)
			responses = append(responses, strings.Join(words, " "))
		}
	}
	return responses
}

// answered describes the response that a request acknowledges or rejects.
func answered(response, m Message) []string {
	verb := "ack"
	if m.Rejected != "" {
		verb = "nack"
	}
	if response.Type == "" {
		return []string{verb, "of nothing"}
	}
	var names []string
	for _, r := range response.Resources {
		names = append(names, r.Name)
	}
	words := append([]string{verb}, signed("", names)...)
	return append(words, signed("-", response.Removed)...)
}

// signed returns the names, sorted, each with a sign before it.
func signed(sign string, names []string) []string {
	var words []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		words = append(words, sign+name)
	}
	return words
}

// Key is the type, as in Message, and name of a resource.
type Key struct{ Type, Name string }

// String returns the key as `CDS name`.
func (k Key) String() string { return k.Type + " " + k.Name }

// Held returns the resources that a proxy that obeys the protocol holds after these
// streams, in their order: those received and not removed and, for types subscribed to by
// name, not unsubscribed from.
func Held(streams []Stream) map[Key]Resource {
	held := map[Key]Resource{}
	for i := range streams {
		asked := map[Key]bool{}
		for _, m := range streams[i].Messages {
			for _, name := range m.Subscribe {
				asked[Key{m.Type, name}] = true
			}
			for _, name := range m.Unsubscribe {
				delete(asked, Key{m.Type, name})
				delete(held, Key{m.Type, name})
			}
			for _, r := range m.Resources {
				if k := (Key{m.Type, r.Name}); asked[k] || wildcard(m.Type) {
					held[k] = r
				}
			}
			for _, name := range m.Removed {
				delete(held, Key{m.Type, name})
			}
		}
	}
	return held
}

// wildcard reports whether proxies subscribe to everything of a type.
func wildcard(kind string) bool { return kind != "EDS" && kind != "RDS" && kind != "ECDS" }

// Versions returns the latest version of each resource received on the streams.
func Versions(streams []Stream) map[Key]string {
	versions := map[Key]string{}
	for i := range streams {
		for _, m := range streams[i].Messages {
			for _, r := range m.Resources {
				versions[Key{m.Type, r.Name}] = r.Version
			}
		}
	}
	return versions
}

// Complete reports whether the control plane has answered all requests of the proxy on
// the stream, including one for each of these types, and the proxy has answered every
// response.
func (s *Stream) Complete(kinds ...string) bool {
	due, owed := map[Key]bool{}, map[string]bool{}
	seen := map[string]bool{}
	for _, m := range s.Messages {
		if m.Request {
			delete(owed, m.Type+" "+m.Nonce)
			for _, name := range m.Subscribe {
				if _, held := m.Initial[name]; !held {
					due[Key{m.Type, name}] = true
				}
			}
			for _, name := range m.Unsubscribe {
				delete(due, Key{m.Type, name})
			}
			continue
		}
		seen[m.Type], owed[m.Type+" "+m.Nonce] = true, true
		for _, r := range m.Resources {
			delete(due, Key{m.Type, r.Name})
		}
		for _, name := range m.Removed {
			delete(due, Key{m.Type, name})
		}
	}
	return len(due) == 0 && len(owed) == 0 && !slices.ContainsFunc(kinds, func(k string) bool { return !seen[k] })
}

// Times says how long the exchange of a stream took up to a time, and which side spent
// it.
type Times struct {
	First    time.Duration // from the first request to the first response
	Complete time.Duration // from the first request to the last acknowledgement
	Own      time.Duration // of Complete, what passed before the proxy sent something
}

// Times returns the times of a stream up to its last message; an error for a stream
// without a response.
func (s *Stream) Times() (Times, error) {
	var t Times
	answered := false
	for i, m := range s.Messages {
		if i > 0 && m.Request {
			t.Own += m.At.Sub(s.Messages[i-1].At)
		}
		if !m.Request && !answered {
			answered, t.First = true, m.At.Sub(s.Messages[0].At)
		}
	}
	if !answered {
		return t, fmt.Errorf("stream from %s has no answer", s.From)
	}
	t.Complete = s.Messages[len(s.Messages)-1].At.Sub(s.Messages[0].At)
	return t, nil
}
