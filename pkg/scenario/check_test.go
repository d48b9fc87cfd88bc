package scenario_test

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/scenario"
)

// TestCheck checks the bounds and choices of fields, and which commands, places, meshes and
// control planes have them. A field that is not stated is not checked.
func TestCheck(t *testing.T) {
	const (
		server   = "controlPlane.name=xds://localhost:18000"
		cluster  = "place.context=staging"
		captured = "mesh.file=mesh.yaml"
		upgrade  = "controlPlane.upgrade.to=1.31.0"
		started  = "none with controlPlane.name istiod, which scaler starts and connects to itself"
		closed   = "latency.connections=32,64"
	)
	for _, test := range []struct {
		command string
		set     string // PATH=VALUE, with spaces between several; the last one is refused
		want    string // of the error; "" = none
	}{
		{scenario.Rollout, "", ""},

		// Bounds.
		{scenario.Rollout, "repeats=1", ""},
		{scenario.Rollout, "repeats=100", ""},
		{scenario.Rollout, "repeats=0", "got 0, want 1 to 100"},
		{scenario.Rollout, "repeats=-1", "got -1, want 1 to 100"},
		{scenario.Rollout, "repeats=101", "got 101, want 1 to 100"},
		{scenario.Rollout, "mesh.pods=100000", ""},
		{scenario.Rollout, "mesh.pods=0", "got 0, want 1 to 100000"},
		{scenario.Rollout, "mesh.pods=200,1000000000", "got 200,1000000000, want 1 to 100000"},
		{scenario.Rollout, "mesh.fanOut=0", "got 0, want 1 to 100000"},
		{scenario.Rollout, "mesh.dataplane=ambient mesh.podsPerNode=250", ""},
		{scenario.Rollout, "mesh.dataplane=ambient mesh.podsPerNode=0", "got 0, want 1 to 250"},
		{scenario.Rollout, "mesh.dataplane=mixed mesh.podsPerNode=251", "got 251, want 1 to 250"},
		{scenario.Rollout, "mesh.parts.zones=0", ""},
		{scenario.Rollout, "mesh.parts.zones=101", "got 101, want 0 to 100"},
		{scenario.Rollout, "mesh.parts.replicaSkew=3.5", "got 3.5, want 0 to 3"},
		{scenario.Rollout, "mesh.parts.replicaSkew=Inf", "got +Inf, want 0 to 3"},
		{scenario.Rollout, "mesh.parts.outsideChurn=-1", "got -1, want 0 to 100"},
		{scenario.Rollout, "mesh.parts.gracePeriod=5m", ""},
		{scenario.Rollout, "mesh.parts.gracePeriod=5m1s", "got 5m1s, want a duration from 0s to 5m"},
		{scenario.Rollout, "mesh.sidecars.real=0", ""},
		{scenario.Rollout, "mesh.sidecars.real=-1", "got -1, want 0 to 100000"},
		{scenario.Rollout, "mesh.sidecars.certificateLifetime=10s", ""},
		{scenario.Rollout, "mesh.sidecars.certificateLifetime=9s", "got 9s, want a duration from 10s to 87600h"},
		{scenario.Rollout, "mesh.sidecars.certificateLifetime=87601h", "got 87601h, want a duration from 10s to 87600h"},
		{scenario.Rollout, captured + " mesh.scale=101", "got 101, want 1 to 100"},
		{scenario.Rollout, "controlPlane.replicas=17", "got 17, want 1 to 16"},
		{scenario.Rollout, "controlPlane.processors=-1", "got -1, want 1 to 1024"},
		{scenario.Rollout, "controlPlane.memory=64Mi", ""},
		{scenario.Rollout, "controlPlane.memory=16Ti", ""},
		{scenario.Rollout, "controlPlane.memory=0", `got "0", want from 64Mi to 16Ti`},
		{scenario.Rollout, "controlPlane.memory=512", `got "512", want from 64Mi to 16Ti`},
		{scenario.Rollout, "controlPlane.memory=63Mi", `got "63Mi", want from 64Mi to 16Ti`},
		{scenario.Rollout, "controlPlane.memory=17Ti", `got "17Ti", want from 64Mi to 16Ti`},
		{scenario.Rollout, "load.probes=0", ""},
		{scenario.Rollout, "load.probes=-1", "got -1, want 0 to 100000"},
		{scenario.Rollout, "load.probes=100001", "got 100001, want 0 to 100000"},
		{scenario.Rollout, "phases.baseline=0s", "got 0s, want a duration from 1s to 24h"},
		{scenario.Rollout, "phases.settle=0s", ""},
		{scenario.Rollout, "phases.settle=25h", "got 25h, want a duration from 0s to 24h"},
		{scenario.Rollout, "phases.steady=500ms", "got 500ms, want a duration from 1s to 24h"},
		{scenario.Rollout, "phases.convergeTimeout=24h1s", "got 24h0m1s, want a duration from 1s to 24h"},
		{scenario.Rollout, "load.changes=5/s phases.changes=0s", "got 0s, want a duration from 1s to 24h"},
		{scenario.Rollout, "load.changes=5/s phases.changes=500ms", "got 500ms, want a duration from 1s to 24h"},
		{scenario.Rollout, "load.changes=5/s phases.changes=25h", "got 25h, want a duration from 1s to 24h"},
		{scenario.Rollout, "phases.cycle=9s", "got 9s, want a duration from 10s to 24h"},
		{scenario.Rollout, "phases.cycle=0s", ""},
		{scenario.Rollout, "mesh.sidecars.certificateLifetime=0s", ""},
		{scenario.Rollout, "instrument.workers=0", "got 0, want 1 to 64"},
		{scenario.Rollout, "instrument.workers=65", "got 65, want 1 to 64"},

		// Choices.
		{scenario.Rollout, "mesh.topology=ring", `got "ring", want star, layers or random`},
		{scenario.Rollout, "mesh.topology=", `got "", want star, layers or random`},
		{scenario.Rollout, "mesh.settings.mtls=maybe", `got "maybe", want permissive or strict`},
		{scenario.Rollout, "mesh.settings.scope=maybe", `got "maybe", want all or declared`},
		{scenario.Rollout, "mesh.settings.authz=maybe", `got "maybe", want none or declared`},
		{scenario.Rollout, "mesh.profile=large", `got "large", want plain or typical`},
		{scenario.Rollout, "mesh.sidecars.xds=grpc", `got "grpc", want delta or sotw`},
		{scenario.Rollout, "mesh.dataplane=ambient mesh.waypoints=all", `got "all", want none, namespace, service or captured`},

		// Places, meshes and control planes.
		{scenario.Rollout, "place.revision=a", `got "a", want it with place.context`},
		{scenario.Rollout, cluster + " place.revision=a", ""},
		{scenario.Rollout, "place.refuseIf=", `got "", want it with place.context`},
		{scenario.Rollout, "mesh.sidecars.image=x", `got "x", want it with place.context`},
		{scenario.Rollout, "controlPlane.connection.plaintext=true", "got true, want " + started},
		{scenario.Rollout, "controlPlane.connection.tlsCA=x", `got "x", want ` + started},
		{scenario.Rollout, server + " controlPlane.connection.plaintext=true", ""},
		{scenario.Rollout, captured + " mesh.pods=20", "got 20, want none with mesh.file, which states it"},
		{scenario.Rollout, captured + " mesh.mode=strict", `got "strict", want none with mesh.file, which states it`},
		{scenario.Rollout, captured + " mesh.parts.zones=3", "got 3, want none with mesh.file, which states it"},
		{scenario.Rollout, captured + " mesh.scale=2", ""},
		{scenario.Rollout, "mesh.scale=2", "got 2, want it with mesh.file"},
		{scenario.Rollout, "mesh.podsPerNode=20", "got 20, want it with mesh.dataplane ambient or mixed"},
		{scenario.Rollout, "mesh.waypoints=service", `got "service", want it with mesh.dataplane ambient or mixed`},
		{scenario.Rollout, "mesh.dataplane=sidecar,ambient mesh.podsPerNode=20", ""},
		{scenario.Rollout, "phases.changes=10s", "got 10s, want it with load.changes"},
		{scenario.Upgrades, "controlPlane.upgrade.rate=5/s", `got "5/s", want it with controlPlane.upgrade.to`},
		{scenario.Upgrades, upgrade + " controlPlane.upgrade.rate=5/s", ""},
		{scenario.Upgrades, upgrade + " controlPlane.upgrade.rollbackAt=1001", "got 1001, want 0 to 1000"},
		{scenario.Upgrades, upgrade + " controlPlane.upgrade.pause=0s", "got 0s, want a duration from 1s to 1h"},

		// Commands.
		{scenario.Rollout, upgrade, `got "1.31.0", want none with 'scaler rollout'`},
		{scenario.Bench, upgrade, `got "1.31.0", want none with 'scaler bench'`},
		{scenario.Bench, "controlPlane.version=1.30", `got "1.30", want none with 'scaler bench'`},
		{scenario.Bench, cluster, `got "staging", want none with 'scaler bench'`},
		{scenario.Tune, cluster, `got "staging", want none with 'scaler tune'`},
		{scenario.Tune, "repeats=4", ""},
		{scenario.Limits, "repeats=4", "got 4, want none with 'scaler limits'"},
		{scenario.Limits, "instrument.calibrate=true", "got true, want none with 'scaler limits'"},
		{scenario.Upgrades, "repeats=4", "got 4, want none with 'scaler upgrade'"},
		{scenario.Upgrades, "controlPlane.name=osm", `got "osm", want none with 'scaler upgrade'`},
		{scenario.Upgrades, captured, ""},
		{scenario.Upgrades, "load.changes=5/s", `got "5/s:endpoint", want none with 'scaler upgrade'`},
		{scenario.Upgrades, "load.churn=5/s", `got "5/s", want none with 'scaler upgrade'`},
		{scenario.Upgrades, "load.faults=kill-control-plane@steady", `got "kill-control-plane@steady", want none with 'scaler upgrade'`},
		{scenario.Upgrades, "load.certificateStorm=true", "got true, want none with 'scaler upgrade'"},
		{scenario.Upgrades, "phases.cycle=1m", "got 1m, want none with 'scaler upgrade'"},
		{scenario.Upgrades, "mesh.sidecars.real=1", "got 1, want none with 'scaler upgrade'"},
		{scenario.Upgrades, "mesh.sidecars.version=1.29.1", `got "1.29.1", want none with 'scaler upgrade'`},

		// Latency has its own part, and no other command has it.
		{scenario.Latency, "", ""},
		{scenario.Latency, "repeats=101", "got 101, want 1 to 100"},
		{scenario.Latency, "controlPlane.name=linkerd", ""},
		{scenario.Latency, "controlPlane.replicas=2", "got 2, want none with 'scaler latency'"},
		{scenario.Latency, "mesh.pods=20", "got 20, want none with 'scaler latency'"},
		{scenario.Latency, "mesh.topology=star", `got "star", want none with 'scaler latency'`},
		{scenario.Latency, "instrument.workers=2", "got 2, want none with 'scaler latency'"},
		{scenario.Latency, cluster + " place.revision=a", ""},
		{scenario.Latency, cluster + " place.address=h:1", `got "h:1", want none with 'scaler latency'`},
		{scenario.Latency, cluster + " place.abortIf=pending-pods>1", `got "pending-pods>1", want none with 'scaler latency'`},
		{scenario.Latency, "latency.image=x", `got "x", want it with place.context`},
		{scenario.Latency, "latency.placement=one-node", `got "one-node", want it with place.context`},
		{scenario.Latency, cluster + " latency.placement=moon", `got "moon", want one-node or two-nodes`},
		{scenario.Latency, cluster + " latency.nodes=a,b", ""},
		{scenario.Latency, "latency.rps=0.5", "got 0.5, want 1 to 1000000"},
		{scenario.Latency, "latency.rps=100,Inf", "got 100,+Inf, want 1 to 1000000"},
		{scenario.Latency, "latency.connections=0", "got 0, want 1 to 20000"},
		{scenario.Latency, "latency.requests=10", "got 10, want it with latency.connections"},
		{scenario.Latency, closed + " latency.requests=10", ""},
		{scenario.Latency, closed + " latency.requests=0", "got 0, want 1 to 100000000"},
		{scenario.Latency, closed + " latency.rps=100", "got 100, want none with latency.connections, a closed loop"},
		{scenario.Latency, closed + " latency.duration=5s", "got 5s, want none with latency.connections, a closed loop"},
		{scenario.Latency, closed + " latency.arrivals=poisson", `got "poisson", want none with latency.connections, a closed loop`},
		{scenario.Latency, closed + " latency.killServerEvery=2s", "got 2s, want none with latency.connections, a closed loop"},
		{scenario.Latency, closed + " latency.maxConnections=2", "got 2, want none with latency.connections, a closed loop"},
		{scenario.Latency, "latency.maxConnections=20001", "got 20001, want 1 to 20000"},
		{scenario.Latency, "latency.arrivals=uniform", `got "uniform", want constant or poisson`},
		{scenario.Latency, "latency.duration=10ms", "got 10ms, want a duration from 1s to 24h"},
		{scenario.Latency, "latency.killServerEvery=0s", ""},
		{scenario.Latency, "latency.killServerEvery=999ms", "got 999ms, want a duration from 1s to 24h"},
		{scenario.Latency, "latency.http=3", "got 3, want 1 or 2"},
		{scenario.Latency, "latency.timeout=0s", "got 0s, want a duration from 1ms to 1h"},
		{scenario.Latency, "latency.rounds=0", "got 0, want 1 to 1000"},
		{scenario.Latency, "latency.warmup=0s", ""},
		{scenario.Latency, "latency.warmup=61m", "got 1h1m, want a duration from 0s to 1h"},
		{scenario.Latency, "latency.topology=ring", `got "ring", want pair, star or chain`},
		{scenario.Latency, "latency.servers=0", "got 0, want 1 to 20"},
		{scenario.Latency, "latency.chain=100ms,2h", "got 100ms,2h, want a duration from 0s to 1h"},
		{scenario.Rollout, "latency.rps=100", "got 100, want none with 'scaler rollout'"},
		{scenario.Tune, "latency.variants=none", `got "none", want none with 'scaler tune'`},
	} {
		d, path := scenario.New(scenario.Default()), ""
		for field := range strings.FieldsSeq(test.set) {
			var value string
			path, value, _ = strings.Cut(field, "=")
			if err := d.Set(path, value, ""); err != nil {
				t.Fatalf("%s: %v", field, err)
			}
		}
		got, want := "", ""
		if err := d.Check(test.command); err != nil {
			got = err.Error()
		}
		if test.want != "" {
			want = path + ": " + test.want
		}
		if got != want {
			t.Errorf("%s, %s: got %q, want %q", test.command, test.set, got, want)
		}
	}
}

// TestCheckField checks the bounds and choices of a field that was not given.
// A preset's values of fields that a captured mesh has no use for give way; those of the user are refused.
func TestPresetGivesWay(t *testing.T) {
	d := scenario.New(scenario.Default())
	if err := d.ReadPreset(scenario.Rollout, "quick"); err != nil {
		t.Fatal(err)
	}
	if err := d.Set("mesh.file", "mesh.yaml", "--mesh"); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(scenario.Rollout); err != nil {
		t.Error(err)
	}
	if d.Given("mesh.pods") || d.Scenario.Mesh.Pods[0] != scenario.Default().Mesh.Pods[0] {
		t.Errorf("mesh.pods is %v, want the default", d.Scenario.Mesh.Pods)
	}
	if !d.Given("phases.steady") || d.Stated("phases.steady") || !d.Stated("mesh.file") {
		t.Error("want phases.steady of the preset and mesh.file of the user")
	}
	if err := d.Set("mesh.pods", "20", "--pods"); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(scenario.Rollout); err == nil {
		t.Error("mesh.pods of the user is accepted")
	}
}

func TestCheckField(t *testing.T) {
	s := scenario.Default()
	for _, p := range scenario.Parameters {
		if text, _ := s.Text(p.Path); text == "" {
			continue // not stated
		}
		if err := s.CheckField(p.Path); err != nil {
			t.Error(err)
		}
	}
	s.ControlPlane.Memory, s.Mesh.Topology = 1<<20, "ring"
	for path, want := range map[string]string{
		"controlPlane.memory": `controlPlane.memory: got "1Mi", want from 64Mi to 16Ti`,
		"mesh.topology":       `mesh.topology: got "ring", want star, layers or random`,
	} {
		if err := s.CheckField(path); err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestRefuse checks that an error shows the value of its field: texts have quotes.
func TestRefuse(t *testing.T) {
	d := read(t, full)
	for path, want := range map[string]string{
		"mesh.settings.scope":   `mesh.settings.scope: got "all", want none`,
		"load.certificateStorm": "load.certificateStorm: got true, want none",
		"controlPlane.memory":   `controlPlane.memory: got "512Mi", want none`,
		"mesh.sidecars.real":    "mesh.sidecars.real: got 2, want none",
		"phases.cycle":          "phases.cycle: got 1m, want none",
		"load.changes":          `load.changes: got "5/s:route", want none`,
	} {
		if err := d.Scenario.Refuse(path, "none"); err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}
