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

	"k8s.io/apimachinery/pkg/runtime"

	"scaler.mesh/scaler/internal/mask"
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
	hidden := a.controlPlane(&to)
	if a.err != nil {
		return a.err
	}
	to.hideKinds()
	for _, kind := range slices.Sorted(maps.Keys(patches)) {
		to.leaveOut(kind, "their content may be anything, which --anonymize cannot hide", patches[kind])
	}
	for _, what := range slices.Sorted(maps.Keys(hidden)) {
		to.LeftOut = append(to.LeftOut, LeftOut{Kind: what, Count: hidden[what], Reason: "their content may be anything, which --anonymize cannot hide"})
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
	r := rewriter{
		namespace: name, name: name, host: a.host, labels: a.labels, text: a.text, keys: a.keys, portName: a.portName,
		zone: name,
	}
	r.proxyConfig = func(text string) string {
		config, ok := proxyConfigOf(text)
		if !ok {
			return a.hidden(text)
		}
		return proxyConfigText(r.fields(config))
	}
	return r
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

// labels hashes the values of labels. It keeps the values of Istio's own keys, which are
// settings and not names. Labels that name a waypoint are an exception.
func (a *anonymizer) labels(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	to := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		switch to[key] = labels[key]; {
		case (key == UseWaypoint || key == UseWaypointNamespace) && labels[key] != NoWaypoint:
		case key == ManagedGateway, strings.HasPrefix(key, "istio.io/"):
			continue
		}
		to[key] = a.name(labels[key], maxLabel)
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
	booleans  = regexp.MustCompile(`^(true|false)$`)
	durations = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ms|us|ns|s|m|h))+$`)
	constants = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)
	numbers   = regexp.MustCompile(`^-?[0-9.]+%?$`)
	words     = regexp.MustCompile(`%[A-Z_]+|[A-Za-z0-9]+`)
	whenKeys  = regexp.MustCompile(`^[a-z]+(\.[a-z]+)*`)
)

// keptFields are the fields whose values are from closed lists.
var keptFields = map[string]bool{
	"apiVersion": true, "kind": true, "group": true, "type": true, "mode": true, "protocol": true, "scheme": true, "action": true,
	"location": true, "resolution": true, "operation": true, "retryOn": true, "methods": true, "notMethods": true,
	"ports": true, "notPorts": true, "simple": true, "minProtocolVersion": true, "maxProtocolVersion": true, "cipherSuites": true,
	"allowMethods": true, "policy": true, "version": true, "controllerName": true, "captureMode": true, "failoverPriority": true,
	"targetPort": true, "h2UpgradePolicy": true, "ecdhCurves": true, "imageType": true, "binaryPath": true, "configPath": true, "wellKnownCACertificates": true, "retryRemoteLocalities": true,
}

// text hides a text of any other field: each word is replaced by one of the same length,
// so that paths and patterns keep their form.
func (a *anonymizer) text(field, text string) string {
	if keptFields[field] || isSetting(text) {
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
	case "gatewayClassName", "network", "rootNamespace", "defaultServiceExportTo", "defaultVirtualServiceExportTo", "defaultDestinationRuleExportTo",
		"metrics", "accessLogging":
		return a.name(text, maxLabel)
	case "trustDomain", "trustDomainAliases":
		return a.host(text)
	case "service": // of a provider, with the namespace that it is looked up in
		if namespace, host, ok := strings.Cut(text, "/"); ok {
			return a.name(namespace, maxLabel) + "/" + a.host(host)
		}
		return a.host(text)
	case "address", "discoveryAddress", "spiffeBundleUrl":
		if host, port, ok := strings.Cut(text, ":"); ok && numbers.MatchString(port) {
			return a.host(host) + ":" + port
		}
		return a.host(text)
	case "accessLogFile":
		if strings.HasPrefix(text, "/dev/") {
			return text
		}
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

// isSetting reports whether a text is a generic value, such as a number or a duration, that does not identify its author.
func isSetting(text string) bool {
	return text == mask.Masked || booleans.MatchString(text) || durations.MatchString(text) || constants.MatchString(text) || numbers.MatchString(text)
}

// hidden hides the words of a text. Operators of formats, as in %START_TIME%, are no names of anybody.
func (a *anonymizer) hidden(text string) string {
	return words.ReplaceAllStringFunc(text, func(word string) string {
		if word[0] == '%' {
			return word
		}
		return a.hash(word, len(word))
	})
}

// controlPlane hides names in the control plane of a mesh. Templates of injection and the values for them are left
// out, and settings and arguments whose values are more than a number, a length of time or a constant. It returns how
// many of each, by what they are.
func (a *anonymizer) controlPlane(m *Mesh) map[string]int {
	left := map[string]int{}
	if m.ControlPlane == nil {
		return left
	}
	leave := func(what string, n int) {
		if n > 0 {
			left[what] += n
		}
	}
	r := a.rewriter()
	c := *m.ControlPlane
	c.Webhooks = slices.Clone(c.Webhooks)
	for i := range c.Webhooks {
		c.Webhooks[i].Name = r.host(c.Webhooks[i].Name)
	}
	c.APIServer = c.APIServer.anonymous()
	c.Revisions = slices.Clone(c.Revisions)
	for i := range c.Revisions {
		of := &c.Revisions[i]
		of.Name, of.Namespace = r.name(of.Name), r.namespace(of.Namespace)
		of.Tags, of.Namespaces, of.Undiscovered = hide(r.name, of.Tags), hide(r.namespace, of.Namespaces), hide(r.namespace, of.Undiscovered)
		of.Workloads = hide(func(id string) string {
			namespace, name, _ := strings.Cut(id, "/")
			return r.namespace(namespace) + "/" + r.name(name)
		}, of.Workloads)
		if of.Tagged != nil {
			tagged := map[string][]string{}
			for tag, names := range of.Tagged {
				tagged[r.name(tag)] = hide(r.namespace, names)
			}
			of.Tagged = tagged
		}
		kept := len(of.Args)
		of.Args = slices.DeleteFunc(slices.Clone(of.Args), func(arg string) bool {
			_, value, joined := strings.Cut(arg, "=")
			return !(strings.HasPrefix(arg, "--") && (!joined || isSetting(value)) || isSetting(arg) || arg == domain)
		})
		leave("arguments of the control plane", kept-len(of.Args))
		kept = len(of.Env)
		of.Env = slices.DeleteFunc(slices.Clone(of.Env), func(v Variable) bool {
			return v.Value != "" && !isSetting(v.Value) && ownValues[v.Name] != v.Value
		})
		for k := range of.Env {
			if kind, _, _ := strings.Cut(of.Env[k].From, " "); kind == "secret" || kind == "ConfigMap" {
				of.Env[k].From = kind
			}
		}
		leave("settings of the control plane", kept-len(of.Env))
		of.History = of.History.anonymous()
		if of.MeshConfig != nil {
			of.MeshConfig = r.fields(runtime.DeepCopyJSON(of.MeshConfig))
		}
		if of.MeshNetworks != nil {
			of.MeshNetworks = map[string]any{}
			left["networks of the mesh"]++
		}
		if of.Injection != nil {
			leave("templates of injection", len(of.Injection.Templates))
			leave("settings of injection", len(of.Injection.Config)+len(of.Injection.Values))
			of.Injection = nil
		}
	}
	slices.SortFunc(c.Revisions, func(a, b Revision) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	m.ControlPlane = &c
	return left
}

func hide(by func(string) string, names []string) (to []string) {
	for _, n := range names {
		to = append(to, by(n))
	}
	slices.Sort(to)
	return to
}

// keys hides the keys of maps that are not fields: names of headers and parameters,
// zones.
func (a *anonymizer) keys(field string, of map[string]any) map[string]any {
	switch field {
	case "headers", "withoutHeaders", "queryParams", "set", "add", "to", "customTags", "tagOverrides", "includeAdditionalHeadersInCheck":
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
