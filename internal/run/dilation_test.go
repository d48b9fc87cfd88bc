package run

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

func TestCheckDilation(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"": func(s *Spec) { s.Instrument.Dilation.Factor = 2.5 },
		`instrument.dilation: got "0.5", want from 1 to 64, or auto`:                                                          func(s *Spec) { s.Instrument.Dilation.Factor = 0.5 },
		`instrument.dilation: got "-2", want from 1 to 64, or auto`:                                                           func(s *Spec) { s.Instrument.Dilation.Factor = -2 },
		`instrument.dilation: got "65", want from 1 to 64, or auto`:                                                           func(s *Spec) { s.Instrument.Dilation.Factor = 65 },
		`instrument.dilation: got "NaN", want from 1 to 64, or auto`:                                                          func(s *Spec) { s.Instrument.Dilation.Factor = math.NaN() },
		`instrument.dilation: got "2", want none with mesh.sidecars.real, whose time cannot be slowed down`:                   func(s *Spec) { s.Instrument.Dilation.Factor, s.Mesh.Sidecars.Real = 2, 1 },
		`instrument.dilation: got "auto", want none with mesh.sidecars.real, whose time cannot be slowed down`:                func(s *Spec) { s.Instrument.Dilation.Auto, s.Mesh.Sidecars.Real = true, 1 },
		`instrument.dilation: got "auto", want none with instrument.workers 2: the figures of each worker are not scaled yet`: func(s *Spec) { s.Instrument.Dilation.Auto, s.Instrument.Workers = true, 2 },
		`instrument.dilation: got "2", want none with controlPlane.name still, of which it is not known what is a matter of time`: func(s *Spec) {
			s.Instrument.Dilation.Factor, s.ControlPlane.Name = 2, "still"
			s.Drivers = []controlplane.Driver{{Name: "still", Dataplane: controlplane.Dataplane{Modes: controlplane.StandardModes(), Proxy: controlplane.Proxy{XDS: controlplane.BothVariants()}}, CheckKnobs: scenario.Settings.Validate}}
		},
	} {
		s := DefaultSpec()
		change(&s)
		driver, err := s.Driver()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := s.checkDilation(driver); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is asked for is of the modelled machine; the run does it slower, and
// records what was asked for.
func TestOnMachine(t *testing.T) {
	asked := DefaultSpec()
	asked.Instrument.Dilation.Factor, asked.Load.Arrival.Rate, asked.Load.Churn = 4, 20, 2
	asked.Mesh.Sidecars.StartDelay = &scenario.Delay{Min: time.Second, Max: 2 * time.Second}
	asked.Mesh.Sidecars.CertificateLifetime = scenario.Duration(time.Minute)
	asked.Load.Changes = scenario.Changes{PerSecond: 6, Kind: scenario.RouteChange}
	want := asked
	want.Load.Arrival.Rate, want.Load.Churn, want.Load.Changes.PerSecond = 5, 0.5, 1.5
	want.Phases = scenario.Phases{Baseline: seconds(20), ConvergeTimeout: seconds(2400), Settle: seconds(20), Steady: seconds(120), Changes: seconds(120)}
	want.Mesh.Sidecars.CertificateLifetime = seconds(240)
	want.Mesh.Sidecars.StartDelay = &scenario.Delay{Min: 4 * time.Second, Max: 8 * time.Second}
	if diff := cmp.Diff(want, asked.onMachine()); diff != "" {
		t.Errorf("on this machine (-want +got):\n%s", diff)
	}
	if r := newRecord(asked); r.Slowdown() != 4 || !cmp.Equal(r.Scenario.Load, asked.Load) || r.Scenario.Phases != asked.Phases {
		t.Errorf("the record has %+v", r.Scenario)
	}

	asked.Load.Arrival = scenario.Arrival{Size: 10, Interval: time.Second}
	if got := asked.onMachine(); got.Load.Arrival.String() != "10/4s" {
		t.Errorf("bursts on this machine are %s", got.Load.Arrival)
	}
	for _, k := range []float64{0, 1} {
		asked.Instrument.Dilation.Factor = k
		if got := asked.onMachine(); !cmp.Equal(got, asked) {
			t.Errorf("a dilation of %v changes the spec to %+v", k, got)
		}
		if r := newRecord(asked); r.Slowdown() != 1 {
			t.Errorf("a dilation of %v is recorded", r.Slowdown())
		}
	}
}

// Phases in which istiod is at rest are not slowed down, unless something goes on in them that is. A phase of churn that
// is as long as steady is slowed down all the same.
func TestPhasesInRealTime(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*Spec)
		realTime bool
	}{
		"at rest":       {func(*Spec) {}, true},
		"churn":         {func(s *Spec) { s.Load.Churn = 2 }, true},
		"renewals":      {func(s *Spec) { s.Mesh.Sidecars.CertificateLifetime = scenario.Duration(time.Minute) }, false},
		"outside churn": {func(s *Spec) { s.Mesh.Parts.OutsideChurn = new(1.0) }, false},
		"osm":           {func(s *Spec) { s.ControlPlane.Name = "osm" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := DefaultSpec()
			asked.Instrument.Dilation.Factor = 4
			c.change(&asked)
			slow := asked.onMachine()
			baseline, settle, steady := 20*time.Second, 20*time.Second, 2*time.Minute
			expected := settle
			var phases []record.PhaseName
			if c.realTime {
				baseline, settle, steady = 5*time.Second, 5*time.Second, 30*time.Second
				expected = 4 * fleet.QuietTime
				phases = []record.PhaseName{record.PhaseBaseline, record.PhaseSteady}
			}
			p := slow.Phases
			if time.Duration(p.Baseline) != baseline || time.Duration(p.Steady) != steady || time.Duration(p.Settle) != settle {
				t.Errorf("%s, %s, %s, want %s, %s, %s", p.Baseline, p.Steady, p.Settle, baseline, steady, settle)
			}
			if a, b := slow.likeRest(p.Steady), slow.likeRest(p.Settle); a != 2*time.Minute || b != 20*time.Second {
				t.Errorf("slowed down, steady takes %s and settle %s, want 2m and 20s", a, b)
			}
			want := baseline + expected + steady
			if asked.Load.Churn > 0 {
				want += 2 * time.Minute
			}
			var got time.Duration
			for _, part := range asked.stages() {
				if slices.Contains([]record.PhaseName{record.PhaseBaseline, record.PhaseSettle, record.PhaseSteady, record.PhaseChurn}, record.PhaseName(part.name)) {
					got += part.length
				}
			}
			if got != want {
				t.Errorf("phases of fixed length take %s, want %s", got, want)
			}
			driver, err := slow.Driver()
			if err != nil {
				t.Fatal(err)
			}
			if _, d := slow.dilate(driver, controlplane.Resources{MaxProcs: 2}); !cmp.Equal(d.RealTime, phases) {
				t.Errorf("the record has %v, want %v", d.RealTime, phases)
			}
		})
	}
}

// The record has the settings of the modelled machine, and those that the
// control plane ran with.
func TestDescribeDilation(t *testing.T) {
	r := &run{spec: DefaultSpec()}
	r.spec.Instrument.Dilation.Factor, r.spec.ControlPlane.Env = 4, []string{"PILOT_PUSH_THROTTLE=7", "OTHER=1"}
	var err error
	if r.driver, err = r.spec.Driver(); err != nil {
		t.Fatal(err)
	}
	r.resources, r.dilation = r.spec.dilate(r.driver, controlplane.Resources{MaxProcs: 8, Env: r.spec.ControlPlane.Env})
	if got := r.resources.Processors(); got != 8 {
		t.Errorf("GOMAXPROCS is %d, want 8", got)
	}
	source := record.ControlPlaneSource{Settings: r.resources.Settings(map[string]string{"own": "kept"}), Limits: &record.Limits{}}
	r.describeDilation(&source)
	if diff := cmp.Diff(map[string]string{"own": "kept", "PILOT_PUSH_THROTTLE": "7", "OTHER": "1"}, source.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if got := r.dilation.Settings; got["PILOT_DEBOUNCE_AFTER"] != "400ms" || got["PILOT_PUSH_THROTTLE"] != "7" || got["kubernetesApiQPS"] != "21" {
		t.Errorf("settings as it ran are %v", got)
	}
	if source.Limits.DebounceSeconds != 0.1 || source.Limits.StreamsPerSecond.At(8) != 55 {
		t.Errorf("limits are %+v", source.Limits)
	}
	if len(r.dilation.Scaled) < 5 || len(r.dilation.Unscaled) == 0 {
		t.Errorf("dilation is %+v", r.dilation)
	}
}

// A control plane whose constants its build reads from the environment: the record has them as they ran, and
// the limits of the modelled machine.
func TestDescribeDilationOfConstants(t *testing.T) {
	r := &run{spec: DefaultSpec()}
	r.spec.ControlPlane.Name, r.spec.Mesh.Mode, r.spec.Instrument.Dilation.Factor, r.spec.ControlPlane.Env = "osm", []string{"strict"}, 2, []string{"OSM_EVENTS_PER_SECOND=20"}
	var err error
	if r.driver, err = r.spec.Driver(); err != nil {
		t.Fatal(err)
	}
	if err := r.spec.checkDilation(r.driver); err != nil {
		t.Fatal(err)
	}
	r.resources, r.dilation = r.spec.dilate(r.driver, controlplane.Resources{MaxProcs: 8, Env: r.spec.ControlPlane.Env})
	source := record.ControlPlaneSource{Settings: r.resources.Settings(map[string]string{}), Limits: r.driver.Figures.Limits(r.resources.Env)}
	r.describeDilation(&source)
	if diff := cmp.Diff(map[string]string{"OSM_EVENTS_PER_SECOND": "20"}, source.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if got := r.dilation.Settings; got["OSM_PROXY_UPDATE_WINDOW"] != "4s" || got["OSM_EVENTS_PER_SECOND"] != "10" || got["OSM_API_REQUESTS_PER_SECOND"] != "2.5" {
		t.Errorf("settings as it ran are %v", got)
	}
	if l := source.Limits; l.DebounceSeconds != 2 || l.EventsPerSecond != 20 || l.InjectionsPerSecond != 5 {
		t.Errorf("limits are %+v", l)
	}
}
