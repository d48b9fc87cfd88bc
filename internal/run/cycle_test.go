package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/scenario"
)

func TestPlanCycle(t *testing.T) {
	var pods []string
	for i := range 480 {
		pods = append(pods, fmt.Sprint("pod-", i))
	}
	for name, c := range map[string]struct {
		renewal  time.Duration
		renewals int
	}{
		"certificates of 24 h": {12 * time.Hour, 20},
		"of 2 h":               {time.Hour, 240},
		"none":                 {0, 0},
		"renewed in steady":    {20 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			turns, renewals := planCycle(pods, time.Minute, 30*time.Minute, c.renewal, 1)
			if renewals != c.renewals || len(turns) != len(pods)+c.renewals {
				t.Fatalf("%d renewals in %d turns, want %d in %d", renewals, len(turns), c.renewals, len(pods)+c.renewals)
			}
			reconnects, renewed, late := map[string]int{}, map[string]int{}, 0
			for _, one := range turns {
				if one.at < 0 || one.at >= time.Minute {
					t.Errorf("a turn at %s of a minute", one.at)
				}
				if one.at > 30*time.Second {
					late++
				}
				if one.action == worker.Renew {
					renewed[one.pod]++
				} else {
					reconnects[one.pod]++
				}
			}
			if len(reconnects) != len(pods) || len(renewed) != c.renewals {
				t.Errorf("%d pods reconnect and %d renew, want %d and %d, each once", len(reconnects), len(renewed), len(pods), c.renewals)
			}
			if !slices.IsSortedFunc(turns, func(a, b turn) int { return int(a.at - b.at) }) {
				t.Error("the turns are not in the order of time")
			}
			if late < len(turns)/3 || late > 2*len(turns)/3 {
				t.Errorf("%d of %d turns in the second half, want them spread", late, len(turns))
			}
		})
	}
}

func TestCheckCycle(t *testing.T) {
	ages := controlplane.Driver{Name: "ages", Dataplane: controlplane.Dataplane{Proxy: controlplane.Proxy{ConnectionAge: 30 * time.Minute}}}
	for name, c := range map[string]struct {
		cycle  time.Duration
		driver controlplane.Driver
		want   string // "" = no error
	}{
		"none":         {0, controlplane.Driver{}, ""},
		"a minute":     {time.Minute, ages, ""},
		"as it is":     {30 * time.Minute, ages, ""},
		"too short":    {time.Second, ages, "phases.cycle: got 1s, want from 10s to 30m0s"},
		"negative":     {-time.Minute, ages, "phases.cycle: got -1m0s, want from 10s"},
		"too long":     {time.Hour, ages, "phases.cycle: got 1h0m0s, want from 10s to 30m0s"},
		"no age known": {time.Minute, controlplane.Driver{}, "want none with controlPlane.name"},
	} {
		t.Run(name, func(t *testing.T) {
			var s Spec
			s.Phases.Cycle = scenario.Duration(c.cycle)
			err := s.checkCycle(c.driver)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
