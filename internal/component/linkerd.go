package component

import "time"

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
// Times and rates are set by the variables of LinkerdTimes; destination and identity are not changed
// in any other way.
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

	clientRequests("LINKERD_API_REQUESTS_PER_SECOND"),
	clientRequestsRead,
	{linkerdModulePath, "controller/k8s/api.go", "informers.NewSharedInformerFactory(k8sClient, 10*time.Minute)", "informers.NewSharedInformerFactory(k8sClient, resync())"},
	{linkerdModulePath, "controller/k8s/api.go", "sp.NewSharedInformerFactory(spClient, 10*time.Minute)", "sp.NewSharedInformerFactory(spClient, resync())"},
	{linkerdModulePath, "controller/k8s/api.go", "ts.NewSharedInformerFactory(tsClient, 10*time.Minute)", "ts.NewSharedInformerFactory(tsClient, resync())"},
	{linkerdModulePath, "controller/k8s/resync.go", "", `package k8s

import (
	"os"
	"time"
)

// resync is how often informers repeat what they know.
func resync() time.Duration { return durationOf("LINKERD_RESYNC_INTERVAL", 10*time.Minute) }

// durationOf is a length of time that the environment may set.
func durationOf(name string, usual time.Duration) time.Duration {
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		panic(name + ": " + err.Error())
	}
	return length
}
`},
}

// LinkerdTimes are the times and rates of destination, identity and the proxy injector: constants of
// their source and of their client library. Each program reads all of them.
var LinkerdTimes = []Time{
	{Variable: "LINKERD_API_REQUESTS_PER_SECOND", PerSecond: 5, What: "requests to the API server, by each client for each API group, after a burst of 10; reviews of tokens among them"},
	{Variable: "LINKERD_RESYNC_INTERVAL", Length: 10 * time.Minute, What: "repetition of all objects that informers know"},
}
