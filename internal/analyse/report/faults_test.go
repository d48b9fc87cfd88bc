package report

import (
	"path/filepath"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/golden"
)

// disturbedRun had faults, changes at a rate and churn, and did not come back from the last fault.
func disturbedRun() record.Run {
	run := fullRun()
	run.Status = record.StatusUnconverged
	run.Arrival.Steps, run.Arrival.StepsLateSeconds = new(2), new(0.042)
	run.Scenario.Mesh.Sidecars.StartDelay, run.Scenario.Load.Churn = &scenario.Delay{Min: time.Second, Max: 5 * time.Second}, 2
	run.Scenario.Load.Faults = []scenario.Fault{
		{Kind: scenario.KillControlPlane, Phase: scenario.PhaseRollout}, {Kind: scenario.RollingRestart, Phase: scenario.PhaseSteady},
		{Kind: scenario.ResetStreams, Share: 0.2, Phase: scenario.PhaseSteady},
	}
	run.Environment.ControlPlane.MemoryLimitBytes, run.Environment.ControlPlane.MemoryLimitEnforced = 512<<20, true
	run.ControlPlane.Churn = run.ControlPlane.Rollout
	run.Certificates.Storm = &record.CertificateStorm{
		Sidecars: 200, Issued: 200, BoundBy: &record.StormBound{Limit: record.StormTokenReviews, PerSecond: 80, AtOnce: 160, Seconds: 0.5},
	}
	usage := *run.ControlPlane.Rollout
	latency := *run.Latencies.CompleteConfiguration
	lossy := record.Latency{Unit: "s", Count: 30, Lost: 10, P50: new(1.5), Max: new(9.5)}
	at := time.Date(2026, 3, 4, 5, 6, 30, 0, time.UTC)
	run.Churn = &record.Churn{
		OfferedPerSecond: new(2.0), AchievedPerSecond: new(1.6), Replaced: new(96), Seconds: new(0.8), Attempts: new(int64(96)), Refusals: new(int64(0)),
		Latencies: record.Latencies{PodReady: &latency, Certificate: &latency, CompleteConfiguration: &latency},
	}
	run.Scenario.Load.Changes, run.Scenario.Phases.Changes = scenario.Changes{PerSecond: 5, Kind: scenario.RouteChange}, scenario.Duration(30*time.Second)
	run.ControlPlane.Change = run.ControlPlane.Rollout
	run.Change = &record.Change{
		Kind: "route", OfferedPerSecond: new(5.0), AchievedPerSecond: new(4.2), Changes: new(126), Missed: new(24),
		Push: &lossy, FromDue: &latency, Last: &lossy, Late: &latency, Write: &latency, Superseded: new(0.25),
		Intervals:          &record.PushIntervals{Changes: 126, Blocks: 30, P50: &record.QuantileInterval{Low: new(1.4), High: new(1.6)}},
		ResponsesPerChange: new(90.0), BytesPerChange: new(814809.6),
	}
	run.Faults = []record.Fault{
		{Name: "kill-control-plane", Phase: record.PhaseRollout, At: at, LastedSeconds: new(1.9), Seconds: new(14.2), Reconnected: new(120),
			Replaced: new(0), Attempts: new(int64(410)), Refusals: new(int64(290)), ControlPlane: &usage, Latencies: record.Latencies{Reconnect: &latency}},
		{Name: "rolling-restart", Phase: record.PhaseSteady, At: at, LastedSeconds: new(0.2), Seconds: new(31.0), Reconnected: new(0), Replaced: new(200)},
		{Name: "reset-streams:20%", Phase: record.PhaseSteady, At: at, LastedSeconds: new(0.001), Reconnected: new(30), Latencies: record.Latencies{Reconnect: &lossy}},
	}
	of := func(usage *record.Usage, streams int) *record.Replica {
		return &record.Replica{
			Usage:   record.ByPhase[*record.Usage]{Rollout: usage, Steady: usage},
			Streams: record.ByPhase[*int]{Rollout: &streams, Steady: &streams}, OwnStreams: record.ByPhase[*float64]{Steady: new(float64(streams))},
		}
	}
	run.Replicas = &record.Replicas{
		Each:    map[string]*record.Replica{"istiod-0": of(&usage, 110), "istiod-1": of(&usage, 90), "istiod-2": {}},
		Balance: record.ByPhase[*record.Balance]{Rollout: &record.Balance{Replicas: 2, Streams: 200, Most: 110, Expected: 105.6, Probability: 0.157}},
	}
	run.Faults[0].Replicas = map[string]*record.FaultReplica{"istiod-0": {Before: 110}, "istiod-1": {Before: 90, After: 200, Serves: true}}
	run.Warnings = []record.Warning{
		{About: "faults.2", Text: "reset-streams:20%: the mesh did not converge again within 10m0s"},
		{About: "faults.0.controlPlane", Text: "restarted 1 times"},
		{About: "change.achievedPerSecond", Text: "4.2 changes a second were written, of 5.0 offered"},
		{About: "churn.achievedPerSecond", Text: "1.6 pods a second were replaced, of 2.0 offered"},
	}
	return run
}

func TestGoldenFaults(t *testing.T) {
	for _, ext := range []string{"txt", "md"} {
		golden.Compare(t, filepath.Join("testdata", "disturbed."+ext), text(t, formats[ext], []record.Run{disturbedRun()}))
	}
}
