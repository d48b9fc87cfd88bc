package capture

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"scaler.mesh/scaler/internal/mask"
	"scaler.mesh/scaler/internal/output"
)

// Difference is a part of a captured mesh that a replay does not reproduce.
type Difference struct {
	What    string // as in "setting EXTERNAL_CA"
	Value   string // that was captured; "" = it has none, or it is masked
	Changes string // what may be otherwise for it
}

// Why settings are not taken over.
const (
	ofCertificates = "certificates: the replay's control plane signs them itself"
	ofClusters     = "pods and services of other clusters, which a replay does not have"
	ofAmbient      = "pods in ambient mode, which a replay with data plane sidecar does not have"
	ofTaints       = "nodes whose agent of ambient mode is not ready, which a replay does not have"
	ofSecrets      = "what depends on its value, which is not captured"
	ofReferences   = "what depends on its value, which is not known"
	ofFile         = "nothing: the file has what it would make"
	ofRoots        = "where proxies find the roots of certificates, which simulated ones are given"
)

// ownSettings are set by a replay's own installation, or say what its own are called: they are not taken over, and say
// nothing of the mesh.
var ownSettings = map[string]bool{
	"REVISION": true, "POD_NAME": true, "POD_NAMESPACE": true, "SERVICE_ACCOUNT": true, "KUBECONFIG": true, "CLUSTER_ID": true, "GOMAXPROCS": true, "GOMEMLIMIT": true,
	"ISTIOD_CUSTOM_HOST": true, "INJECTION_WEBHOOK_CONFIG_NAME": true, "VALIDATION_WEBHOOK_CONFIG_NAME": true, "CA_TRUSTED_NODE_ACCOUNTS": true, "PLATFORM": true,
	"HOME": true, "PATH": true,
}

// ownValues are values that a replay's own installation has, which need not be stated.
var ownValues = map[string]string{"PILOT_CERT_PROVIDER": "istiod", "PILOT_TRACE_SAMPLING": "1", "PILOT_ENABLE_ANALYSIS": "false"}

// otherSettings are the settings that are not taken over, with what may differ in the replay as a result.
var otherSettings = map[string]string{
	"PILOT_CERT_PROVIDER": ofCertificates, "EXTERNAL_CA": ofCertificates, "K8S_SIGNER": ofCertificates, "ROOT_CA_DIR": ofCertificates, "CA_ADDR": ofCertificates,
	"USE_CACERTS_FOR_SELF_SIGNED_CA": ofCertificates, "ISTIO_MULTIROOT_MESH": ofCertificates, "CERT_SIGNER_DOMAIN": ofCertificates,
	"PILOT_CA_CERT_CONFIGMAP": ofRoots, "PILOT_CRL_CONFIGMAP": ofRoots, "ENABLE_CLUSTER_TRUST_BUNDLE_API": ofRoots,
	"EXTERNAL_ISTIOD": ofClusters, "LOCAL_CLUSTER_SECRET_WATCHER": ofClusters, "PILOT_MULTI_NETWORK_DISCOVER_GATEWAY_API": ofClusters,
	servesZtunnels: ofAmbient, "PILOT_ENABLE_NODE_UNTAINT_CONTROLLERS": ofTaints, "PILOT_NODE_UNTAINT_CONTROLLERS_TAINT_NAME": ofTaints,
	"PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER": ofFile,
	"SHARED_MESH_CONFIG":                             "settings of the mesh in a second ConfigMap, which is not read",
	"INJECT_ENABLED":                                 "nothing: pods of the replay are injected if the captured ones were",
	"ENABLE_CA_SERVER":                               ofCertificates, "SPIFFE_BUNDLE_ENDPOINTS": ofCertificates,
	"TOKEN_AUDIENCES":       "tokens: those of the replay are for the control plane's default audience",
	"MAX_WORKLOAD_CERT_TTL": "lifetimes of certificates: simulated sidecars ask for that of mesh.sidecars.certificateLifetime",
	"ISTIO_WATCH_NAMESPACE": "what is seen of other namespaces: the replay's control plane sees all",
	"ENABLE_DEBUG_ON_HTTP":  "nothing: which proxies are behind is read there",
}

// onByDefault are the otherSettings that only matter when they are off.
var onByDefault = map[string]bool{"INJECT_ENABLED": true, "ENABLE_CA_SERVER": true, "ENABLE_DEBUG_ON_HTTP": true}

// ownArgs are arguments that a replay has of its own, by their names.
var ownArgs = map[string]bool{
	"monitoringAddr": true, "grpcAddr": true, "secureGRPCAddr": true, "httpAddr": true, "httpsAddr": true, "log_output_level": true, "log_as_json": true, "kubeconfig": true,
	"ctrlz_port": true, "ctrlz_address": true, "clusterID": true,
}

// ownArgValues are values of arguments that a replay's own have.
var ownArgValues = map[string]string{"domain": domain, "keepaliveMaxServerConnectionAge": "30m"}

// variableName matches the names of variables that are accepted here. In a pod they may also have dots and hyphens.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// stock reports that a variable has no information: it has no value, or every installation sets it by itself.
func (v Variable) stock() bool {
	own, known := ownValues[v.Name]
	return ownSettings[v.Name] || known && v.Value == own || v.Value == "" && v.From == ""
}

// Variables returns the variables of a revision that not every installation sets by itself.
func (r *Revision) Variables() []Variable {
	return slices.DeleteFunc(slices.Clone(r.Env), Variable.stock)
}

// Settings returns the variables (NAME=VALUE) of a revision that a replay takes over, in their order, and the
// differences for which the others are not.
func (r *Revision) Settings() (env []string, not []Difference) {
	for _, v := range r.Env {
		differ := func(changes string) {
			if v.Value == mask.Masked {
				v.Value = ""
			}
			not = append(not, Difference{"setting " + v.Name, v.Value, changes})
		}
		changes, other := otherSettings[v.Name]
		switch {
		case v.stock():
		case strings.HasPrefix(v.From, "field "), strings.HasPrefix(v.From, "resource "):
			differ(ofReferences)
		case v.From != "":
			v.Value = "of " + v.From
			differ(ofSecrets)
		case other && v.Value == strconv.FormatBool(onByDefault[v.Name]): // as it is by default
		case other:
			differ(changes)
		case v.Value == mask.Masked:
			differ(ofSecrets)
		case strings.Contains(v.Value, "$("):
			differ(ofReferences)
		case !variableName.MatchString(v.Name):
			differ("what it sets: a program here cannot have a variable of this name")
		default:
			env = append(env, v.Name+"="+v.Value)
		}
	}
	return env, append(not, r.arguments()...)
}

// Settings by which a control plane serves ztunnels, and sidecars take their connections. A replay in which nodes have proxies sets them.
const (
	servesZtunnels = "PILOT_ENABLE_AMBIENT"
	takesHBONE     = "ISTIO_META_ENABLE_HBONE"
)

// withoutAmbient returns a control plane without the settings that a replay in which nodes have proxies has by itself.
func (c *ControlPlane) withoutAmbient() *ControlPlane {
	if c == nil {
		return nil
	}
	to := *c
	to.Revisions = slices.Clone(c.Revisions)
	for i := range to.Revisions {
		r := &to.Revisions[i]
		r.Env = slices.DeleteFunc(slices.Clone(r.Env), func(v Variable) bool { return v.Name == servesZtunnels })
		if r.MeshConfig != nil {
			r.MeshConfig = runtime.DeepCopyJSON(r.MeshConfig)
			delete(proxyMetadata(r.MeshConfig), takesHBONE)
		}
	}
	return &to
}

// proxyMetadata returns the variables that a mesh configuration gives all proxies; nil = it has none.
func proxyMetadata(config map[string]any) map[string]any {
	proxies, _ := config["defaultConfig"].(map[string]any)
	return metadataOf(proxies)
}

// withoutHBONE returns the difference between sidecars of a replay in which nodes have proxies and the captured ones, which do not take
// connections of ztunnels through HBONE; nil where these do, or there are none, or that is not known.
func (m *Mesh) withoutHBONE() []Difference {
	r, pods := m.Served(), m.Pods()
	if r == nil || r.MeshConfig == nil || pods[Sidecar]+pods[Gateway] == 0 {
		return nil
	}
	value, _ := proxyMetadata(r.MeshConfig)[takesHBONE].(string)
	if value == "true" {
		return nil
	}
	return []Difference{{"meshConfig.defaultConfig.proxyMetadata." + takesHBONE, value, "tunnels and workloads that sidecars are sent: those of the replay take HBONE"}}
}

// arguments returns the arguments of a revision that a replay does not have.
func (r *Revision) arguments() (not []Difference) {
	args := r.Args
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "--")
		if !isFlag {
			continue // the name of the command
		}
		name, value, joined := strings.Cut(name, "=")
		if !joined && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			i++
			value = args[i]
		}
		changes := "what it sets: a replay has the control plane's default"
		switch own, known := ownArgValues[name]; {
		case ownArgs[name], known && value == own:
			continue
		case name == "domain":
			changes = "hosts: services of the replay are below " + domain
		case name == "keepaliveMaxServerConnectionAge":
			changes = "reconnections of sidecars: the replay closes connections after " + own
		}
		if value == mask.Masked {
			value = ""
		}
		not = append(not, Difference{"argument --" + name, value, changes})
	}
	return not
}

// Processors returns the number of processors of each replica: its limit, rounded up as its GOMAXPROCS is, or those of its node;
// 0 = not known.
func (r *Revision) Processors() int {
	for _, v := range r.Env {
		if v.Name == "GOMAXPROCS" && wholeProcessors(v.Value) > 0 {
			return wholeProcessors(v.Value)
		}
	}
	if limit := r.Limits["cpu"]; limit != "" {
		return wholeProcessors(limit)
	}
	return wholeProcessors(r.NodeProcessors)
}

// wholeProcessors returns a quantity of processors, rounded up; 0 of a text that is none.
func wholeProcessors(text string) int {
	q, err := quantity.ParseQuantity(text)
	if err != nil || text == "" {
		return 0
	}
	return int(math.Ceil(q.AsApproximateFloat64()))
}

// Memory returns the memory limit of each replica in bytes; 0 = none is known.
func (r *Revision) Memory() int64 {
	q, err := quantity.ParseQuantity(r.Limits["memory"])
	if err != nil {
		return 0
	}
	return q.Value()
}

// foreign are the fields of a mesh configuration that name what a replay does not have: they are left out, with what may
// be otherwise for it.
var foreign = map[string]string{
	"ca": ofCertificates, "caCertificates": ofCertificates, "certificates": ofCertificates,
	"configSources": "configuration from other servers, which is not captured",
}

// ownMetadata are variables of proxies that the replay's own installation decides.
var ownMetadata = map[string]string{
	"ISTIO_META_CLUSTER_ID": ofClusters, "ISTIO_META_NETWORK": ofClusters, takesHBONE: ofAmbient, "CA_ADDR": ofCertificates, "CA_PROVIDER": ofCertificates,
	"ISTIO_META_CERT_SIGNER": ofCertificates, "PROXY_XDS_VIA_AGENT": "", "XDS_ROOT_CA": ofRoots, "CA_ROOT_CA": ofRoots,
}

// TrustDomain is the trust domain of a replay.
const TrustDomain = domain

// Configuration returns the mesh configuration of a revision as a replay takes it over: without what names things that the replay
// does not have. discovery is the address at which the replay's proxies find the control plane.
func (r *Revision) Configuration(discovery string) (config map[string]any, not []Difference) {
	if r.MeshConfig == nil {
		return nil, nil
	}
	config = runtime.DeepCopyJSON(r.MeshConfig)
	drop := func(in map[string]any, name, path, changes string) {
		if _, there := in[name]; there {
			delete(in, name)
			if changes != "" {
				not = append(not, Difference{What: "meshConfig." + path, Changes: changes})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(foreign)) {
		drop(config, name, name, foreign[name])
	}
	if trusted, _ := config["trustDomain"].(string); trusted != "" && trusted != TrustDomain {
		not = append(not, Difference{"meshConfig.trustDomain", trusted, "identities: those of the replay are of " + TrustDomain + ", and so policies that name the domain match none"})
	}
	config["trustDomain"] = TrustDomain
	if config["discoverySelectors"] != nil {
		if delete(config, "discoverySelectors"); len(r.Undiscovered) > 0 {
			names := make([]any, 0, len(r.Undiscovered))
			for _, n := range r.Undiscovered {
				names = append(names, n)
			}
			config["discoverySelectors"] = []any{map[string]any{"matchExpressions": []any{map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": names}}}}
		}
	}
	proxies, _ := config["defaultConfig"].(map[string]any)
	if proxies == nil {
		proxies = map[string]any{}
	}
	for _, name := range dropForeign(proxies) {
		if changes := cmp.Or(foreignProxy[name], ownMetadata[strings.TrimPrefix(name, metadataPath)]); changes != "" {
			not = append(not, Difference{What: "meshConfig.defaultConfig." + name, Changes: changes})
		}
	}
	if capturesDNS(proxies) {
		not = append(not, Difference{"meshConfig.defaultConfig." + metadataPath + DNSCapture, "true", unaskedNames})
	}
	proxies["discoveryAddress"] = discovery
	config["defaultConfig"] = proxies
	if r.MeshNetworks != nil {
		not = append(not, Difference{What: "meshNetworks", Changes: "endpoints in other networks, of which a replay has none"})
	}
	return config, append(not, addresses(config)...)
}

// foreignProxy are the fields of a ProxyConfig, other than its metadata, whose values refer to the captured cluster. Their values here are
// what may differ in a replay without them; "" = nothing, because the replay sets its own.
var foreignProxy = map[string]string{"caCertificatesPem": ofCertificates, "discoveryAddress": "", "privateKeyProvider": "handshakes of real proxies"}

// metadataPath is the path of the metadata in a ProxyConfig.
const metadataPath = "proxyMetadata."

// dropForeign removes from a ProxyConfig the fields whose values refer to the captured cluster. It returns their paths.
func dropForeign(proxies map[string]any) (dropped []string) {
	drop := func(in map[string]any, path string, foreign map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(foreign)) {
			if _, there := in[name]; there {
				delete(in, name)
				dropped = append(dropped, path+name)
			}
		}
	}
	drop(proxies, "", foreignProxy)
	drop(metadataOf(proxies), metadataPath, ownMetadata)
	return dropped
}

// metadataOf returns the metadata that a ProxyConfig gives its proxies; nil = none.
func metadataOf(proxies map[string]any) map[string]any {
	metadata, _ := proxies["proxyMetadata"].(map[string]any)
	return metadata
}

// capturesDNS reports whether the agents of a ProxyConfig answer the DNS queries of applications.
func capturesDNS(proxies map[string]any) bool { return metadataOf(proxies)[DNSCapture] == "true" }

// unaskedNames is what differs in a replay whose agents answer DNS queries.
const unaskedNames = "tables of names that agents ask for: simulated ones do not"

// DNSCapture is the environment variable, and proxy metadata, with which an Istio agent answers DNS queries.
const DNSCapture = "ISTIO_META_DNS_CAPTURE"

// addresses names what configuration sends to addresses that a replay does not have. What the control plane sends does not
// depend on whether they answer.
func addresses(config map[string]any) (not []Difference) {
	const changes = "requests to it, not the configuration: in a replay no server answers there"
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if text, ok := v[name].(string); ok && (name == "address" || name == "service") && text != "" {
					not = append(not, Difference{"meshConfig." + path + "." + name, text, changes})
					continue
				}
				walk(path+"."+name, v[name])
			}
		case []any:
			for i, of := range v {
				if named, ok := of.(map[string]any); ok && named["name"] != nil {
					walk(fmt.Sprintf("%s[%v]", path, named["name"]), of)
				} else {
					walk(fmt.Sprintf("%s[%d]", path, i), of)
				}
			}
		}
	}
	if providers, ok := config["extensionProviders"]; ok {
		walk("extensionProviders", providers)
	}
	if proxies, ok := config["defaultConfig"].(map[string]any); ok && proxies["tracing"] != nil {
		walk("defaultConfig.tracing", proxies["tracing"])
	}
	return not
}

// Differences returns the parts of a mesh that a replay of its served revision does not reproduce.
func (m *Mesh) Differences() (all []Difference) {
	if r := m.Served(); r != nil {
		_, settings := r.Settings()
		_, config := r.Configuration("")
		all = slices.Concat(settings, config, m.beside())
	}
	all = append(all, m.networks()...)
	all = append(all, m.proxyless()...)
	for _, w := range m.Workloads {
		if config, _ := proxyConfigOf(w.Spec.Annotations[proxyConfigKey]); capturesDNS(config) {
			all = append(all, Difference{"proxy of " + w.ID() + ": " + metadataPath + DNSCapture, "true", unaskedNames})
		}
	}
	all = append(all, m.withoutPods()...)
	all = append(all, m.addresses()...)
	for _, o := range m.Objects {
		id := Identity(o.GetKind(), o.GetNamespace(), o.GetName())
		switch o.GetKind() {
		case "WasmPlugin":
			if url, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "url"); url != nil {
				all = append(all, Difference{id + ": url", mask.Value("", fmt.Sprint(url)), "what the module does to requests: simulated sidecars hold its configuration and do not load it"})
			}
		case "RequestAuthentication":
			rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "jwtRules")
			for _, one := range rules {
				if rule, _ := one.(map[string]any); rule["jwksUri"] != nil {
					all = append(all, Difference{id + ": jwksUri", mask.Value("", fmt.Sprint(rule["jwksUri"])), "keys in the configuration, where the address does not answer from here"})
				}
			}
		}
	}
	return all
}

// proxyless returns the difference by pods whose applications ask for configuration themselves.
func (m *Mesh) proxyless() []Difference {
	pods := 0
	for _, w := range m.Workloads {
		if w.Spec.Proxy == NoProxy && proxyless(w.Spec.Annotations) {
			pods += w.Spec.Replicas
		}
	}
	if pods == 0 {
		return nil
	}
	return []Difference{{"gRPC without proxies", output.Many(pods, "pod"), "what the control plane sends: such applications ask for configuration themselves, which is not simulated"}}
}

// networks names the networks of a mesh of several: of which more than one is named, or a gateway to one. Of such a mesh a
// replay has the pods of one cluster alone.
func (m *Mesh) networks() (all []Difference) {
	names, several := map[string]bool{}, false
	of := func(name string, gateway bool) {
		if name != "" {
			names[name] = true
			several = several || gateway
		}
	}
	home := rootNamespace
	if r := m.Served(); r != nil {
		home = r.Home()
	}
	for _, n := range m.Namespaces {
		if network := n.Labels[networkLabel]; n.Name == home && network != "" {
			of(network, false)
			if home != rootNamespace {
				all = append(all, Difference{"network of namespace " + home, network, "the network of its endpoints: the replay's control plane is in " + rootNamespace})
			}
		}
	}
	for _, s := range m.Services {
		of(s.Labels[networkLabel], true)
	}
	for _, w := range m.Workloads {
		of(w.Spec.Labels[networkLabel], false)
	}
	for _, o := range m.Objects {
		of(o.GetLabels()[networkLabel], o.GetKind() == "Gateway")
		if o.GetKind() == "WorkloadEntry" {
			network, _, _ := unstructured.NestedString(o.Object, "spec", "network")
			of(network, false)
		}
	}
	if several || len(names) > 1 {
		all = append(all, Difference{"networks", strings.Join(slices.Sorted(maps.Keys(names)), ", "), "endpoints of other clusters, and gateways to them: a replay has the pods of one"})
	}
	return all
}

// addresses names the addresses of services that a replay does not have.
func (m *Mesh) addresses() (all []Difference) {
	balanced, families := 0, map[string]int{}
	for _, s := range m.Services {
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			balanced++
		}
		if s.Spec.IPFamilies != nil {
			families[joinFamilies(s.Spec.IPFamilies)]++
		}
	}
	if balanced > 0 {
		all = append(all, Difference{"addresses of load balancers", output.Many(balanced, "service"), "the addresses by which gateways are reached from outside: the cluster of a replay assigns none"})
	}
	for _, names := range slices.Sorted(maps.Keys(families)) {
		all = append(all, Difference{"IP families " + names, output.Many(families[names], "service"), "addresses of clusters, listeners and endpoints: services and pods of the replay have IPv4 alone"})
	}
	return all
}

// beside returns the parts of a mesh, in addition to its served revision, that a replay does not have: other revisions, and webhooks.
func (m *Mesh) beside() (all []Difference) {
	r := m.Served()
	if r == nil {
		return nil
	}
	for i := range m.ControlPlane.Revisions {
		other := &m.ControlPlane.Revisions[i]
		if m.served != "" || other == r || other.Pods == 0 && len(other.Namespaces) == 0 {
			continue // with Mesh.Of other revisions have no part in what this one does
		}
		changes := "what its pods connect to: revision " + r.Name + ", which has most, serves them too"
		if _, err := m.Of(other.Name); err == nil {
			changes += "; --set mesh.revision=" + other.Name + " rolls out its control plane with its pods alone"
		}
		all = append(all, Difference{"revision " + other.Name, output.Many(other.Pods, "pod"), changes})
	}
	for _, w := range m.ControlPlane.Webhooks {
		all = append(all, Difference{"webhook " + w.Name, "", "pods as they are created: a replay has no such webhook"})
	}
	return all
}

// check checks what of a control plane can be wrong in a file that was edited.
func (c *ControlPlane) check() error {
	if c == nil {
		return nil
	}
	if len(c.Revisions) == 0 {
		return fieldError(Kind, "controlPlane.revisions", "", "one at least, or no controlPlane")
	}
	seen := map[string]bool{}
	for i := range c.Revisions {
		r := &c.Revisions[i]
		at := fmt.Sprintf("controlPlane.revisions[%d]", i)
		switch id := r.Namespace + "/" + r.Name; {
		case r.Name == "":
			return fieldError(Kind, at+".name", r.Name, "the name of a revision, default of one that has none")
		case seen[id]:
			return fieldError(Kind, at+".name", r.Name, "each revision of a namespace once")
		default:
			seen[id] = true
		}
		for name, text := range r.Limits {
			if _, err := quantity.ParseQuantity(text); err != nil {
				return fieldError(Kind, at+".limits."+name, text, "a quantity, as in 500m or 2Gi")
			}
		}
		for k, v := range r.Env {
			if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || strings.Contains(v.Value, "\x00") {
				return fieldError(Kind, fmt.Sprintf("%s.env[%d].name", at, k), v.Name, "the name of a variable")
			}
		}
		if r.Replicas < 0 || r.Pods < 0 {
			return fieldError(Kind, at+".replicas", r.Replicas, "0 or more")
		}
		r.MeshConfig, _ = wholeNumbers(r.MeshConfig).(map[string]any)
		r.MeshNetworks, _ = wholeNumbers(r.MeshNetworks).(map[string]any)
		if j := r.Injection; j != nil {
			j.Config, _ = wholeNumbers(j.Config).(map[string]any)
			j.Values, _ = wholeNumbers(j.Values).(map[string]any)
		}
	}
	return nil
}
