package component

import "time"

// osmModulePath is the Go module of Open Service Mesh, and osmVersion its release.
const (
	osmModulePath = "github.com/openservicemesh/osm"
	osmVersion    = "v1.2.4"
)

// osmProgram gives a program of Open Service Mesh.
func osmProgram(name string) Program {
	return Program{Name: name, Version: osmVersion, Package: osmModulePath + "/cmd/" + name, Output: name, Ask: []string{"version"}}
}

// osmEdits let programs that were written for a pod each run next to other processes: ports that
// are constants are taken from the environment, and osm-controller and osm-bootstrap take a
// kubeconfig, as osm-injector does. Without these variables nothing changes. The edits take the
// place of a network namespace and of a mounted service-account folder for each program, which need
// privileges on the machine. osm-bootstrap contains the definitions that it installs, which are
// files of its image otherwise. The command "version" is added, too. Times and rates are set
// by the variables of OSMTimes.
var osmEdits = []edit{
	osmVersionCommand("osm-controller"),
	osmVersionCommand("osm-injector"),
	osmVersionCommand("osm-bootstrap"),
	osmKubeconfig("osm-controller"),
	osmKubeconfig("osm-bootstrap"),
	{osmModulePath, "cmd/osm-bootstrap/osm-bootstrap.go", `filepath.Glob("/osm-crds/*.yaml")`, `fs.Glob(definitions, "crds/*.yaml")`},
	{osmModulePath, "cmd/osm-bootstrap/osm-bootstrap.go", `os.ReadFile(filepath.Clean(file))`, `definitions.ReadFile(file)`},
	{osmModulePath, "cmd/osm-bootstrap/osm-bootstrap.go", `"path/filepath"`, `"io/fs"`},
	{osmModulePath, "cmd/osm-bootstrap/definitions.go", "", `package main

import "embed"

//go:embed crds/*.yaml
var definitions embed.FS
`},
	{osmModulePath, "cmd/osm-controller/osm-controller.go",
		"xdsServer.Start(ctx, cancel, constants.ADSServerPort, adsCert)", "xdsServer.Start(ctx, cancel, constants.ADSListenPort, adsCert)"},
	{osmModulePath, "pkg/constants/constants.go", "import \"time\"\n", `import (
	"os"
	"strconv"
	"time"
)

// Ports that the environment may move.
var (
	InjectorWebhookPort  = portOf("OSM_INJECTOR_WEBHOOK_PORT", 9090)
	OSMHTTPServerPort    = uint16(portOf("OSM_HTTP_PORT", 9091))
	DebugPort            = uint16(portOf("OSM_DEBUG_PORT", 9092))
	ValidatorWebhookPort = portOf("OSM_VALIDATOR_WEBHOOK_PORT", 9093)
	ADSListenPort        = portOf("OSM_ADS_PORT", ADSServerPort)
)

func portOf(name string, usual int) int {
	if port, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return port
	}
	return usual
}

// DurationOf is a length of time that the environment may set.
func DurationOf(name string, usual time.Duration) time.Duration {
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

// RateOf is a number per second that the environment may set.
func RateOf(name string, usual float64) float64 {
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(name + ": " + err.Error())
	}
	return rate
}
`},
	{osmModulePath, "pkg/constants/constants.go", "\tInjectorWebhookPort = 9090\n", ""},
	{osmModulePath, "pkg/constants/constants.go", "\tOSMHTTPServerPort = 9091\n", ""},
	{osmModulePath, "pkg/constants/constants.go", "\tDebugPort = 9092\n", ""},
	{osmModulePath, "pkg/constants/constants.go", "\tValidatorWebhookPort = 9093\n", ""},

	{osmModulePath, "pkg/messaging/broker.go", "const (\n\t// proxyUpdateSlidingWindow", "var (\n\t// proxyUpdateSlidingWindow"},
	{osmModulePath, "pkg/messaging/broker.go", "proxyUpdateSlidingWindow = 2 * time.Second",
		`proxyUpdateSlidingWindow = constants.DurationOf("OSM_PROXY_UPDATE_WINDOW", 2 * time.Second)`},
	{osmModulePath, "pkg/messaging/broker.go", "proxyUpdateMaxWindow = 10 * time.Second",
		`proxyUpdateMaxWindow = constants.DurationOf("OSM_PROXY_UPDATE_MAX_WINDOW", 10 * time.Second)`},
	{osmModulePath, "pkg/messaging/broker.go", "b.queueLenMetric(stopCh, 5*time.Second)",
		`b.queueLenMetric(stopCh, constants.DurationOf("OSM_QUEUE_METRIC_INTERVAL", 5*time.Second))`},
	{osmModulePath, "pkg/messaging/broker.go", "workqueue.DefaultControllerRateLimiter()", "eventLimiter()"},
	{osmModulePath, "pkg/messaging/limiter.go", "", `package messaging

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"

	"github.com/openservicemesh/osm/pkg/constants"
)

// eventLimiter is workqueue.DefaultControllerRateLimiter with times that the environment may set.
func eventLimiter() workqueue.RateLimiter {
	return workqueue.NewMaxOfRateLimiter(
		workqueue.NewItemExponentialFailureRateLimiter(constants.DurationOf("OSM_EVENT_DELAY", 5*time.Millisecond), constants.DurationOf("OSM_EVENT_DELAY_MAX", 1000*time.Second)),
		&workqueue.BucketRateLimiter{Limiter: rate.NewLimiter(rate.Limit(constants.RateOf("OSM_EVENTS_PER_SECOND", 10)), 100)},
	)
}
`},
	// What the edit above takes the place of: a client library with another limiter is refused.
	{clientGoModulePath, "util/workqueue/default_rate_limiters.go", workqueueLimiter, workqueueLimiter},
	clientRequests("OSM_API_REQUESTS_PER_SECOND"),
	clientRequestsRead,

	{osmModulePath, "pkg/utils/grpc.go", "const (\n\tmaxStreams              = 100000\n\tstreamKeepAliveDuration = 60 * time.Second\n)", `const maxStreams = 100000

var (
	streamKeepAliveDuration = constants.DurationOf("OSM_KEEPALIVE", 60 * time.Second)
	streamKeepAliveTimeout  = constants.DurationOf("OSM_KEEPALIVE_TIMEOUT", 20 * time.Second) // gRPC's default
)`},
	{osmModulePath, "pkg/utils/grpc.go", "\t\t\tTime: streamKeepAliveDuration,\n", "\t\t\tTime: streamKeepAliveDuration,\n\t\t\tTimeout: streamKeepAliveTimeout,\n"},
	{osmModulePath, "pkg/utils/grpc.go", "\t\"google.golang.org/grpc/keepalive\"\n", "\t\"google.golang.org/grpc/keepalive\"\n\n\t\"github.com/openservicemesh/osm/pkg/constants\"\n"},

	osmCertificateCheck("osm-controller"),
	osmCertificateCheck("osm-injector"),
	{osmModulePath, "cmd/osm-injector/osm-injector.go", `"webhook-timeout", int32(20),`,
		`"webhook-timeout", int32(constants.DurationOf("OSM_WEBHOOK_TIMEOUT", 20*time.Second)/time.Second),`},
}

// OSMTimes are the times and rates of the programs of Open Service Mesh: constants of its source
// and of its client library, and the default of --webhook-timeout. Each program reads all of them.
var OSMTimes = []Time{
	{Variable: "OSM_PROXY_UPDATE_WINDOW", Length: 2 * time.Second, What: "wait for further events before a change is sent to all sidecars"},
	{Variable: "OSM_PROXY_UPDATE_MAX_WINDOW", Length: 10 * time.Second, What: "longest wait before a change is sent to all sidecars"},
	{Variable: "OSM_EVENTS_PER_SECOND", PerSecond: 10, What: "events of Kubernetes taken from the queue, after a burst of 100"},
	{Variable: "OSM_EVENT_DELAY", Length: 5 * time.Millisecond, What: "least wait of an event in the queue"},
	{Variable: "OSM_EVENT_DELAY_MAX", Length: 1000 * time.Second, What: "longest wait of an event in the queue"},
	{Variable: "OSM_API_REQUESTS_PER_SECOND", PerSecond: 5, What: "requests to the API server, by each client for each API group, after a burst of 10"},
	{Variable: "OSM_KEEPALIVE", Length: time.Minute, What: "ping of an idle connection of a sidecar"},
	{Variable: "OSM_KEEPALIVE_TIMEOUT", Length: 20 * time.Second, What: "time limit for the answer to a ping"},
	{Variable: "OSM_CERTIFICATE_CHECK_INTERVAL", Length: 5 * time.Second, What: "check of all certificates for renewal"},
	{Variable: "OSM_QUEUE_METRIC_INTERVAL", Length: 5 * time.Second, What: "update of the metric of the queue's length"},
	{Variable: "OSM_WEBHOOK_TIMEOUT", Length: 20 * time.Second, Most: 30 * time.Second, What: "time limit of the injection webhook"},
}

// osmCertificateCheck lets the environment set how often a program looks for certificates to renew.
func osmCertificateCheck(program string) edit {
	return edit{osmModulePath, "cmd/" + program + "/" + program + ".go", "certOpts, msgBroker, 5*time.Second, trustDomain",
		`certOpts, msgBroker, constants.DurationOf("OSM_CERTIFICATE_CHECK_INTERVAL", 5*time.Second), trustDomain`}
}

// osmKubeconfig lets the environment name a program's kubeconfig.
func osmKubeconfig(program string) edit {
	return edit{osmModulePath, "cmd/" + program + "/" + program + ".go",
		`clientcmd.BuildConfigFromFlags("", "")`, `clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))`}
}

// osmVersionCommand lets a program of Open Service Mesh report its version.
func osmVersionCommand(program string) edit {
	return edit{osmModulePath, "cmd/" + program + "/" + program + ".go", "func main() {\n", `func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		fmt.Println("version", version.Version)
		return
	}
`}
}
