package capture

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// ControlPlane is the control plane of a captured mesh.
type ControlPlane struct {
	// Revisions are its revisions, sorted by name and namespace, at least one.
	Revisions []Revision `json:"revisions"`
	// Webhooks are the webhooks of other programs that may change pods when they are created. A replay has none of them.
	Webhooks []Webhook `json:"webhooks,omitempty"`
	// APIServer is the history of requests to the API server; nil = it was captured without a Prometheus.
	APIServer *History `json:"apiServer,omitempty"`
	// Masked is the number of values that look like credentials, and are masked.
	Masked int `json:"masked,omitempty"`
}

// Revision is one installation of the control plane. Of what could not be read the fields are empty.
type Revision struct {
	Name      string   `json:"name"`                // "default" = it has none
	Namespace string   `json:"namespace,omitempty"` // of its Deployment
	Tags      []string `json:"tags,omitempty"`      // that mean it
	// Namespaces are the namespaces of the mesh whose labels say that it injects their pods.
	Namespaces []string `json:"namespaces,omitempty"`
	// Tagged are the Namespaces whose label is one of its tags, by the tag. The labels of the others name the
	// revision itself.
	Tagged map[string][]string `json:"tagged,omitempty"`
	// Workloads are the workloads, as namespace/name, whose pods have proxies of it although their namespaces
	// follow another revision or none.
	Workloads []string `json:"workloads,omitempty"`
	Pods      int      `json:"pods,omitempty"` // that have a proxy of it

	Version    string            `json:"version,omitempty"`  // of the tag of its image
	Reported   string            `json:"reported,omitempty"` // by itself
	Args       []string          `json:"args,omitempty"`
	Env        []Variable        `json:"env,omitempty"`
	Requests   map[string]string `json:"requests,omitempty"` // of each replica, by resource
	Limits     map[string]string `json:"limits,omitempty"`
	Replicas   int               `json:"replicas,omitempty"`
	Autoscaler *Autoscaler       `json:"autoscaler,omitempty"`
	// NodeProcessors are the allocatable processors of a node of its pods, the least of several nodes.
	NodeProcessors string `json:"nodeProcessors,omitempty"`

	MeshConfig   map[string]any `json:"meshConfig,omitempty"`
	MeshNetworks map[string]any `json:"meshNetworks,omitempty"`
	Injection    *Injection     `json:"injection,omitempty"`
	// History is the history of the revision's pods; nil = it was captured without a Prometheus.
	History *History `json:"history,omitempty"`
	// Undiscovered are the namespaces of the mesh that its discovery selectors leave out.
	Undiscovered []string `json:"undiscovered,omitempty"`
}

// Variable is one of an environment: Value, or From where it comes from a field, a ConfigMap or a Secret,
// which is not read.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	From  string `json:"from,omitempty"` // as in "secret ca-token, key token"
}

// Autoscaler bounds the number of replicas.
type Autoscaler struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Injection is the configuration by which a revision adds proxies to pods.
type Injection struct {
	Config    map[string]any    `json:"config,omitempty"` // without its templates
	Templates map[string]string `json:"templates,omitempty"`
	Values    map[string]any    `json:"values,omitempty"` // that templates are executed with
}

// Webhook is a configuration of webhooks that change objects.
type Webhook struct {
	Name  string `json:"name"`
	Count int    `json:"count"` // of its webhooks that are called for new pods
}

// defaultRevision is the name of the revision that has none.
const defaultRevision = "default"

// Deployment returns the name that Istio's installations give its Deployment.
func (r *Revision) Deployment() string { return controlPlaneApp + suffix(r.Name) }

// Home returns the namespace of the revision's control plane.
func (r *Revision) Home() string { return cmp.Or(r.Namespace, rootNamespace) }

// Has reports whether a pod of a control plane is one of the revision, by its labels.
func (r *Revision) Has(labels map[string]string) bool { return revisionOf(labels) == r.Name }

// Release returns the version that a revision runs: what it reports, else that of its image; "" = not known.
func (r *Revision) Release() string { return cmp.Or(r.Reported, r.Version) }

// Root returns the namespace whose configuration applies to the whole mesh.
func (r *Revision) Root() string {
	root, _ := r.MeshConfig["rootNamespace"].(string)
	return cmp.Or(root, rootNamespace) // the default of the control plane, wherever it runs
}

// named returns the revision with a name; nil = there is none.
func (c *ControlPlane) named(name string) *Revision {
	i := slices.IndexFunc(c.Revisions, func(r Revision) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Revisions[i]
}

// Served returns the revision that a replay runs: that of [Mesh.Of], else the one with most pods, then that of most namespaces, then
// the one that the tag "default" means, then the first by name; nil if the mesh has no control plane.
func (m *Mesh) Served() *Revision {
	if m.ControlPlane == nil || len(m.ControlPlane.Revisions) == 0 {
		return nil
	}
	if r := m.ControlPlane.named(m.served); r != nil {
		return r
	}
	rank := func(r Revision) []int {
		tagged := 0
		if slices.Contains(r.Tags, defaultRevision) {
			tagged = 1
		}
		return []int{r.Pods, len(r.Namespaces), tagged}
	}
	all := m.ControlPlane.Revisions
	best := &all[0]
	for i := range all {
		if slices.Compare(rank(all[i]), rank(*best)) > 0 {
			best = &all[i]
		}
	}
	return best
}

// Root returns the namespace whose configuration applies to the whole mesh.
func (m *Mesh) Root() string {
	if r := m.Served(); r != nil {
		return r.Root()
	}
	return rootNamespace
}

// ImageVersion returns the release in an image's tag, without what kind of image it is, as in
// docker.io/istio/pilot:1.29.1-distroless; "" where the tag is no release.
func ImageVersion(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return Released(tag)
}

// Released returns the version that a text begins with, up to the first hyphen; "" if that is not the
// number of a release.
func Released(text string) string {
	version, _, _ := strings.Cut(strings.TrimSpace(text), "-")
	if !release.MatchString(version) {
		return ""
	}
	return version
}

var release = regexp.MustCompile(`^[1-9]\d*\.\d+(\.\d+)?([.+][\w.+-]+)?$`)
