package run

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Trials are rollouts of the largest size without anything after them, slowed down by
// nothing, with the arrival of the runs.
func TestTrials(t *testing.T) {
	l := ladderOf([]int{200, 800, 400}, "permissive", "strict")
	l.Spec.Repeats = 3
	l.Spec.Instrument.Dilation.Auto, l.Spec.Load.Arrival.Rate, l.Spec.Load.Churn, l.Spec.Keep = true, 20, 2, true
	l.Spec.Load.Faults = []scenario.Fault{{}}
	trials := l.trials()
	if len(trials) != 2 {
		t.Fatalf("%d trials, want one of each mode", len(trials))
	}
	for i, spec := range trials {
		if err := spec.Validate(); err != nil {
			t.Error(err)
		}
		if spec.Pods() != 800 || spec.Mode() != l.Spec.Mesh.Mode[i] || spec.Load.Arrival != (scenario.Arrival{Rate: 20}) || spec.dilation() != 1 || spec.Load.Probes != 0 || spec.Load.Faults != nil || spec.Load.Churn != 0 || spec.Keep {
			t.Errorf("trial %d is %+v", i, spec)
		}
	}
	given := l
	given.Spec.Instrument.Dilation = scenario.Dilation{Factor: 3}
	got, err := given.chooseDilation(t.Context(), nil, Progress{})
	if err != nil || got.Spec.Instrument.Dilation.Factor != 3 || got.Spec.Choice != nil {
		t.Errorf("a factor that is given becomes %s, %v", got.Spec.Instrument.Dilation, err)
	}
}

// By default the factor of an earlier trial of such rollouts is used, whatever the version and the settings of the control
// plane. Who asks for a trial gets one.
func TestChoiceIsKept(t *testing.T) {
	l := ladderOf([]int{200}, "permissive")
	l.ByDefault = true
	l.Spec.Instrument.Dilation.Auto, l.Spec.Programs.CacheDir, l.Spec.Out = true, t.TempDir(), t.TempDir()
	dir, err := component.KeptDir(l.Spec.Programs, "dilation")
	if err != nil {
		t.Fatal(err)
	}
	store := dilation.Store{Dir: dir}
	choice := dilation.Choice{Factor: 3, Choice: record.DilationChoice{Limit: record.Saturated, Trials: []record.DilationTrial{{Pods: 200}}, Made: new(time.Unix(1000, 0).UTC())}}
	if err := store.Save(l.likeness(), choice); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Ladder)
		kept   bool
	}{
		"equal": {func(*Ladder) {}, true},
		"later phases": {func(l *Ladder) {
			l.Spec.Phases.Steady, l.Spec.Load.Probes, l.Spec.Load.Churn = scenario.Duration(10*time.Minute), 3, 2
		}, true},
		"another version":  {func(l *Ladder) { l.Spec.ControlPlane.Version, l.Spec.Programs.Istio = "1.29", "1.29" }, true},
		"another setting":  {func(l *Ladder) { l.Spec.ControlPlane.Env = []string{"PILOT_PUSH_THROTTLE=7"} }, true},
		"smaller sizes":    {func(l *Ladder) { l.Spec.Mesh.Pods = []int{100, 200} }, true},
		"another size":     {func(l *Ladder) { l.Spec.Mesh.Pods = []int{400} }, false},
		"another arrival":  {func(l *Ladder) { l.Spec.Load.Arrival = scenario.Arrival{Size: 20, Interval: time.Second} }, false},
		"another mode":     {func(l *Ladder) { l.Spec.Mesh.Mode = []string{"strict"} }, false},
		"fewer processors": {func(l *Ladder) { l.Spec.ControlPlane.Processors = 1 }, false},
		"asked for":        {func(l *Ladder) { l.ByDefault = false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := l
			c.change(&l)
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // a trial ends at once
			got, err := l.chooseDilation(ctx, new(component.Versions), Progress{})
			if !c.kept {
				if err == nil {
					t.Errorf("the factor is %s without a trial", got.Spec.Instrument.Dilation)
				}
				return
			}
			if err != nil || got.Spec.Instrument.Dilation.Factor != 3 || got.Spec.Choice == nil || !got.Spec.Choice.Made.Equal(*choice.Choice.Made) {
				t.Errorf("the factor is %s, %+v, %v", got.Spec.Instrument.Dilation, got.Spec.Choice, err)
			}
		})
	}
}

// Where a trial fails that nobody asked for, time is not slowed down, and the runs show why.
func TestTrialsFail(t *testing.T) {
	l := ladderOf([]int{10}, "permissive")
	l.Spec.Instrument.Dilation.Auto, l.Spec.Programs.CacheDir, l.Spec.Programs.BinDir, l.Spec.Out = true, t.TempDir(), t.TempDir(), t.TempDir()
	if _, err := l.chooseDilation(t.Context(), new(component.Versions), Progress{}); err == nil || !strings.Contains(err.Error(), "choosing the factor of --dilate auto") {
		t.Errorf("a trial that was asked for fails with %v", err)
	}
	l.ByDefault = true
	var said []string
	got, err := l.chooseDilation(t.Context(), new(component.Versions), Progress{Say: func(text string) { said = append(said, text) }})
	if err != nil || got.Spec.Instrument.Dilation != (scenario.Dilation{Factor: 1}) || !strings.Contains(strings.Join(said, "\n"), "time is not slowed down: choosing the factor") {
		t.Errorf("the factor is %s, %v, and said is %q", got.Spec.Instrument.Dilation, err, said)
	}
}

func TestDefaultDilation(t *testing.T) {
	auto, none := scenario.Dilation{Auto: true}, scenario.Dilation{Factor: 1}
	for name, c := range map[string]struct {
		change func(*Spec)
		want   scenario.Dilation
	}{
		"stock":            {func(*Spec) {}, auto},
		"real sidecars":    {func(s *Spec) { s.Mesh.Sidecars.Real = 1 }, none},
		"workers":          {func(s *Spec) { s.Instrument.Workers = 2 }, none},
		"existing cluster": {func(s *Spec) { s.Existing = &Existing{} }, none},
		"kept":             {func(s *Spec) { s.Keep = true }, none},
		"osm":              {func(s *Spec) { s.ControlPlane.Name = "osm" }, none},
		"renewals":         {func(s *Spec) { s.Mesh.Sidecars.CertificateLifetime = scenario.Duration(time.Minute) }, none},
		"ambient":          {func(s *Spec) { s.Mesh.Dataplane = []string{"ambient"} }, auto},
		"external server":  {func(s *Spec) { s.ControlPlane.Name = "xds://127.0.0.1:18000" }, none},
	} {
		s := DefaultSpec()
		c.change(&s)
		if got := s.DefaultDilation(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestExpected(t *testing.T) {
	s := DefaultSpec() // baseline 10 s, settle 10 s and steady 60 s
	s.Instrument.Dilation.Factor = 3
	trial := dilation.Times{Rollout: 30 * time.Second, Around: 20 * time.Second}
	if got, want := s.expected(trial), (20+10+60+3*(10+30))*time.Second; got != want {
		t.Errorf("it takes %s, want %s", got, want)
	}
	s.Mesh.Sidecars.CertificateLifetime = scenario.Duration(time.Hour) // steady is slowed down, too
	if got, want := s.expected(trial), (20+3*(10+10+60+30))*time.Second; got != want {
		t.Errorf("with renewals it takes %s, want %s", got, want)
	}
}

// That a trial chose not to slow time down is recorded, too.
func TestChosenDilation(t *testing.T) {
	choice := &record.DilationChoice{Limit: record.Saturated}
	for _, k := range []float64{1, 4} {
		s := DefaultSpec()
		s.Instrument.Dilation.Factor, s.Choice = k, choice
		driver, err := s.Driver()
		if err != nil {
			t.Fatal(err)
		}
		given := controlplane.Resources{MaxProcs: 2}
		resources, d := s.dilate(driver, given)
		if d == nil || d.Auto != choice || (d.Scaled == nil) != (k == 1) {
			t.Errorf("slowed down %g times, the record has %+v", k, d)
		}
		if k == 1 && !cmp.Equal(given, resources) {
			t.Errorf("not slowed down, the control plane is given %+v", resources)
		}
	}
}
