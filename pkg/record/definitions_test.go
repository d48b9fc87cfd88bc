package record

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// What documents other than a run state, and what a run states of its conditions, is defined in
// docs/reference/definitions.md. The figures of a run are defined in the catalogue.
func TestOtherFieldsAreDefined(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/definitions.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, figures := range []any{Mesh{}, NotChecked{}, Priority{}, Dilation{}, ContainerUsage{}, Knobs{}, WorkerClock{}, Warning{}, XDSSidecars{}, XDSWindow{}, CalibrationPoint{}, FanOut{}, ControlPlaneSource{}, ClusterProgram{}, Limits{}, ByProcessors{}, Moment{}, Load{}, PodStartup{}, Startup{}, LatencyRow{}, PublishedLatency{}, LatencyFigure{}, Interval{}, Added{}, LatencySidecars{}, LatencySidecar{}, LatencyRepeat{}, LatencySecond{}, FidelityCase{}, Sameness{}, HeldResources{}, StartTimes{}, TimeTest{}, Spread{}, Difference{}} {
		for field := range reflect.TypeOf(figures).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" || name == "note" {
				continue
			}
			if !regexp.MustCompile("`[^`\n]*\\b" + name + "\\b[^`\n]*`").Match(text) {
				t.Errorf("%s.%s: no `%s` in docs/reference/definitions.md", reflect.TypeOf(figures).Name(), field.Name, name)
			}
		}
	}
}
