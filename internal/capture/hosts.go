package capture

import "strings"

// FullHost returns the full form of a host as written in the configuration of a
// namespace: a name without dots is a service of the same namespace.
func FullHost(host, namespace, domain string) string {
	if host == "" || strings.ContainsAny(host, ".*") {
		return host
	}
	return host + "." + namespace + ".svc." + domain
}

// HostMatches reports whether a pattern matches a host: "*" matches all, "*.shop.example"
// all below.
func HostMatches(pattern, host string) bool {
	if pattern == "*" {
		return true
	}
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(host, suffix)
	}
	return pattern == host
}
