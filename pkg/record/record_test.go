package record

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/scenario"
)

// The schema's names are a promise: testdata/design.json is the schema as it
// was laid down, and every name in it must come back from a round trip, unless
// it stands for something empty, which is absent.
func TestSchemaKeepsItsNames(t *testing.T) {
	text, err := os.ReadFile("testdata/design.json")
	if err != nil {
		t.Fatal(err)
	}
	run, _, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(back, &got); err != nil {
		t.Fatal(err)
	}
	for _, lost := range missing("", want, got) {
		t.Errorf("%s is lost in a round trip", lost)
	}
}

// missing returns the paths of want that got has not, leaving out those whose
// value is empty: "", {} and the zeros that a count in the environment has.
func missing(path string, want, got any) []string {
	var lost []string
	switch want := want.(type) {
	case map[string]any:
		got, _ := got.(map[string]any)
		for name, value := range want {
			at := strings.TrimPrefix(path+"."+name, ".")
			if _, ok := got[name]; !ok {
				if !empty(value) && at != "environment.memoryBytes" {
					lost = append(lost, at)
				}
				continue
			}
			lost = append(lost, missing(at, value, got[name])...)
		}
	case []any:
		got, _ := got.([]any)
		for i, value := range want {
			if i >= len(got) {
				return append(lost, path)
			}
			lost = append(lost, missing(path, value, got[i])...)
		}
	}
	return lost
}

func empty(value any) bool {
	v := reflect.ValueOf(value)
	return (v.Kind() == reflect.Map || v.Kind() == reflect.String) && v.Len() == 0
}

// What was not measured must be absent, and what was measured as zero be there.
func TestAbsentIsNotZero(t *testing.T) {
	run := Run{
		APIVersion: APIVersion, Kind: Kind, Name: "x", Status: StatusInterrupted,
		Started:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{1}, Services: 1, Namespaces: 1, Topology: "layers", Sidecars: scenario.Sidecars{XDS: "delta"}}},
		Pods:     &Pods{Requested: 1, Ready: new(0)},
	}
	got, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"scaler.mesh/v1","kind":"Run","schema":0,"name":"x","status":"interrupted","started":"2026-01-02T03:04:05Z",` +
		`"scenario":{"apiVersion":"","kind":"","mesh":{"pods":1,"services":1,"namespaces":1,"topology":"layers","seed":0,"sidecars":{"xds":"delta"}},` +
		`"controlPlane":{},"load":{"arrival":"all","probes":0},"phases":{"settle":"0s"},"instrument":{"calibrate":false,"priority":false}},` +
		`"environment":{},"pods":{"requested":1,"ready":0}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// The two packages are of one floor and do not import each other; who measures
// converts one into the other, which the compiler allows only as long as their
// fields are the same.
func TestLatencyIsAHistogramsSummary(t *testing.T) {
	h := stats.NewHistogram()
	h.Record(time.Second)
	h.Lose(1)
	got, err := json.Marshal(Latency(h.Summary()))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"unit":"s","count":1,"lost":1,"min":1,"mean":1,"p50":1,"max":1}`
	if string(got) != want {
		t.Errorf("latency %s, want %s", got, want)
	}
}

func TestByPhase(t *testing.T) {
	var figures ByPhase[*Usage]
	for _, phase := range []PhaseName{PhaseBaseline, PhaseRollout, PhaseSteady, PhaseProbe} {
		*figures.At(phase) = &Usage{CPUSeconds: new(1.0)}
	}
	got, err := json.Marshal(figures)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"baseline":{"cpuSeconds":1},"rollout":{"cpuSeconds":1},"steady":{"cpuSeconds":1},"probe":{"cpuSeconds":1}}`
	if string(got) != want {
		t.Errorf("figures by phase %s, want %s", got, want)
	}
	if figures.At(PhaseSettle) != nil {
		t.Error("settle has figures: want none")
	}
}

func TestRolloutSeconds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		phases []Phase
		want   *float64
	}{
		{"not reached", []Phase{{Name: PhaseBaseline, EndedBy: EndedByDuration, Seconds: new(10.0)}}, nil},
		{"converged", []Phase{{Name: PhaseRollout, EndedBy: EndedByConverged, Seconds: new(31.4)}}, new(31.4)},
		{"a bound", []Phase{{Name: PhaseRollout, EndedBy: EndedByTimeout, Seconds: new(600.0)}}, nil},
		{"goes on", []Phase{{Name: PhaseRollout}}, nil},
	} {
		if diff := cmp.Diff(tt.want, (&Run{Phases: tt.phases}).RolloutSeconds()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestBytesRatio(t *testing.T) {
	for _, tt := range []struct {
		name  string
		types map[string]HeldResources
		ratio float64
		known bool
	}{
		{"nothing held", nil, 0, false},
		{"nothing real", map[string]HeldResources{"CDS": {SimulatedBytes: 10}}, 0, false},
		{"nothing simulated", map[string]HeldResources{"CDS": {RealBytes: 10}}, 0, true},
		{"all types together", map[string]HeldResources{"CDS": {RealBytes: 30, SimulatedBytes: 20}, "EDS": {RealBytes: 10, SimulatedBytes: 10}}, 0.75, true},
	} {
		if ratio, known := BytesRatio(tt.types); ratio != tt.ratio || known != tt.known {
			t.Errorf("%s: %v, %v, want %v, %v", tt.name, ratio, known, tt.ratio, tt.known)
		}
	}
}
