package run

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/internal/run/changes"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/pkg/record"
)

func TestCheckDilation(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"": func(s *Spec) { s.Instrument.Dilation = 2.5 },
		"parsing --dilate 0.5: want from 1 to 64, or auto":                                                 func(s *Spec) { s.Instrument.Dilation = 0.5 },
		"parsing --dilate -2: want from 1 to 64, or auto":                                                  func(s *Spec) { s.Instrument.Dilation = -2 },
		"parsing --dilate 65: want from 1 to 64, or auto":                                                  func(s *Spec) { s.Instrument.Dilation = 65 },
		"parsing --dilate 2: want none with --real-sidecars, whose time cannot be slowed down":             func(s *Spec) { s.Instrument.Dilation, s.Mesh.Sidecars.Real = 2, 1 },
		"parsing --dilate auto: want none with --real-sidecars, whose time cannot be slowed down":          func(s *Spec) { s.Instrument.Dilation, s.Mesh.Sidecars.Real = dilation.Auto, 1 },
		"parsing --dilate auto: want none with --workers 2: the figures of each worker are not scaled yet": func(s *Spec) { s.Instrument.Dilation, s.Instrument.Workers = dilation.Auto, 2 },
		"parsing --dilate 2: want none with --control-plane still, of which it is not known what is a matter of time": func(s *Spec) {
			s.Instrument.Dilation, s.ControlPlane.Name = 2, "still"
			s.Drivers = []controlplane.Driver{{Name: "still", Dataplane: controlplane.Dataplane{Modes: controlplane.StandardModes(), Proxy: controlplane.Proxy{XDS: controlplane.BothVariants()}}, CheckKnobs: controlplane.Knobs.Validate}}
		},
	} {
		s := DefaultSpec()
		change(&s)
		got := ""
		if err := s.checkDilation(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is asked for is of the machine that is stood for; the run does it slower, and
// records what was asked for.
func TestOnBench(t *testing.T) {
	asked := DefaultSpec()
	asked.Instrument.Dilation, asked.Load.Arrival, asked.Load.Churn = 4, 20, 2
	asked.Mesh.Sidecars.StartDelay = workload.Delay{Shape: workload.Uniform, Min: time.Second, Max: 2 * time.Second}
	asked.Mesh.Sidecars.CertificateLifetime = time.Minute
	asked.Load.Changes = changes.Load{PerSecond: 6, Kind: changes.Route}
	bench, err := asked.onBench()
	if err != nil {
		t.Fatal(err)
	}
	want := asked
	want.Arrival, want.Churn = 5, 0.5
	want.Change.PerSecond, want.ChangeDuration = 1.5, 2*time.Minute
	want.Baseline, want.Settle, want.Steady = 40*time.Second, 40*time.Second, 4*time.Minute
	want.ConvergeTimeout, want.CertificateLifetime = 40*time.Minute, 4*time.Minute
	want.StartDelay.Min, want.StartDelay.Max = 4*time.Second, 8*time.Second
	if diff := cmp.Diff(want, bench); diff != "" {
		t.Errorf("on the bench (-want +got):\n%s", diff)
	}
	if r := newRecord(asked); r.Spec.Dilation != 4 || r.Spec.Arrival != "20/s" || r.Spec.SteadySeconds != 60 || r.Spec.Change != "6/s:route" || r.Spec.ChangeSeconds != 30 {
		t.Errorf("the record has %+v", r.Spec)
	}

	asked.Load.Arrival, asked.Load.Arrival = 0, "10/1s"
	if bench, err = asked.onBench(); err != nil || bench.Burst != "10/4s" {
		t.Errorf("bursts on the bench are %q, %v", bench.Burst, err)
	}
	for _, k := range []float64{0, 1} {
		asked.Instrument.Dilation = k
		if bench, err = asked.onBench(); err != nil || !cmp.Equal(bench, asked) {
			t.Errorf("a dilation of %v changes the spec to %+v, %v", k, bench, err)
		}
		if r := newRecord(asked); r.Spec.Dilation != 0 {
			t.Errorf("a dilation of %v is recorded", r.Spec.Dilation)
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
		"renewals":      {func(s *Spec) { s.Mesh.Sidecars.CertificateLifetime = time.Minute }, false},
		"outside churn": {func(s *Spec) { s.topology().Own.OutsideChurn = 1 }, false},
		"osm":           {func(s *Spec) { s.ControlPlane.Name = "osm" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := DefaultSpec()
			asked.Instrument.Dilation = 4
			c.change(&asked)
			bench, err := asked.onBench()
			if err != nil {
				t.Fatal(err)
			}
			baseline, steady := 40*time.Second, 4*time.Minute
			var phases []record.PhaseName
			if c.realTime {
				baseline, steady = 10*time.Second, time.Minute
				phases = []record.PhaseName{record.PhaseBaseline, record.PhaseSteady}
			}
			if bench.Baseline != baseline || bench.Steady != steady || bench.Settle != 40*time.Second || bench.likeSteady() != 4*time.Minute {
				t.Errorf("%s, %s, %s and as long as steady %s, want %s, %s, 40s and 4m", bench.Baseline, bench.Steady, bench.Settle, bench.likeSteady(), baseline, steady)
			}
			want := baseline + steady + 40*time.Second
			if asked.Load.Churn > 0 {
				want += 4 * time.Minute
			}
			if got := asked.FixedLength(); got != want {
				t.Errorf("phases of fixed length take %s, want %s", got, want)
			}
			driver, err := bench.Driver()
			if err != nil {
				t.Fatal(err)
			}
			if _, d := bench.dilate(driver, controlplane.Resources{MaxProcs: 2}); !cmp.Equal(d.RealTime, phases) {
				t.Errorf("the record has %v, want %v", d.RealTime, phases)
			}
		})
	}
}

// The record has the settings of the machine that is stood for, and those that the
// control plane ran with.
func TestDescribeDilation(t *testing.T) {
	r := &run{spec: DefaultSpec()}
	r.spec.Instrument.Dilation, r.spec.ControlPlane.Env = 4, []string{"PILOT_PUSH_THROTTLE=7", "OTHER=1"}
	var err error
	if r.driver, err = r.spec.Driver(); err != nil {
		t.Fatal(err)
	}
	r.resources, r.dilation = r.spec.dilate(r.driver, controlplane.Resources{MaxProcs: 2, Env: r.spec.ControlPlane.Env})
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
	if r.dilation.Factor != 4 || len(r.dilation.Scaled) < 5 || len(r.dilation.Unscaled) == 0 {
		t.Errorf("dilation is %+v", r.dilation)
	}
}

// A control plane whose constants its build reads from the environment: the record has them as they ran, and
// the limits of the machine that is stood for.
func TestDescribeDilationOfConstants(t *testing.T) {
	r := &run{spec: DefaultSpec()}
	r.spec.ControlPlane.Name, r.spec.Mode, r.spec.Instrument.Dilation, r.spec.ControlPlane.Env = "osm", "strict", 2, []string{"OSM_EVENTS_PER_SECOND=20"}
	if err := r.spec.checkDilation(); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.driver, err = r.spec.Driver(); err != nil {
		t.Fatal(err)
	}
	r.resources, r.dilation = r.spec.dilate(r.driver, controlplane.Resources{MaxProcs: 2, Env: r.spec.ControlPlane.Env})
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
