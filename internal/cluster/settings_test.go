package cluster

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/test/golden"
)

func settings(t *testing.T) []Setting {
	t.Helper()
	all, err := layout{controllers: controllers}.settings(kwok.Stages())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSettingsAreExplained(t *testing.T) {
	of := map[string]int{}
	for _, s := range settings(t) {
		of[s.Component]++
		if s.Name == "" || s.Value == "" || s.Stock == "" || s.Reason == "" || s.Effect == "" {
			t.Errorf("%s: %s=%q: want its stock value, reason and effect: %+v", s.Component, s.Name, s.Value, s)
		}
		if s.Value == s.Stock {
			t.Errorf("%s: %s=%s is stock", s.Component, s.Name, s.Value)
		}
	}
	for _, c := range (layout{}).components(Programs{}) {
		if of[c.name] == 0 || Note(c.name) == "" {
			t.Errorf("%s: %d settings, note %q; want some of both", c.name, of[c.name], Note(c.name))
		}
	}
	if _, err := (layout{}).settings([]byte("options: [")); err == nil {
		t.Error("a broken configuration of kwok: want an error")
	}
}

// A program gets exactly its arguments, those that differ from stock among them.
func TestCommandLine(t *testing.T) {
	l := layout{dir: "/d", ports: ports{etcd: 1, kwok: 2}}
	got := strings.Join(commandLine(l.etcdArgs()), " ")
	if !strings.HasPrefix(got, "--name=default --data-dir=/d/etcd ") || !strings.Contains(got, " --unsafe-no-fsync=true --quota-backend-bytes=8589934592") {
		t.Errorf("etcd gets %s", got)
	}
	if got, want := strings.Join(commandLine(l.kwokArgs()), " "), "--kubeconfig=/d/kubeconfig --config=/d/kwok.yaml --server-address=127.0.0.1:2"; got != want {
		t.Errorf("kwok gets %s, want %s", got, want)
	}
}

// docs/reference/embedded-cluster.md is written from the settings by -update.
func TestSettingsDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# The embedded cluster

<!-- Written by "go test ./internal/cluster -run SettingsDocument -update" from internal/cluster. -->

An embedded cluster is a real etcd, API server, controller-manager and scheduler, one process each on
this machine, with KWOK in place of kubelets. There is no container runtime, no network plugin, no
kube-proxy and no DNS. All figures of a run depend on how these programs are set. This page lists each
setting that differs from the stock one, which is the program's default or what kubeadm sets. A run
records the settings with their values in ` + "`environment.cluster`" + ` of its [record](record-schema.md).
`)
	component := ""
	for _, s := range settings(t) {
		if s.Component != component {
			component = s.Component
			fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| setting | value | stock | reason | effect on the figures |\n| --- | --- | --- | --- | --- |\n", s.Component, strings.ToUpper(Note(component)[:1])+Note(component)[1:])
		}
		value := "`" + s.Value + "`"
		if strings.Contains(s.Value, ",") {
			value = "`" + strings.ReplaceAll(s.Value, ",", "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", s.Name, value, s.Stock, s.Reason, s.Effect)
	}
	golden.Compare(t, filepath.Join("..", "..", "docs", "reference", "embedded-cluster.md"), b.String())
}
