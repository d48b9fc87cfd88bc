package run

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// All runs of a ladder get one factor, which is the largest that one of them needs, whatever turns they take.
func TestChooseDilation(t *testing.T) {
	m := dilation.Machine{Processors: 2, Speed: 1.6}
	factor := func(pods int, modes ...string) float64 {
		l := ladderOf([]int{pods}, modes...)
		l.Spec.Instrument.Dilation.Auto = true
		return l.choose(m).Spec.dilation()
	}
	l := ladderOf([]int{200, 1600, 400}, "strict", "permissive")
	l.Spec.Repeats, l.Spec.Instrument.Dilation.Auto = 3, true
	got := l.choose(m)
	if k := got.Spec.dilation(); k != factor(1600, "permissive") || k < factor(1600, "strict") || k < factor(200, "permissive") || k == 1 {
		t.Errorf("the factor is %g", k)
	}
	for _, run := range got.Runs() {
		if run.Instrument.Dilation != got.Spec.Instrument.Dilation || run.Choice != got.Spec.Choice || run.Choice == nil || !run.StartsAgain {
			t.Errorf("%s has %s, %+v, starts again %v", run.Name(), run.Instrument.Dilation, run.Choice, run.StartsAgain)
		}
	}
	if text := got.Spec.pace(); !strings.HasPrefix(text, fmt.Sprintf("time is slowed down %g times: ", got.Spec.dilation())) || !strings.HasSuffix(text, " reference processors are expected to be needed, and 70 % of this machine's 2 processors of speed 1.6 may be used; a push to all sidecars takes 0.77 s of a reference processor, and must leave processors for the pods that come meanwhile") {
		t.Errorf("it says %q", text)
	}
	given := ladderOf([]int{200}, "permissive")
	given.Spec.Instrument.Dilation = scenario.Dilation{Factor: 3}
	if got := given.choose(m); got.Spec.Instrument.Dilation.Factor != 3 || got.Spec.Choice != nil || got.Spec.StartsAgain || got.Spec.pace() != "time is slowed down 3 times" {
		t.Errorf("a factor that is given becomes %s: %s", got.Spec.Instrument.Dilation, got.Spec.pace())
	}
}

// A run that is compared with one that was done is slowed down as that was, and its record says why, too.
func TestSlowAs(t *testing.T) {
	var done record.Run
	done.Scenario.Instrument.Dilation.Factor, done.Environment.Dilation = 6, &record.Dilation{Auto: &record.DilationChoice{Limit: 0.4}}
	s := DefaultSpec()
	s.Instrument.Dilation.Auto, s.StartsAgain = true, true
	s.SlowAs(&done)
	if s.Instrument.Dilation != (scenario.Dilation{Factor: 6}) || s.Choice != done.Environment.Dilation.Auto || s.StartsAgain {
		t.Errorf("%s, %+v, starts again %v", s.Instrument.Dilation, s.Choice, s.StartsAgain)
	}
}

// What a control plane needs is known, or no factor is chosen.
func TestCheckAuto(t *testing.T) {
	for name, refused := range map[string]bool{"istiod": false, "osm": false, "linkerd": false, "reference": true} {
		s := DefaultSpec()
		s.ControlPlane.Name, s.Instrument.Dilation.Auto = name, true
		driver, err := s.Driver()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.checkAuto(driver); (err != nil) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where time is slowed down, arrival and probes take as much longer, and phases at rest do not. Settle lasts until istiod is quiet.
func TestExpected(t *testing.T) {
	s := DefaultSpec() // baseline 5 s, settle 5 s, steady 30 s and 6 probes, which take 1.5 s each
	s.Load.Arrival, s.Mesh.Sidecars.StartDelay = scenario.Arrival{Rate: 10}, nil
	s.Instrument.Dilation.Factor = 3
	const start = 22*time.Second + 200*7*time.Millisecond
	if got, want := s.Expected(), start+(5+30+3*(2+21+9))*time.Second; got != want {
		t.Errorf("it takes %s, want %s", got, want)
	}
	s.Mesh.Sidecars.StartDelay = &scenario.Delay{Min: time.Second, Max: 5 * time.Second}
	if got, want := s.Expected(), start+(5+30+3*(2+21+5+9))*time.Second; got != want {
		t.Errorf("with a delay it takes %s, want %s", got, want)
	}
	s.Load.CertificateStorm = true // 200 pods, as many a second as istiod lets in
	s.Load.Faults = []scenario.Fault{
		{Kind: scenario.APIServerGone, Time: 10 * time.Second, Phase: scenario.PhaseSteady}, // 10 s, all pods and a second
		{Kind: scenario.ResetStreams, Share: 0.5, Phase: scenario.PhaseSteady},              // half of the pods and a second
		{Kind: scenario.RollingRestart, Phase: scenario.PhaseSteady},                        // all pods, a second, and the delay
		{Kind: scenario.PauseScaler, Time: 3 * time.Second, Phase: scenario.PhaseRollout},
	}
	pods := time.Duration(200.0 / 32 * float64(time.Second))
	if got, want := s.Expected(), start+(5+30+3*(2+21+5+9+11+1+6+3))*time.Second+3*(3*pods+pods/2); got != want {
		t.Errorf("with faults and a storm it takes %s, want %s", got, want)
	}
	s.Load.Faults, s.Load.CertificateStorm = nil, false
	s.Mesh.Sidecars.StartDelay, s.Mesh.Sidecars.CertificateLifetime = nil, scenario.Duration(time.Hour) // steady is slowed down, too
	if got, want := s.Expected(), start+3*(5+21+5+30+9)*time.Second; got != want {
		t.Errorf("with renewals it takes %s, want %s", got, want)
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

// That a factor of 1 was chosen is recorded, too.
func TestChosenDilation(t *testing.T) {
	choice := &record.DilationChoice{Limit: 0.4}
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

// With a factor that is too small for the machine a rollout lasts as long as the machine needs, unless the cluster is elsewhere.
func TestExpectedOfASmallFactor(t *testing.T) {
	spec := func(factor float64, existing *Existing) Spec {
		s := DefaultSpec()
		s.Mesh.Pods, s.Load.Arrival, s.Instrument.Dilation, s.Existing = scenario.List[int]{10_000}, scenario.Arrival{}, scenario.Dilation{Factor: factor}, existing
		return s
	}
	demand, _ := spec(1, nil).demand()
	machine := time.Duration(demand.On(dilation.Machine{Processors: len(linux.Processors())}) * float64(time.Second))
	arrival := perSecond(10_000, spec(1, nil).readyPerSecond())
	rest := spec(1, new(Existing)).rolloutLength() - arrival
	if got, want := spec(1, nil).rolloutLength(), max(machine, arrival)+rest; got != want {
		t.Errorf("with K = 1 it takes %v, want %v", got, want)
	}
	if got, want := spec(1000, nil).rolloutLength(), arrival+rest; got != want {
		t.Errorf("with K = 1000 it takes %v, want %v", got, want)
	}
}
