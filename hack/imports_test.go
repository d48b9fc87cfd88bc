package hack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// floors is the house, from the ground up. Imports point down only, and packages of one floor do
// not import each other; a folder below one of these belongs to it, unless it is listed itself.
var floors = [][]string{
	{"internal/boundedfile", "internal/linux", "internal/output"}, // what the ground is built on
	{ // ground
		"docs", "internal/timeseries", "internal/doctor", "internal/forward", "internal/onecall", "internal/interrupt", "internal/podnet", "internal/process", "internal/task", "internal/credentialfile", "internal/nodetemplate", "internal/mask", "internal/httpget", "internal/svid", "kwok", "dashboards",
		"pkg/convergence", "pkg/proxy", "pkg/scenario", "pkg/record", "internal/analyse/pushes", "internal/analyse/stats", "internal/topology",
	},
	{ // mechanisms, and what reads records
		"pkg/xdsprobe", "internal/capture", "internal/component", "internal/cluster", "internal/workload", "internal/observe", "internal/informer",
		"internal/sidecar", "internal/dataplane", "internal/measure", "internal/speed", "internal/grafana", "internal/analyse", "internal/dilation", "internal/steps", "internal/place/guard",
	},
	{"internal/istioagent", "internal/ztunnel", "internal/place", "internal/loadagent", "internal/analyse/assess"}, // made of mechanisms
	{"internal/controlplane"}, // one package for each control plane, and their list
	{"internal/run/journal", "internal/worker", "internal/place/attach"}, // the record of a run while it is made; what runs proxies; and existing clusters
	{"internal/fleet", "internal/workerjob"},                             // pods and their sidecars, and workers as pods
	{"internal/run/phases"},                                              // the measured windows of a run
	{"internal/run/changes", "internal/measure/containers", "internal/run/faults", "internal/run/probes", "internal/run/supervision", "internal/run/upgrade", "internal/series"},
	{"internal/run", "internal/latency", "internal/fidelity", "internal/calibrate", "internal/xdsload", "internal/dashboardserver"}, // experiments
	{"internal/series/limits", "internal/series/sweep", "internal/series/verify", "internal/series/rehearsal", "pkg/rollout"},       // make runs of an experiment to decide something
	{"internal/cli"},
	{"cmd", "test", "hack", "dashboards/generate"},
}

// sideways are the exceptions: imports within one floor, with the reason.
var sideways = map[[2]string]string{
	{"internal/analyse/report", "internal/analyse/compare"}:  "a threshold of a run is judged as an objective is",
	{"internal/analyse/report", "internal/analyse/capacity"}: "what one more pod costs is by the model of plans",
	{"internal/run", "internal/calibrate"}:                   "a run measures the instrument's floor first where it is not known",
	{"internal/podnet", "internal/process"}:                  "the network of a pod is a namespace that processes are started in",
	{"internal/topology", "pkg/scenario"}:                    "a mesh has the parts that a scenario states",
	{"pkg/record", "pkg/scenario"}:                           "a record has what was asked of its run",
	{"pkg/proxy", "pkg/convergence"}:                         "a proxy's events hold what convergence is computed from as it is",
}

// homes are the only packages that may import these modules, directly; tests may import anything.
var homes = []struct {
	modules  []string
	packages []string
}{
	{[]string{"github.com/prometheus/client_golang", "github.com/prometheus/client_model", "github.com/prometheus/common", "github.com/prometheus/prometheus"}, []string{
		"internal/measure",
		"internal/measure/clusterprometheus",
		"internal/controlplane/reference", // the server is a program with metrics of its own, which the adapter reads
	}},
	{[]string{"istio.io"}, []string{"internal/controlplane", "internal/analyse/diff"}}, // diff reads the messages that a sidecar holds
	{[]string{"github.com/linkerd"}, []string{"internal/controlplane/linkerd"}},
	{[]string{"github.com/envoyproxy"}, []string{"pkg/xdsprobe", "internal/sidecar", "internal/controlplane", "internal/fidelity/wiretap", "internal/analyse/diff"}},
	{[]string{"github.com/grafana"}, []string{"dashboards"}},
	{[]string{"github.com/spf13"}, []string{"internal/cli"}},
	{[]string{"github.com/google/nftables", "github.com/vishvananda/netlink"}, []string{"internal/podnet"}},
	{[]string{"github.com/google/go-containerregistry"}, []string{"internal/component/image", "test/imagetest"}}, // reads released programs from registries, with Docker's credentials
}

// forbiddenImports are modules that these packages must not import, directly or through other
// packages of ours.
var forbiddenImports = []struct {
	packages []string
	modules  []string
	reason   string
}{
	{
		[]string{"pkg/scenario", "pkg/record", "internal/analyse/stats", "internal/analyse/report", "internal/analyse/compare", "internal/analyse/capacity"},
		[]string{"k8s.io", "istio.io", "github.com/envoyproxy", "google.golang.org/grpc"},
		"what reads records needs the record alone",
	},
	{
		[]string{"pkg/xdsprobe", "internal/istioagent", "internal/ztunnel"},
		[]string{"k8s.io", "istio.io"},
		"simulated sidecars need neither Kubernetes nor one particular mesh",
	},
	{
		[]string{"internal/topology", "pkg/convergence", "internal/output", "pkg/proxy", "internal/analyse/pushes", "internal/interrupt", "internal/process", "internal/task", "internal/doctor"},
		[]string{"k8s.io", "istio.io", "github.com/envoyproxy", "google.golang.org"},
		"the ground speaks plain types",
	},
	{
		[]string{"cmd"},
		[]string{"k8s.io/client-go/informers"},
		"compiling the informers of all kinds took a tenth of scaler's first build: internal/informer makes those of one kind",
	},
}

// below reports whether importPath is one of these packages or modules, or below one.
func below(importPath string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return importPath == root || strings.HasPrefix(importPath, root+"/")
	})
}

// floorOf gives a package's floor and the entry of floors that it belongs to, the longest of
// several; -1 when it has none.
func floorOf(folder string) (at int, entry string) {
	at = -1
	for i, floor := range floors {
		for _, root := range floor {
			if below(folder, []string{root}) && len(root) > len(entry) {
				at, entry = i, root
			}
		}
	}
	return at, entry
}

func importsPointDown(r *repository) []finding {
	var found []finding
	homeless := map[string]bool{}
	for _, s := range r.code {
		from, fromRoot := floorOf(s.folder())
		if from < 0 {
			homeless[s.folder()] = true
			continue
		}
		if s.test {
			continue
		}
		for i, p := range s.imports() {
			target, ours := strings.CutPrefix(p, module)
			if !ours {
				continue
			}
			to, toRoot := floorOf(target)
			switch {
			case to < 0 || to < from || fromRoot == toRoot:
			case sideways[[2]string{fromRoot, toRoot}] != "":
			case to == from:
				found = append(found, r.at(s.tree.Imports[i], fmt.Sprintf("%s imports %s, which is on the same floor", s.folder(), target)))
			default:
				found = append(found, r.at(s.tree.Imports[i], fmt.Sprintf("%s imports %s, which is above it", s.folder(), target)))
			}
		}
	}
	for folder := range homeless {
		found = append(found, finding{folder, "this package is on no floor: give it one in hack/imports_test.go (floors)"})
	}
	return found
}

func vendorTypesStayHome(r *repository) []finding {
	var found []finding
	for _, s := range r.code {
		if s.test {
			continue
		}
		for i, p := range s.imports() {
			for _, home := range homes {
				if below(p, home.modules) && !below(s.folder(), home.packages) {
					found = append(found, r.at(s.tree.Imports[i], fmt.Sprintf("%s is imported outside %s", p, strings.Join(home.packages, ", "))))
				}
			}
		}
	}
	direct := directImports(r)
	for _, rule := range forbiddenImports {
		for _, folder := range slices.Sorted(maps.Keys(direct)) {
			if !below(folder, rule.packages) {
				continue
			}
			for _, way := range reach(direct, folder, rule.modules) {
				found = append(found, finding{folder, fmt.Sprintf("imports %s: %s", strings.Join(way, " -> "), rule.reason)})
			}
		}
	}
	return found
}

// directImports maps each package of ours to what its own code imports, tests left out.
func directImports(r *repository) map[string][]string {
	direct := map[string][]string{}
	for _, s := range r.code {
		if !s.test {
			direct[s.folder()] = append(direct[s.folder()], s.imports()...)
		}
	}
	return direct
}

// reach returns the import paths from a package, through others of this module, to packages of the modules; one
// way for each package in which it leaves ours.
func reach(direct map[string][]string, from string, modules []string) [][]string {
	var ways [][]string
	seen := map[string]bool{from: true}
	var walk func(folder string, way []string)
	walk = func(folder string, way []string) {
		for _, p := range direct[folder] {
			if below(p, modules) {
				ways = append(ways, append(slices.Clone(way), p))
				break
			}
		}
		for _, p := range direct[folder] {
			if next, ours := strings.CutPrefix(p, module); ours && !seen[next] {
				seen[next] = true
				walk(next, append(slices.Clone(way), next))
			}
		}
	}
	walk(from, nil)
	return ways
}

func TestReach(t *testing.T) {
	direct := map[string][]string{
		"a": {"fmt", module + "b"},
		"b": {module + "c", module + "a"},
		"c": {"k8s.io/api/core/v1"},
	}
	got := fmt.Sprint(reach(direct, "a", []string{"k8s.io"}))
	if want := "[[b c k8s.io/api/core/v1]]"; got != want {
		t.Errorf("reach = %s, want %s", got, want)
	}
	if got := reach(direct, "a", []string{"k8s.i"}); got != nil {
		t.Errorf("reach = %v for half a name", got)
	}
}
