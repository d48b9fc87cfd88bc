package istio

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/scenario"
)

// nowhere is the egress host of a workload that calls nobody: a Sidecar that
// names no host at all would be one that reaches every service.
const nowhere = "~/*"

// Objects returns the objects that the knobs become:
//
//   - mtls strict is one PeerAuthentication for the whole mesh, in the root
//     namespace. mtls permissive is none: it is Istio's default, and a mesh
//     without the object is what it is measured for.
//   - scope declared is a Sidecar for each workload, whose egress hosts are the
//     services that it calls, and nothing else. Neither its own service nor
//     istio-system is among them: a proxy reaches istiod by its bootstrap, and
//     what it receives does not depend on egress. Namespaces without sidecars have none.
//   - authz declared is an AuthorizationPolicy for each edge of the call graph,
//     which allows the caller's service account to call the workload. A
//     workload without a policy would allow everybody, so one that nobody calls
//     has a policy without rules, which allows nobody.
//
// In addition there are the objects of the mesh's profile.
func (c configuration) Objects(mesh topology.Mesh, knobs scenario.Settings) []*unstructured.Unstructured {
	objects := profileObjects(mesh)
	if knobs.MTLS == "strict" {
		objects = append(objects, object("security.istio.io/v1", "PeerAuthentication", namespace, "default", map[string]any{
			"mtls": map[string]any{"mode": "STRICT"},
		}))
	}
	if knobs.Scope == scenario.ScopeDeclared {
		for _, s := range mesh.WithoutGateways() {
			if c.hasSidecars(mesh, s.Namespace) {
				objects = append(objects, scopeOf(mesh, s))
			}
		}
	}
	if knobs.Authz == "declared" {
		for callee, callers := range callers(mesh) {
			if mesh.Services[callee].Gateway {
				continue
			}
			for _, p := range policiesOf(mesh, callee, callers) {
				objects = append(objects, p.object(mesh.Services[callee]))
			}
		}
	}
	return objects
}

// scopeOf returns the Sidecar of a service's workload.
func scopeOf(mesh topology.Mesh, s topology.Service) *unstructured.Unstructured {
	hosts := []any{}
	for _, callee := range s.Calls {
		called := mesh.Services[callee]
		hosts = append(hosts, called.Namespace+"/"+hostname(called))
	}
	if len(hosts) == 0 {
		hosts = append(hosts, nowhere)
	}
	return object("networking.istio.io/v1", "Sidecar", s.Namespace, s.Name, map[string]any{
		"workloadSelector": map[string]any{"labels": map[string]any{"app": s.Name}},
		"egress":           []any{map[string]any{"hosts": hosts}},
	})
}

// policy is an AuthorizationPolicy of a workload.
type policy struct {
	name      string
	principal string // that it allows; "" means nobody
}

// policiesOf returns the policies of a called workload, one for each caller.
func policiesOf(mesh topology.Mesh, callee int, callers []int) []policy {
	name := mesh.Services[callee].Name
	if len(callers) == 0 {
		return []policy{{name: "nobody-to-" + name}}
	}
	var policies []policy
	for _, i := range callers {
		caller := mesh.Services[i]
		policies = append(policies, policy{
			name:      caller.Name + "-to-" + name,
			principal: fmt.Sprintf("%s/ns/%s/sa/%s", trustDomain, caller.Namespace, caller.Account),
		})
	}
	return policies
}

func (p policy) object(callee topology.Service) *unstructured.Unstructured {
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": callee.Name}},
		"action":   "ALLOW",
	}
	if p.principal != "" {
		spec["rules"] = []any{map[string]any{"from": []any{map[string]any{
			"source": map[string]any{"principals": []any{p.principal}},
		}}}}
	}
	return object("security.istio.io/v1", "AuthorizationPolicy", callee.Namespace, p.name, spec)
}

// ruleName returns the name that istiod gives the policy's only rule in the RBAC filters of
// a listener: policyName in its pilot/pkg/security/authz/builder.
func (p policy) ruleName(callee topology.Service) string {
	return fmt.Sprintf("ns[%s]-policy[%s]-rule[0]", callee.Namespace, p.name)
}

// callers are, for each service, the services that call it, ascending.
func callers(mesh topology.Mesh) [][]int {
	callers := make([][]int, len(mesh.Services))
	for i, s := range mesh.Services {
		for _, callee := range s.Calls {
			callers[callee] = append(callers[callee], i)
		}
	}
	return callers
}
