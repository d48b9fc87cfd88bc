package capture

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Lengths of hashes: the shortest one of a name, so that few collide, and the longest
// name of a port.
const (
	leastName   = 8
	mostPort    = 15
	maxAttempts = 10
)

// Anonymize replaces names, hosts, values of labels and free texts by hashes: the same
// name becomes the same hash everywhere, and in every file, so that references stay
// intact. Hashes are as long as the original, those of names at least 8 letters, so that
// configuration keeps its size. A hash that two names would share is replaced by another
// hash for the second. Objects with arbitrary content are left out. Numbers, durations,
// values of enumerations, names of protocols and kinds, and keys of labels are kept. The
// hashes have no key, so short names can be found by brute force.
func (m *Mesh) Anonymize() error {
	return m.anonymize(digest)
}

// anonymize does the work of Anonymize with any hash of n letters.
func (m *Mesh) anonymize(hash func(string, int) string) error {
	a := &anonymizer{hash: hash, made: map[string]string{}, taken: map[string]string{}}
	part := *m
	part.Objects = nil
	patches := map[string]int{}
	for _, o := range m.Objects {
		switch o.GetKind() {
		case "EnvoyFilter", "WasmPlugin", "TrafficExtension", "ProxyConfig":
			r, _ := Configuration(o.GroupVersionKind())
			patches[r.name()]++
			continue
		}
		part.Objects = append(part.Objects, o)
	}
	to := a.rewriter().mesh(&part)
	if a.err != nil {
		return a.err
	}
	to.hideKinds()
	for _, kind := range slices.Sorted(maps.Keys(patches)) {
		to.leaveOut(kind, "their content may be anything, which --anonymize cannot hide", patches[kind])
	}
	to.Anonymized = true
	to.sort()
	*m = to
	return m.check()
}

// hideKinds hides, in the counts of what was captured, kinds that somebody named, and the names of
// objects that a cluster would refuse.
func (h *Header) hideKinds() {
	public := func(kind string) bool {
		_, group, named := strings.Cut(kind, ".")
		return !named || group == "apps" || group == "batch" || group == "autoscaling" || group == "policy" ||
			strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, "istio.io")
	}
	const others = "kinds of other groups"
	left := map[LeftOut]int{}
	for _, l := range h.LeftOut {
		if strings.HasPrefix(l.Reason, refused) {
			l.Reason = strings.TrimSuffix(refused, ": ")
		}
		if !public(l.Kind) {
			l.Kind = others
		}
		left[LeftOut{Kind: l.Kind, Reason: l.Reason}] += l.Count
	}
	h.LeftOut = nil
	for l, count := range left {
		l.Count = count
		h.LeftOut = append(h.LeftOut, l)
	}
	slices.SortFunc(h.LeftOut, func(a, b LeftOut) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reason, b.Reason)) })
	all := map[string]Captured{}
	for _, c := range h.Captured {
		if !public(c.Kind) {
			c.Kind = others
		}
		sum := all[c.Kind]
		all[c.Kind] = Captured{Kind: c.Kind, Read: sum.Read + c.Read, Kept: sum.Kept + c.Kept}
	}
	h.Captured = nil
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		h.Captured = append(h.Captured, all[kind])
	}
}

// digest returns n letters and digits of a text's SHA-256, the first a letter.
func digest(text string, n int) string {
	var letters strings.Builder
	for block := 0; letters.Len() < n; block++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s", block, text))
		letters.WriteString(strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])))
	}
	all := []byte(letters.String()[:n])
	if n > 0 && all[0] < 'a' {
		all[0] += 'g' - '2'
	}
	return string(all)
}

// anonymizer gives names their hashes.
type anonymizer struct {
	hash  func(text string, n int) string
	made  map[string]string // hashes by name
	taken map[string]string // names by hash
	err   error
}

// verbatim lists names that are kept because every mesh has them.
var verbatim = map[string]bool{
	"": true, "*": true, ".": true, "~": true, "default": true, rootNamespace: true, "kube-system": true, "kube-public": true,
	"kube-node-lease": true, "cluster": true, "local": true, "svc": true, "mesh": true, "istio": true, "istio-waypoint": true, "istio-remote": true, proxyContainer: true,
}

// name returns the hash of a name. It is at least as long as the name, and at most as
// long as most.
func (a *anonymizer) name(name string, most int) string {
	if verbatim[name] {
		return name
	}
	key := fmt.Sprint(most == mostPort, name)
	if made, ok := a.made[key]; ok {
		return made
	}
	n := min(max(len(name), leastName), most)
	for attempt := range maxAttempts {
		salted := name
		if attempt > 0 {
			salted = fmt.Sprintf("%s\x00%d", name, attempt)
		}
		hash := a.hash(salted, n)
		if other, taken := a.taken[hash]; !taken || other == name {
			a.made[key], a.taken[hash] = hash, name
			return hash
		}
	}
	if a.err == nil {
		a.err = fmt.Errorf("anonymizing: %d hashes of a name are those of other names", maxAttempts)
	}
	return name
}

func (a *anonymizer) rewriter() rewriter {
	name := func(text string) string { return a.name(text, maxLabel) }
	return rewriter{
		namespace: name, name: name, host: a.host, labels: a.labels, text: a.text, keys: a.keys, portName: a.portName,
		zone: name,
	}
}

// host hashes the parts of a host, so that the hosts of services stay consistent with
// their names.
func (a *anonymizer) host(host string) string {
	if at, ok := a.address(host); ok {
		return at
	}
	if strings.HasPrefix(host, "*") && !strings.HasPrefix(host, "*.") && host != "*" {
		return "*" + a.host(host[1:])
	}
	parts := strings.Split(host, ".")
	for i, part := range parts {
		parts[i] = a.name(part, maxLabel)
	}
	return strings.Join(parts, ".")
}

// address replaces an address, or a range of addresses, by one that no network uses.
func (a *anonymizer) address(text string) (string, bool) {
	bare, bits, isRange := strings.Cut(text, "/")
	ip, err := netip.ParseAddr(bare)
	if err != nil {
		return "", false
	}
	sum := sha256.Sum256([]byte(bare))
	hidden := netip.AddrFrom4([4]byte{240 + sum[0]%15, sum[1], sum[2], sum[3]})
	if ip.Is6() {
		var b [16]byte
		copy(b[:], sum[:])
		b[0] = 0xfd
		hidden = netip.AddrFrom16(b)
	}
	if isRange {
		return hidden.String() + "/" + bits, true
	}
	return hidden.String(), true
}

// labels hashes the values of labels. Values of Istio's own keys are kept, because they
// are settings and not names.
func (a *anonymizer) labels(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	to := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if to[key] = labels[key]; !strings.HasPrefix(key, "istio.io/") {
			to[key] = a.name(labels[key], maxLabel)
		}
	}
	return to
}

// protocols matches names of ports, or their beginnings, that declare the protocol.
var protocols = regexp.MustCompile(`^(http2?|https|grpc-web|grpc|tcp|tls|udp|mongo|mysql|redis|hbone)(-|$)`)

// portName keeps what says the protocol.
func (a *anonymizer) portName(name string) string {
	protocol := protocols.FindString(name)
	rest := name[len(protocol):]
	if rest == "" {
		return name
	}
	return protocol + a.name(rest, mostPort-len(protocol))
}

var (
	durations = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ms|us|ns|s|m|h))+$`)
	constants = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)
	numbers   = regexp.MustCompile(`^-?[0-9.]+%?$`)
	words     = regexp.MustCompile(`[A-Za-z0-9]+`)
	whenKeys  = regexp.MustCompile(`^[a-z]+(\.[a-z]+)*`)
)

// keptFields are the fields whose values are from closed lists.
var keptFields = map[string]bool{
	"apiVersion": true, "kind": true, "group": true, "type": true, "mode": true, "protocol": true, "scheme": true, "action": true,
	"location": true, "resolution": true, "operation": true, "retryOn": true, "methods": true, "notMethods": true,
	"ports": true, "notPorts": true, "simple": true, "minProtocolVersion": true, "maxProtocolVersion": true, "cipherSuites": true,
	"allowMethods": true, "policy": true, "version": true, "controllerName": true, "captureMode": true, "failoverPriority": true,
	"targetPort": true, "h2UpgradePolicy": true, "wellKnownCACertificates": true, "retryRemoteLocalities": true,
}

// text hides a text of any other field: each word is replaced by one of the same length,
// so that paths and patterns keep their form.
func (a *anonymizer) text(field, text string) string {
	if keptFields[field] || durations.MatchString(text) || constants.MatchString(text) || numbers.MatchString(text) {
		return text
	}
	if at, ok := a.address(text); ok {
		return at
	}
	switch field {
	case "from", "to": // of namespaces, or of zones
		if text == "Same" || text == "All" || text == "Selector" || text == "None" {
			return text
		}
		return a.zones(text)
	case "gatewayClassName", "network":
		return a.name(text, maxLabel)
	case "regex":
		return a.hash(text, len(text))
	case "key": // of a condition: the attribute that is compared, with a name in it
		known := whenKeys.FindString(text)
		return known + a.hidden(text[len(known):])
	case "jwksUri", "url", "uri":
		if scheme, rest, ok := strings.Cut(text, "://"); ok {
			return scheme + "://" + a.hidden(rest)
		}
	case "jwks":
		return `{"keys":[]}`
	}
	if strings.HasSuffix(text, ".svc."+domain) {
		return a.host(text)
	}
	return a.hidden(text)
}

func (a *anonymizer) hidden(text string) string {
	return words.ReplaceAllStringFunc(text, func(word string) string { return a.hash(word, len(word)) })
}

// keys hides the keys of maps that are not fields: names of headers and parameters,
// zones.
func (a *anonymizer) keys(field string, of map[string]any) map[string]any {
	switch field {
	case "headers", "withoutHeaders", "queryParams", "set", "add", "to", "customTags", "tagOverrides":
	default:
		return of
	}
	to := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		switch {
		case field == "headers" && (key == "request" || key == "response"), strings.HasPrefix(key, ":"):
			to[key] = of[key]
		case field == "to":
			to[a.zones(key)] = of[key]
		default:
			to[a.hidden(key)] = of[key]
		}
	}
	return to
}

// zones hides the parts of region/zone/subzone.
func (a *anonymizer) zones(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = a.name(part, maxLabel)
	}
	return strings.Join(parts, "/")
}
