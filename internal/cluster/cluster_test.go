package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/internal/process"
)

func TestValidateName(t *testing.T) {
	for name, ok := range map[string]bool{
		"scaler": true, "istiod-strict-200": true, "a": true, strings.Repeat("a", 63): true,
		"": false, "../x": false, "a/b": false, "A": false, "-a": false, "a.b": false, strings.Repeat("a", 64): false,
	} {
		if err := ValidateName(name); (err == nil) != ok {
			t.Errorf("ValidateName(%q) = %v, want ok %v", name, err, ok)
		}
	}
}

func TestUpWithoutAProgramFails(t *testing.T) {
	root := t.TempDir()
	group, err := process.OpenGroup(filepath.Join(root, "one"), process.GroupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Up(context.Background(), Options{Group: group, Programs: Programs{Etcd: "e", APIServer: "a", ControllerManager: "c", Scheduler: "s"}})
	if err == nil || !strings.Contains(err.Error(), "no program given for kwok") {
		t.Errorf("error %v, want one that names kwok", err)
	}
	if entries, _ := os.ReadDir(group.Dir()); len(entries) > 2 {
		t.Errorf("made %v, want the group's state and lock alone", entries)
	}
	if err := group.Remove(context.Background()); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(root); len(entries) > 0 {
		t.Errorf("removing the group left %v", entries)
	}
}

func TestPKI(t *testing.T) {
	files, err := makePKI(filepath.Join(t.TempDir(), "pki"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("the authority is not a certificate")
	}
	for _, test := range []struct {
		cert, key, name string
		usage           x509.ExtKeyUsage
	}{
		{files.ServerCert, files.ServerKey, "127.0.0.1", x509.ExtKeyUsageServerAuth},
		{files.ServerCert, files.ServerKey, "10.0.0.1", x509.ExtKeyUsageServerAuth},
		{files.ServerCert, files.ServerKey, "localhost", x509.ExtKeyUsageServerAuth},
		{files.ServerCert, files.ServerKey, "kubernetes.default.svc", x509.ExtKeyUsageServerAuth},
		{files.AdminCert, files.AdminKey, "", x509.ExtKeyUsageClientAuth},
	} {
		pair, err := tls.LoadX509KeyPair(test.cert, test.key)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: test.name, Roots: roots, KeyUsages: []x509.ExtKeyUsage{test.usage}})
		if err != nil {
			t.Errorf("%s as %q: %v", filepath.Base(test.cert), test.name, err)
		}
		if strings.HasPrefix(filepath.Base(test.cert), "admin") && !slices.Equal(pair.Leaf.Subject.Organization, []string{"system:masters"}) {
			t.Errorf("the admin's groups are %v", pair.Leaf.Subject.Organization)
		}
	}
	for _, file := range []string{files.CAKey, files.ServerKey, files.AdminKey, files.ServiceAccountKey} {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want it for its owner alone", filepath.Base(file), info.Mode(), err)
		}
	}
}

func TestKubeconfigNeedsNoOtherFile(t *testing.T) {
	dir := t.TempDir()
	files, err := makePKI(filepath.Join(dir, "pki"))
	if err != nil {
		t.Fatal(err)
	}
	path := kubeconfigIn(dir)
	if err := writeKubeconfig(path, "one", "https://127.0.0.1:1", files.CA, files.AdminCert, files.AdminKey); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "pki")); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:1" || len(config.CAData) == 0 || len(config.CertData) == 0 || len(config.KeyData) == 0 {
		t.Errorf("incomplete: %v", config)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want it for its owner alone", info.Mode(), err)
	}
}

func TestPortTaken(t *testing.T) {
	exit := &process.ExitError{Name: Etcd, Cause: errors.New("exit status 1"), LogEnd: "listen tcp 127.0.0.1:1: bind: address already in use"}
	if !portTaken(fmt.Errorf("starting: %w", errors.Join(exit, nil))) {
		t.Error("a port that was taken is not seen")
	}
	if portTaken(&process.ExitError{LogEnd: "unknown flag"}) || portTaken(errors.New("address already in use")) || portTaken(nil) {
		t.Error("another error is taken for a port that was taken")
	}
}

func TestListAndStopWithoutClusters(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{root, filepath.Join(root, "absent")} {
		if all, err := List(dir); err != nil || len(all) != 0 {
			t.Errorf("List(%s) = %v, %v; want nothing", dir, all, err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if all, err := List(root); err != nil || len(all) != 0 {
		t.Errorf("List = %v, %v; want other files ignored", all, err)
	}
	if err := Stop(t.Context(), root, "other"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Stop = %v, want ErrNotFound", err)
	}
	if err := Stop(t.Context(), root, "../x"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("Stop = %v, want the name refused", err)
	}
	if _, err := os.Stat(filepath.Join(root, "other")); err != nil {
		t.Error("a folder that is no cluster's was removed")
	}
}

func TestListReportsWhatItCannotReadAndGoesOn(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"broken", "fine"} {
		g, err := process.OpenGroup(filepath.Join(root, name), process.GroupOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Stop(context.Background()) })
		about := `{"server": "https://127.0.0.1:1"}`
		if name == "broken" {
			about = "{"
		}
		if err := os.WriteFile(filepath.Join(root, name, aboutName), []byte(about), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, err := List(root)
	if len(all) != 1 || all[0].Name != "fine" || all[0].Owner != os.Getpid() || all[0].Server != "https://127.0.0.1:1" {
		t.Errorf("List = %+v, want fine", all)
	}
	if err == nil || !strings.Contains(err.Error(), "inspecting cluster broken: reading cluster.json") {
		t.Errorf("error %v, want one that names the broken one", err)
	}
}

func TestStateAndProcesses(t *testing.T) {
	child := func(name string, alive bool) process.Child { return process.Child{Name: name, Alive: alive} }
	for _, test := range []struct {
		name     string
		children []process.Child
		want     State
		count    int
	}{
		{"none yet", nil, Stopped, 0},
		{"all", []process.Child{child("etcd", true), child("kwok", true)}, Running, 2},
		{"none", []process.Child{child("etcd", false), child("kwok", false)}, Stopped, 2},
		{"some", []process.Child{child("etcd", true), child("kwok", false)}, Degraded, 2},
		{"restarted", []process.Child{child("istiod", false), child("istiod", true)}, Running, 1},
	} {
		got := processes(test.children)
		if state(got) != test.want || len(got) != test.count {
			t.Errorf("%s: %s with %d processes, want %s with %d", test.name, state(got), len(got), test.want, test.count)
		}
	}
}
