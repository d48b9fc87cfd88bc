package record

import (
	"slices"
	"testing"
)

func TestReach(t *testing.T) {
	usage := func(share float64) *Usage { return &Usage{Saturation: &share} }
	run := Run{
		ControlPlane: &ByPhase[*Usage]{Rollout: usage(0.9), Probe: usage(0.05)},
		Cluster: map[string]ByPhase[*Usage]{
			"etcd": {Rollout: usage(0.04)}, "kube-apiserver": {Rollout: usage(0.99), Steady: usage(0.9), Probe: usage(0.3)},
		},
	}
	run.Environment.ControlPlane.Name = "istiod"
	const text = ReasonSaturated
	for _, tt := range []struct {
		about       string
		reason      Reason
		within, not []string
	}{
		{"controlPlane.rollout", text, []string{
			"controlPlane.rollout.cores.peak", "phases.rollout.seconds", "latencies.certificate.p50", "latencies.completeConfiguration.p99",
			"latencies.rolloutPush.route.p50", "cluster.kube-apiserver.rollout.cores.mean", "own.rollout", "certificates.perSecond", "xds.responses.CDS",
		}, []string{
			"controlPlane.steady.cores.mean", "latencies.push.route.p50", "latencies", "phases", "cluster.etcd.rollout.cores.mean",
			"cluster.kube-apiserver.steady.cores.mean", "cluster.kube-apiserver.rollout.memoryBytes.peak", "latencies.connectSomething",
		}},
		{"cluster.kube-apiserver.probe", text, []string{
			"cluster.kube-apiserver.probe.cores.peak", "latencies.push.route.p50", "latencies.propagation.route.last.p50", "latencies.clusterPart.p50",
		}, []string{"controlPlane.probe.cores.peak", "latencies.certificate.p50", "phases.rollout"}},
		{"controlPlane.steady", text, []string{"cluster.kube-apiserver.steady.cores.peak"}, []string{"phases.rollout", "latencies.push"}},
		{"controlPlane.rollout", ReasonAtLimit, []string{"controlPlane.rollout.cores.peak", "phases.rollout.seconds", "latencies.certificate.p50", "own.rollout"}, []string{"phases.steady", "latencies.push"}},
		{"controlPlane.churn", text, []string{"churn.latencies.podReady.p50", "churn.seconds"}, []string{"churn.replaced"}},
		{"faults.0.controlPlane", text, []string{"faults.0.seconds", "faults.0.latencies.reconnect.p50", "faults.0.controlPlane.cores.peak"}, []string{"faults.1.seconds", "faults.0.reconnected"}},
		{"controlPlane.rollout", ReasonRestarted, []string{"controlPlane.rollout.restarts"}, []string{"phases.rollout", "latencies.certificate"}},
		{"latencies", ReasonLateInstrument, []string{"latencies.push"}, []string{"phases.rollout"}},
		{"", text, nil, []string{"", "phases.rollout"}},
	} {
		reach := run.Reach(NewWarning(Warning{About: tt.about, Reason: tt.reason}))
		reached := func(path string) bool {
			return slices.ContainsFunc(reach, func(about string) bool { return Within(path, about) })
		}
		for _, path := range tt.within {
			if !reached(path) {
				t.Errorf("%s: %q does not reach %s", tt.about, tt.reason, path)
			}
		}
		for _, path := range tt.not {
			if reached(path) {
				t.Errorf("%s: %q reaches %s", tt.about, tt.reason, path)
			}
		}
	}
}

func TestReachOfScrapeGap(t *testing.T) {
	var run Run
	run.Environment.ControlPlane.Name = "istiod"
	for component, want := range map[string]string{
		"istiod": "controlPlane.rollout.heapBytes", "kube-apiserver": "cluster.kube-apiserver.rollout.heapBytes",
	} {
		got := run.Reach(Warning{About: "own.rollout", Reason: ReasonScrapeGap, Component: component})
		if !slices.Equal(got, []string{"own.rollout", want}) {
			t.Errorf("%s: %q", component, got)
		}
	}
}

func TestReachOfClosedWatches(t *testing.T) {
	reach := new(Run).Reach(Warning{About: "cluster.kube-apiserver.probe", Reason: ReasonWatchesClosed, Component: "kube-apiserver", Phase: PhaseProbe})
	for path, want := range map[string]bool{
		"latencies.push.route.p50": true, "latencies.propagation.route.last.p50": true, "cluster.kube-apiserver.probe.cpuSeconds": true,
		"latencies.podReady.p50": false, "controlPlane.probe.cores.mean": false,
	} {
		if got := slices.ContainsFunc(reach, func(about string) bool { return Within(path, about) }); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

func TestAtLimit(t *testing.T) {
	for name, test := range map[string]struct {
		gomaxprocs, replicas int
		peak                 *float64
		want                 bool
		processors           float64
	}{
		"below":                   {2, 1, new(1.89), false, 0},
		"near enough":             {2, 1, new(1.9), true, 0},
		"of several replicas":     {1, 3, new(1.9), false, 0},
		"all of several replicas": {1, 3, new(2.9), true, 0},
		"of an unknown limit":     {0, 0, new(64.0), false, 0},
		"nobody looked":           {2, 1, nil, false, 0},
		"below slow ones":         {8, 1, new(9.0), false, 10},
		"near enough, slow ones":  {8, 1, new(9.5), true, 10},
	} {
		t.Run(name, func(t *testing.T) {
			run := Run{ControlPlane: &ByPhase[*Usage]{Rollout: &Usage{Cores: &Level{Peak: test.peak}}}}
			run.Environment.ControlPlane = ControlPlaneSource{GOMAXPROCS: test.gomaxprocs, Replicas: test.replicas, Processors: test.processors}
			if got := run.AtLimit(PhaseRollout); got != test.want {
				t.Errorf("at its limit: %v, want %v", got, test.want)
			}
			if run.AtLimit(PhaseSteady) || run.AtLimit(PhaseSettle) {
				t.Error("so it is in phases without figures")
			}
		})
	}
}
