package component

// linkerdModulePath is the Go module of Linkerd's control plane, and linkerdVersion the release of its
// pinned commit, which its CHANGES.md states.
const (
	linkerdModulePath = "github.com/linkerd/linkerd2"
	linkerdVersion    = "edge-21.7.1"
)

// linkerdEdits let the proxy injector run outside of a container, and on Kubernetes 1.36. Its
// certificate and the values of the chart, which are mounted at constant paths, are read from a folder
// that the environment names. The chart's templates are part of the program, as in the release, for which they are
// generated into a source file that the module does not have. CronJobs are not watched: they are of
// batch/v1beta1, which Kubernetes does not serve since 1.25, and the program ends when it cannot list them.
// destination and identity are not changed.
var linkerdEdits = []edit{
	{linkerdModulePath, "controller/cmd/proxy-injector/main.go", ", k8s.Pod, k8s.CJ}", ", k8s.Pod}"},
	{linkerdModulePath, "pkg/k8s/labels.go", "import (\n\t\"fmt\"\n", "import (\n\t\"fmt\"\n\t\"os\"\n"},
	{linkerdModulePath, "pkg/k8s/labels.go", "const (\n\t/*\n\t * Labels\n", `// Paths that the environment may move.
var (
	MountPathValuesConfig = mountPath() + "/config/values"
	MountPathTLSBase      = mountPath() + "/tls"
	MountPathTLSKeyPEM    = MountPathTLSBase + "/tls.key"
	MountPathTLSCrtPEM    = MountPathTLSBase + "/tls.crt"
)

func mountPath() string {
	if path := os.Getenv("LINKERD_MOUNT_PATH"); path != "" {
		return path
	}
	return MountPathBase
}

const (
	/*
	 * Labels
`},
	{linkerdModulePath, "pkg/k8s/labels.go", "\tMountPathValuesConfig = MountPathBase + \"/config/values\"\n", ""},
	{linkerdModulePath, "pkg/k8s/labels.go", "\tMountPathTLSBase = MountPathBase + \"/tls\"\n", ""},
	{linkerdModulePath, "pkg/k8s/labels.go", "\tMountPathTLSKeyPEM = MountPathTLSBase + \"/tls.key\"\n", ""},
	{linkerdModulePath, "pkg/k8s/labels.go", "\tMountPathTLSCrtPEM = MountPathTLSBase + \"/tls.crt\"\n", ""},
	{linkerdModulePath, "charts/charts.go", "", `// Package charts has the templates of what is injected.
package charts

import "embed"

//go:embed all:partials all:patch
var Files embed.FS
`},
	{linkerdModulePath, "pkg/charts/static/templates.go", "\t\"net/http\"\n\t\"path\"\n", "\t\"net/http\"\n\n\t\"github.com/linkerd/linkerd2/charts\"\n"},
	{linkerdModulePath, "pkg/charts/static/templates.go", `http.Dir(path.Join(GetRepoRoot(), "charts"))`, "http.FS(charts.Files)"},
}
