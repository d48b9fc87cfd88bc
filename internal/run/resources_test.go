package run

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/pkg/scenario"
)

func TestCheckEnv(t *testing.T) {
	if err := checkEnv("controlPlane.env", []string{"A=b", "_X1=", "PILOT_DEBOUNCE_AFTER=1s", "EMPTY="}); err != nil {
		t.Error(err)
	}
	for _, kv := range []string{"", "A", "=b", "1A=b", "A B=c", "GOMAXPROCS=1", "A=\x00"} {
		if checkEnv("controlPlane.env", []string{"OK=1", kv}) == nil {
			t.Errorf("%q: want an error", kv)
		}
	}
}

// The number of processors is that of the scenario, whatever K is and this machine has. Where time cannot be slowed down it is
// that of this machine, which is a warning unless it was asked for, and another one is refused.
func TestProcessors(t *testing.T) {
	here := len(linux.Processors())
	for name, c := range map[string]struct {
		change  func(*Spec)
		want    int
		warning string // its detail
		refuse  string
	}{
		"stock":            {func(*Spec) {}, 8, "", ""},
		"slowed down":      {func(s *Spec) { s.Instrument.Dilation.Factor = 16 }, 8, "", ""},
		"not slowed down":  {func(s *Spec) { s.Instrument.Dilation.Factor = 1 }, 8, "", ""},
		"several replicas": {func(s *Spec) { s.ControlPlane.Replicas = 3 }, 8, "", ""},
		"asked for":        {func(s *Spec) { s.ControlPlane.Processors = 1000 }, 1000, "", ""},
		"osm":              {func(s *Spec) { s.ControlPlane.Name, s.Mesh.Mode = "osm", []string{"strict"} }, 8, "", ""},
		"workers":          {func(s *Spec) { s.Instrument.Workers = 2 }, here, "instrument.workers 2", ""},
		"real sidecars":    {func(s *Spec) { s.Mesh.Sidecars.Real = 1 }, here, "mesh.sidecars.real", ""},
		"this machine's":   {func(s *Spec) { s.ControlPlane.Processors, s.Mesh.Sidecars.Real = here, 1 }, here, "", ""},
		"another machine's": {func(s *Spec) { s.ControlPlane.Processors, s.Mesh.Sidecars.Real = here+1, 1 }, here + 1, "",
			fmt.Sprintf(`controlPlane.processors: got %d, want %d, which this machine has: time is not slowed down with mesh.sidecars.real`, here+1, here)},
		"existing cluster": {func(s *Spec) { s.Existing = &Existing{} }, 0, "place.context", ""},
		"external server":  {func(s *Spec) { s.ControlPlane.Name = "xds://127.0.0.1:18000" }, 0, "controlPlane.name xds://127.0.0.1:18000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := DefaultSpec()
			c.change(&s)
			driver, err := s.Driver()
			if err != nil {
				t.Fatal(err)
			}
			if got := s.processors(); got != c.want {
				t.Errorf("there are %d processors, want %d", got, c.want)
			}
			if got := newRecord(s).Scenario.ControlPlane.Processors; got != c.want {
				t.Errorf("the record's scenario has %d processors, want %d", got, c.want)
			}
			if warning := s.machineProcessors(driver); (warning != nil) != (c.warning != "" && here != scenario.DefaultProcessors) || warning != nil && warning.Detail != c.warning {
				t.Errorf("the warning is %+v, want one of %q", warning, c.warning)
			}
			if err := s.checkResources(driver); fmt.Sprint(err) != cmp.Or(c.refuse, "<nil>") {
				t.Errorf("error %v, want %q", err, c.refuse)
			}
		})
	}
}

// A replica is held to its processors where this machine, slowed down, has more of them.
func TestQuota(t *testing.T) {
	here := float64(len(linux.Processors()))
	s := DefaultSpec()
	for _, c := range []struct {
		processors int
		k, speed   float64
		want       controlplane.Quota
	}{
		{1, 4, 0.5, controlplane.Quota{Processors: 0.5, Period: 40 * time.Millisecond}},
		{1, 4, 0, controlplane.Quota{Processors: 0.25, Period: 40 * time.Millisecond}},
		{8, 64, 1, controlplane.Quota{Processors: 0.125, Period: 640 * time.Millisecond}},
		{1000, 1, 1, controlplane.Quota{}},
	} {
		s.ControlPlane.Processors, s.Instrument.Dilation.Factor = c.processors, c.k
		if got := s.quota(c.speed); got != c.want {
			t.Errorf("%d processors at K = %g on %g of speed %g: %+v, want %+v", c.processors, c.k, here, c.speed, got, c.want)
		}
	}
	s.ControlPlane.Processors, s.Instrument.Dilation.Factor = int(here), 1
	if got := s.quota(1); got != (controlplane.Quota{}) {
		t.Errorf("as many as there are: %+v", got)
	}
	real := s
	real.Mesh.Sidecars.Real, real.Mesh.Pods = 1, scenario.List[int]{10}
	if got := real.quota(1.45); got != (controlplane.Quota{}) {
		t.Errorf("in real time on fast processors: %+v", got)
	}
	for _, c := range []struct {
		n        int
		k, quota float64
		want     float64
	}{{8, 8, 1.6, 12.8}, {1, 1, 1.6, 1}, {1, 8, 0, 8}, {1000, 1, 0, 0}} {
		s.ControlPlane.Processors, s.Instrument.Dilation.Factor = c.n, c.k
		if got := s.usable(controlplane.Quota{Processors: c.quota}); got != c.want {
			t.Errorf("%d processors at K = %g with a quota of %g: %g can be used, want %g", c.n, c.k, c.quota, got, c.want)
		}
	}
	s.Existing = &Existing{}
	if got := s.quota(1); got != (controlplane.Quota{}) {
		t.Errorf("in an existing cluster: %+v", got)
	}
}
