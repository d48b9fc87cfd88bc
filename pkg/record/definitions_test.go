package record

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Every figure of the record has its definition in docs/reference/definitions.md, or in
// the catalogue.
func TestFiguresAreDefined(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/definitions.md")
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{}
	for _, f := range Figures() {
		if f.Definition != "" {
			for word := range strings.SplitSeq(f.Path, ".") {
				defined[word] = true
			}
		}
	}
	for _, figures := range []any{Mesh{}, NotChecked{}, Rates{}, Arrival{}, Pods{}, Usage{}, Level{}, Latencies{}, Latency{}, PushIntervals{}, QuantileInterval{}, XDS{}, ConfigurationBytes{}, Certificates{}, Priority{}, Dilation{}, RealSidecars{}, RealSidecar{}, ContainerUsage{}, Knobs{}, Instrument{}, InstrumentWorker{}, WorkerClock{}, Warning{}, XDSSidecars{}, XDSWindow{}, CalibrationPoint{}, FanOut{}, Fault{}, Replicas{}, Replica{}, Balance{}, FaultReplica{}, Change{}, Churn{}, Upgrade{}, UpgradeVersion{}, UpgradeStage{}, UpgradeSide{}, UpgradeRoom{}, ControlPlaneSource{}, ClusterProgram{}, Limits{}, ByProcessors{}, Moment{}, Load{}, PodStartup{}, Startup{}, LatencyRow{}, PublishedLatency{}, LatencyFigure{}, Interval{}, Added{}, LatencySidecars{}, LatencySidecar{}, LatencyRepeat{}, LatencySecond{}, FidelityCase{}, Sameness{}, HeldResources{}, StartTimes{}, TimeTest{}, Spread{}, Difference{}} {
		for field := range reflect.TypeOf(figures).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" || name == "note" || defined[name] {
				continue
			}
			if !regexp.MustCompile("`[^`\n]*\\b" + name + "\\b[^`\n]*`").Match(text) {
				t.Errorf("%s.%s: no `%s` in docs/reference/definitions.md", reflect.TypeOf(figures).Name(), field.Name, name)
			}
		}
	}
}
