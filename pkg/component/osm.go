package component

// osmModulePath is the Go module of Open Service Mesh, and osmVersion its release.
const (
	osmModulePath = "github.com/openservicemesh/osm"
	osmVersion    = "v1.2.4"
)

// osmEdits let programs that were written for a pod each run next to other processes: ports that
// are constants are taken from the environment, and osm-controller takes a kubeconfig, as
// osm-injector does. Without these variables nothing changes. The edits take the place of a
// network namespace and of a mounted service-account folder for each program, which need
// privileges on the machine. The command "version" is added, too.
var osmEdits = []edit{
	osmVersionCommand("osm-controller"),
	osmVersionCommand("osm-injector"),
	{osmModulePath, "cmd/osm-controller/osm-controller.go",
		`clientcmd.BuildConfigFromFlags("", "")`, `clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))`},
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
`},
	{osmModulePath, "pkg/constants/constants.go", "\tInjectorWebhookPort = 9090\n", ""},
	{osmModulePath, "pkg/constants/constants.go", "\tOSMHTTPServerPort = 9091\n", ""},
	{osmModulePath, "pkg/constants/constants.go", "\tDebugPort = 9092\n", ""},
	{osmModulePath, "pkg/constants/constants.go", "\tValidatorWebhookPort = 9093\n", ""},
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
