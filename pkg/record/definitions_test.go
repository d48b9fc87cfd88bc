package record

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/scenario"
)

// What documents other than a run state, and what a run states of its conditions, is defined in
// docs/reference/definitions. The figures of a run are defined in the catalogue.
func TestOtherFieldsAreDefined(t *testing.T) {
	documents, err := filepath.Glob("../../docs/reference/definitions/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	var text []byte
	for _, document := range documents {
		part, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, part...)
	}
	for _, figures := range []any{Mesh{}, NotChecked{}, Priority{}, Dilation{}, ContainerUsage{}, scenario.Settings{}, WorkerClock{}, Warning{}, XDSSidecars{}, XDSWindow{}, CalibrationPoint{}, FanOut{}, ControlPlaneSource{}, ClusterProgram{}, Limits{}, ByProcessors{}, Moment{}, Load{}, PodStartup{}, Startup{}, LatencyRow{}, PublishedLatency{}, LatencyFigure{}, Interval{}, Added{}, LatencySidecars{}, LatencySidecar{}, LatencyRepeat{}, LatencySecond{}, FidelityCase{}, Sameness{}, HeldResources{}, StartTimes{}, TimeTest{}, Spread{}, Difference{}} {
		for field := range reflect.TypeOf(figures).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" || name == "note" {
				continue
			}
			if !regexp.MustCompile("`[^`\n]*\\b" + name + "\\b[^`\n]*`").Match(text) {
				t.Errorf("%s.%s: no `%s` in docs/reference/definitions", reflect.TypeOf(figures).Name(), field.Name, name)
			}
		}
	}
}
