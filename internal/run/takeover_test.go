package run

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// installedMesh is smallMesh with a control plane: field is YAML of its revision.
func installedMesh(t *testing.T, field string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mesh.yaml")
	text := strings.Replace(smallMesh, "kind: Mesh\n", "kind: Mesh\ncontrolPlane: {revisions: [{name: default, namespace: istio-system, "+field+"}]}\n", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The captured control plane decides what is not stated, and what a run does not have of it is recorded.
func TestCapturedControlPlane(t *testing.T) {
	const whole = `version: 1.29.1, replicas: 3, limits: {cpu: 1500m, memory: 2Gi}, env: [{name: PILOT_PUSH_THROTTLE, value: "50"}, {name: PILOT_DEBOUNCE_AFTER, value: 250ms}], meshConfig: {rootNamespace: istio-system}`
	for _, test := range []struct {
		name, revision string
		set            map[string]string
		want           scenario.ControlPlane
		not            string // what is not reproduced
		other          string // version, of a warning
	}{
		{
			"as it was", whole, nil,
			scenario.ControlPlane{Version: "1.29.1", Replicas: 3, Processors: 2, Memory: 2 << 30, Env: []string{"PILOT_PUSH_THROTTLE=50", "PILOT_DEBOUNCE_AFTER=250ms"}, Configuration: "captured"},
			"limits.cpu", "",
		},
		{
			"with what is stated", whole, map[string]string{"controlPlane.version": "1.31", "controlPlane.replicas": "1", "controlPlane.env": "PILOT_PUSH_THROTTLE=9", "controlPlane.memory": "1Gi"},
			scenario.ControlPlane{Version: "1.31", Replicas: 1, Processors: 2, Memory: 1 << 30, Env: []string{"PILOT_DEBOUNCE_AFTER=250ms", "PILOT_PUSH_THROTTLE=9"}, Configuration: "captured"},
			"version replicas limits.cpu limits.memory setting PILOT_PUSH_THROTTLE", "1.31.0",
		},
		{
			"an upgrade", whole, map[string]string{"controlPlane.upgrade.to": "1.31.0", "controlPlane.upgrade.canary": "100%"},
			scenario.ControlPlane{Version: "1.29.1", Replicas: 1, Processors: 2, Memory: 2 << 30, Env: []string{"PILOT_PUSH_THROTTLE=50", "PILOT_DEBOUNCE_AFTER=250ms"}, Configuration: "captured"},
			"replicas limits.cpu", "",
		},
		{"a stock one", whole, map[string]string{"controlPlane.configuration": "stock"}, scenario.ControlPlane{Replicas: 1, Configuration: "stock"}, "", ""},
		{"a version of the line", `version: 1.29.4, replicas: 1, limits: {cpu: "2"}`, nil, scenario.ControlPlane{Version: "1.29.4", Replicas: 1, Processors: 2, Configuration: "captured"}, "", ""},
		{"an older line", `version: 1.25.0, replicas: 1, limits: {cpu: "2"}`, nil, scenario.ControlPlane{Version: "1.25.0", Replicas: 1, Processors: 2, Configuration: "captured"}, "", ""},
		{"a newer line", `version: 1.29.1, reported: 1.33.1, replicas: 1, limits: {cpu: "2"}`, nil, scenario.ControlPlane{Version: "1.33.1", Replicas: 1, Processors: 2, Configuration: "captured"}, "", ""},
		{"no version that is released", `version: 1.29-alpha.6991a379, replicas: 1, limits: {cpu: "2"}`, nil, scenario.ControlPlane{Version: "1.29.1", Replicas: 1, Processors: 2, Configuration: "captured"}, "version", "1.29.1"},
		{"of a node", `version: 1.31.0, replicas: 1, nodeProcessors: 3920m`, nil, scenario.ControlPlane{Version: "1.31.0", Replicas: 1, Processors: 4, Configuration: "captured"}, "", ""},
		{"little known", `replicas: 40`, nil, scenario.ControlPlane{Replicas: 16, Configuration: "captured"}, "version replicas processors", ""},
		{
			"without slowing down", `version: 1.31.0, replicas: 1, limits: {cpu: "64", memory: 1Mi}`, map[string]string{"instrument.workers": "2"},
			scenario.ControlPlane{Version: "1.31.0", Replicas: 1, Configuration: "captured"}, "processors limits.memory", "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := scenario.New(scenario.Default())
			paths := []string{"mesh.file"}
			for path := range test.set {
				paths = append(paths, path)
			}
			slices.Sort(paths)
			for _, path := range paths {
				value := test.set[path]
				if path == "mesh.file" {
					value = installedMesh(t, test.revision)
				}
				if err := d.Set(path, value, ""); err != nil {
					t.Fatal(err)
				}
			}
			l, err := NewLadder(Spec{}, d)
			if err != nil {
				t.Fatal(err)
			}
			got := l.Spec.ControlPlane
			got.Name, got.Upgrade = "", scenario.Upgrade{}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error("of the scenario (-want +got):", diff)
			}
			if diff := cmp.Diff(l.Spec.ControlPlane, d.Scenario.ControlPlane); diff != "" {
				t.Error("the document, which is printed, differs:", diff)
			}
			var not []string
			for _, n := range newRecord(l.Runs()[0]).Mesh.NotReproduced {
				not = append(not, n.What)
			}
			if got := strings.Join(not, " "); got != test.not {
				t.Errorf("not reproduced: %q, want %q", got, test.not)
			}
			warning := l.Spec.otherVersion()
			if (warning != nil) != (test.other != "") || warning != nil && warning.Component != test.other {
				t.Errorf("warning %+v, want one about %q", warning, test.other)
			}
			if err := l.Validate(); err != nil {
				t.Errorf("it is refused: %v", err)
			}
		})
	}
}

// One revision of several is rolled out as it was, with the sidecars of its own pods.
func TestOneRevision(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mesh.yaml")
	text := strings.Replace(smallMesh, "kind: Mesh\n", `kind: Mesh
controlPlane:
  revisions:
  - {name: canary, namespaces: [shop], pods: 2, version: 1.31.0, replicas: 1, limits: {cpu: "4"}}
  - {name: stable, namespaces: [bank], pods: 3, version: 1.29.1, replicas: 2, limits: {cpu: "2"}}
`, 1) + `---
apiVersion: v1
kind: Namespace
metadata: {name: bank}
---
apiVersion: scaler.mesh/v2
kind: Workload
metadata: {name: ledger, namespace: bank}
spec: {owner: Deployment, proxy: sidecar, replicas: 3}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(revision string) (Ladder, error) {
		d := scenario.New(scenario.Default())
		for path, value := range map[string]string{"mesh.file": file, "mesh.revision": revision} {
			if value != "" {
				if err := d.Set(path, value, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		return NewLadder(Spec{}, d)
	}
	for revision, want := range map[string]string{
		"":       "1.29.1 2 2, 5 pods, 0 of others, not reproduced: revision canary",
		"stable": "1.29.1 2 2, 3 pods, 2 of others, not reproduced:",
		"canary": "1.31.0 1 4, 2 pods, 3 of others, not reproduced:",
	} {
		l, err := of(revision)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Validate(); err != nil {
			t.Errorf("%s is refused: %v", revision, err)
		}
		r, c := newRecord(l.Runs()[0]), l.Spec.ControlPlane
		got := fmt.Sprintf("%s %d %d, %d pods, %d of others, not reproduced:", c.Version, c.Replicas, c.Processors, l.Spec.Pods(), r.Mesh.OtherRevisions)
		for _, n := range r.Mesh.NotReproduced {
			got += " " + n.What
		}
		if got != want || r.Mesh.Outside != 0 {
			t.Errorf("revision %q: got %s, %d outside, want %s", revision, got, r.Mesh.Outside, want)
		}
		again := l.Spec
		if err := again.Replay(r.Mesh.Digest, 1); err != nil || again.Pods() != l.Spec.Pods() {
			t.Errorf("revision %q is replayed from its record with %d pods: %v", revision, again.Pods(), err)
		}
	}
	if _, err := of("none"); err == nil || err.Error() != `mesh.revision: got "none", want one of the revisions of the mesh: canary, stable` {
		t.Errorf("a revision that is not there: %v", err)
	}
}

// A configuration that there is not is refused with its field.
func TestCapturedConfigurationRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mesh.yaml")
	if err := os.WriteFile(file, []byte(smallMesh), 0o600); err != nil {
		t.Fatal(err)
	}
	d := scenario.New(scenario.Default())
	for path, value := range map[string]string{"mesh.file": file, "controlPlane.configuration": "captured"} {
		if err := d.Set(path, value, ""); err != nil {
			t.Fatal(err)
		}
	}
	want := `controlPlane.configuration: got "captured", want stock with mesh.file ` + file + ", which has no control plane"
	if _, err := New(Spec{}, d); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Where the images of a version cannot be had, the nearest that is built runs, and the record says so.
func TestReplacedVersions(t *testing.T) {
	const captured = `version: 1.29.4, replicas: 1, limits: {cpu: "2"}`
	for _, test := range []struct {
		name string
		set  map[string]string
		want []record.Warning
		not  string // what is not reproduced
	}{
		{"one that is built", map[string]string{"controlPlane.version": "1.29"}, nil, ""},
		{"another", map[string]string{"controlPlane.version": "1.30.2"}, []record.Warning{{About: record.AboutVersion, Reason: record.ReasonReplacedVersion, Component: "1.30-20260826", Detail: "1.30.2"}}, ""},
		{"of an upgrade", map[string]string{"controlPlane.version": "1.29.1", "controlPlane.upgrade.to": "1.31.9"}, []record.Warning{{About: record.AboutNextVersion, Reason: record.ReasonReplacedVersion, Component: "1.31.0", Detail: "1.31.9"}}, ""},
		{"the captured one", map[string]string{"mesh.file": installedMesh(t, captured)}, []record.Warning{{About: record.AboutVersion, Reason: record.ReasonReplacedVersion, Component: "1.29.1", Detail: "1.29.4"}}, "version"},
		{
			"another than the captured one", map[string]string{"mesh.file": installedMesh(t, captured), "controlPlane.version": "1.30.2"}, []record.Warning{
				{About: record.AboutVersion, Reason: record.ReasonOtherVersion, Component: "1.30-20260826", Detail: "1.29.4"},
				{About: record.AboutVersion, Reason: record.ReasonReplacedVersion, Component: "1.30-20260826", Detail: "1.30.2"},
			}, "version",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, said := ladderWith(t, test.set), ""
			driver, err := l.Spec.Driver()
			if err != nil {
				t.Fatal(err)
			}
			spec, err := l.Spec.settleVersions(t.Context(), driver, func(line string) { said += line + "\n" })
			if err != nil {
				t.Fatal(err)
			}
			var got []record.Warning
			if other := spec.otherVersion(); other != nil {
				got = append(got, *other)
			}
			got = append(got, spec.replacedVersions()...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error("(-want +got):", diff)
			}
			for _, w := range test.want {
				if line := "Istio " + w.Component + ", the nearest version that scaler builds, runs in place of " + w.Detail; w.Reason == record.ReasonReplacedVersion && strings.Count(said, line) != 1 {
					t.Errorf("progress %q, want %q once", said, line)
				}
			}
			if len(test.want) == 0 && said != "" {
				t.Errorf("progress %q, want none", said)
			}
			if m := newRecord(spec).Mesh; m != nil {
				var not []string
				for _, n := range m.NotReproduced {
					not = append(not, n.What)
				}
				if got := strings.Join(not, " "); got != test.not {
					t.Errorf("not reproduced: %q, want %q", got, test.not)
				}
			}
			if again, err := spec.settleVersions(t.Context(), driver, func(line string) { t.Error("said again: " + line) }); err != nil || again.version() != spec.version() || again.NextVersion != spec.NextVersion {
				t.Errorf("settled again: %s, %s, %v", again.version(), again.NextVersion, err)
			}
		})
	}
	both := ladderWith(t, map[string]string{"controlPlane.version": "1.29.1", "controlPlane.upgrade.to": "1.29.4"})
	if err := both.Spec.CheckVersions(t.Context(), func(string) {}); err == nil || !strings.HasPrefix(err.Error(), `controlPlane.upgrade.to: got "1.29.4", want a version whose programs can be had: 1.29.1 would run in place of it`) {
		t.Errorf("an upgrade to the version that it begins with: %v", err)
	}
}

// ladderWith makes a ladder of a scenario with these fields.
func ladderWith(t *testing.T, set map[string]string) Ladder {
	t.Helper()
	d := scenario.New(scenario.Default())
	for _, path := range slices.Sorted(maps.Keys(set)) {
		if err := d.Set(path, set[path], ""); err != nil {
			t.Fatal(err)
		}
	}
	l, err := NewLadder(Spec{}, d)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The version that an upgrade leads to is the one that is asked for, also where scaler cannot build it, and the one that runs
// in its place once that is known.
func TestNextVersion(t *testing.T) {
	for _, c := range []struct{ to, next, want string }{
		{"1.31.0", "", "1.31.0"}, {"1.31", "", "1.31.0"}, {"1.30.2", "", "1.30.2"}, {"1.30.2", "1.29.1", "1.29.1"},
	} {
		s := DefaultSpec()
		s.ControlPlane.Upgrade.To, s.NextVersion = c.to, c.next
		if got := s.nextVersion(); got != c.want {
			t.Errorf("to %s, in its place %q: got %s, want %s", c.to, c.next, got, c.want)
		}
	}
}
