package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// side writes the record of one side of a diff, whose only sidecar holds a cluster.
func side(t *testing.T, dir, version string, cluster *clusterv3.Cluster, warnings ...record.Warning) {
	t.Helper()
	w, err := record.Create(dir, "run")
	if err != nil {
		t.Fatal(err)
	}
	run := &record.Run{Status: record.StatusCompleted, Scenario: scenario.Default(), Warnings: warnings}
	run.Environment.ControlPlane = record.ControlPlaneSource{Name: "istiod", Version: version}
	run.Scenario.ControlPlane.Env = []string{"OF=" + version}
	run.Scenario.Instrument.Dilation.Factor = float64(len(warnings) + 1) // settings of the instrument are no difference between sides
	if err := w.Save(run); err != nil {
		t.Fatal(err)
	}
	if cluster != nil {
		message, err := proto.Marshal(cluster)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Configuration(&record.Configuration{
			Resources: []record.HeldResource{{Type: "CDS", Name: cluster.Name, Message: message}},
			Sidecars:  []record.HeldBy{{Namespace: "shop", Workload: "cart", Pod: "cart-1", Resources: []int{0}}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// The records of a diff are compared again without anything being run.
func TestDiffAgain(t *testing.T) {
	changed, same, unkept := t.TempDir(), t.TempDir(), t.TempDir()
	for dir, clusters := range map[string][2]*clusterv3.Cluster{
		changed: {{Name: "c"}, {Name: "c", AltStatName: "stat-d"}},
		same:    {{Name: "c"}, {Name: "c"}},
		unkept:  {{Name: "c"}, nil},
	} {
		side(t, filepath.Join(dir, diffFrom), "1.29.1", clusters[0])
		side(t, filepath.Join(dir, diffTo), "1.31.0", clusters[1], record.Warning{Reason: record.ReasonNotQuiet, About: "controlPlane.steady"})
	}
	state := t.TempDir()
	t.Setenv("SCALER_STATE_DIR", state)
	rejecting, other := filepath.Join(t.TempDir(), "envoy"), filepath.Join(t.TempDir(), "ls")
	if err := errors.Join(
		os.WriteFile(rejecting, []byte("#!/bin/sh\n[ \"$1\" = --version ] && exec echo envoy  version: 9e5580933739775e8bce696a57a2e1bc99368f23/1.36.4/Clean/RELEASE/BoringSSL\ncase $4 in \"$SCALER_STATE_DIR\"/*) ;; *) exit 3;; esac\ngrep -q stat-d \"$4\" && echo \"loading '$4': no such field\" && exit 1\nexit 0\n"), 0o700),
		os.WriteFile(other, []byte("#!/bin/sh\n[ \"$1\" = --version ] && exec echo ls 9.1\nexit 2\n"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		exit int
		want []string // on stdout when exit is 0 or 3, else on stderr
	}{
		{[]string{changed}, exitDone, []string{
			"istiod 1.29.1, controlPlane.env OF=1.29.1 to istiod 1.31.0, controlPlane.env OF=1.31.0: 1 of 1 sidecars change", `alt_stat_name added: "stat-d"`, "had not come to rest",
		}},
		{[]string{changed, "--fail-on", "listener-drain,removed"}, exitDone, []string{"1 of 1 sidecars change"}},
		{[]string{changed, "--fail-on", "cluster-warm"}, exitMissed, []string{"1 of 1 sidecars change"}},
		{[]string{changed, "-o", "json"}, exitDone, []string{`"effect": "cluster-warm"`}},
		{[]string{same, "--fail-on", "cluster-warm"}, exitDone, []string{"no difference. Compared: 1 sidecar with 1 resource."}},
		{[]string{changed, "--validate-with", rejecting, "--fail-on", "rejected"}, exitMissed, []string{
			"Envoy 1.36.4 validated 2 resources of both sides whole, 0 without Istio's own filters, 0 not at all, and rejects 1, of which 1 is of the second side",
			"CDS c (held by 0 of the first side, 1 of the second): no such field",
		}},
		{[]string{same, "--validate-with", rejecting, "--fail-on", "rejected"}, exitDone, []string{"and accepts all of them"}},
		{[]string{same, "--validate-with", other}, exitUsage, []string{"--validate-with: got", "want an Envoy or one of 1.40.0, ", ": running " + other}},
		{[]string{same, "--validate-with", other + "s"}, exitUsage, []string{"want an Envoy or one of 1.40.0, ", ": it is not there"}},
		{[]string{same, "--fail-on", "rejected"}, exitUsage, []string{"--fail-on: got \"rejected\", want it with --validate-with, the Envoy"}},
		{[]string{unkept}, exitUsage, []string{"configuration.json.gz: no such file"}},
		{[]string{filepath.Join(changed, diffFrom)}, exitUsage, []string{"no such file"}},
		{[]string{changed, "-o", "html"}, exitDone, []string{"<!DOCTYPE html>", `id="difference-1"`, "1 of 1 sidecars change"}},
		{[]string{changed, "-o", "xml"}, exitUsage, []string{"want table, wide, json, yaml, markdown or html"}},
	} {
		var stdout, stderr strings.Builder
		err := execute(t.Context(), append([]string{"diff"}, test.args...), strings.NewReader(""), &stdout, &stderr)
		shown := strings.Join(strings.Fields(stdout.String()), " ") // wherever lines end
		if test.exit == exitUsage {
			shown = stderr.String()
		}
		if exitCode(err) != test.exit {
			t.Errorf("%v: exit %d, want %d: %v", test.args, exitCode(err), test.exit, err)
		}
		for _, want := range test.want {
			if !strings.Contains(shown, want) {
				t.Errorf("%v: %s, want %q", test.args, shown, want)
			}
		}
	}
	if left, err := os.ReadDir(filepath.Join(state, "validations")); err != nil || len(left) > 0 {
		t.Errorf("folders of validations are left: %v, %v", left, err)
	}
}

// A variable of the second side takes the place of the one of its name.
func TestDiffEnvironment(t *testing.T) {
	var stdout, stderr strings.Builder
	args := []string{"diff", "--control-plane-env", "A=1", "--control-plane-env", "B=2", "--to-env", "A=3", "--to-env", "C=4", "--print-scenario"}
	if err := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	for i, text := range strings.Split(stdout.String(), "---\n") {
		var side struct {
			ControlPlane struct{ Env []string }
		}
		if err := yaml.Unmarshal([]byte(text), &side); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(side.ControlPlane.Env, " "), []string{"A=1 B=2", "B=2 A=3 C=4"}[i]; got != want {
			t.Errorf("side %d has %s, want %s", i+1, got, want)
		}
	}
}
