package exposure

import (
	"encoding/base64"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every kind of socket that is listened on is found, and only those that are.
func TestListening(t *testing.T) {
	var want []string
	for _, s := range []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"}, {"tcp", "0.0.0.0:0"}, {"tcp6", "[::1]:0"}, {"unix", filepath.Join(t.TempDir(), "socket")}, {"unix", "@" + t.Name()},
	} {
		l, err := net.Listen(s.network, s.address)
		if err != nil && s.network == "tcp6" {
			continue // a machine without IPv6
		} else if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		want = append(want, strings.TrimSuffix(s.network, "6")+" "+l.Addr().String())
	}
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	want = append(want, "udp "+u.LocalAddr().String())
	connected, err := net.Dial("udp", u.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Close()

	found, err := Listening([]int{os.Getpid(), os.Getpid(), 1 << 22})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range found {
		if s.Program != filepath.Base(os.Args[0]) {
			t.Errorf("%v has another program", s)
		}
		got = append(got, s.Network+" "+s.Address)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("listening are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestUndocumented(t *testing.T) {
	rows := Documented([]byte("| program | socket | reason |\n| --- | --- | --- |\n" +
		"| `etcd` | tcp `127.0.0.1:random` | its clients |\n| `envoy` | tcp `0.0.0.0:15001` | as in a pod |\n" +
		"| `pilot-agent` | unix `*/etc/istio/proxy/XDS` | Envoy |\n| `none` | tcp `127.0.0.1:9999` | |\n"))
	sockets := []Socket{
		{"etcd", "tcp", "127.0.0.1:23790"}, {"envoy", "tcp", "0.0.0.0:15001"}, {"pilot-agent", "unix", "/a/etc/istio/proxy/XDS"},
		{"etcd", "tcp", "0.0.0.0:23790"}, {"etcd", "udp", "127.0.0.1:23790"}, {"kwok", "tcp", "127.0.0.1:23790"}, {"etcd", "tcp", "127.0.0.1:2379"},
		{"envoy", "tcp", "0.0.0.0:15006"}, {"pilot-agent", "unix", "@x"}, {"none", "tcp", "127.0.0.1:9999"},
	}
	if got := Undocumented(sockets, rows); !slices.Equal(got, sockets[3:]) {
		t.Errorf("undocumented are %v, want %v", got, sockets[3:])
	}
}

const (
	key   = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAx0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL\nshort\n-----END RSA PRIVATE KEY-----\n"
	token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJlLXNpZ25hdHVyZQ"
)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

// started starts a process that lasts as long as the test; its process id.
func started(t *testing.T, env []string, args ...string) int {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", "echo; read line"}, args...)...)
	cmd.Env = env
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait() // read fails
	})
	if _, err := stdout.Read(make([]byte, 1)); err != nil { // it has its arguments now
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// Whatever is planted is found: in files, in their names, and in what a process is
// started with.
func TestSecretsAreFound(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	write(t, filepath.Join(state, "pki", "ca.key"), key, 0o600)
	write(t, filepath.Join(state, "kubeconfig"), "client-key-data: "+base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(key, "x0", "y0")))+"\n", 0o600)
	write(t, filepath.Join(state, "token"), token, 0o600)
	write(t, filepath.Join(state, "harmless"), "-----BEGIN CERTIFICATE-----\n", 0o644)
	secrets := Secrets{"hunter2hunter2": "API_TOKEN"}
	if exposed, err := secrets.AddFolder(state); err != nil || len(exposed) > 1 || len(exposed) == 1 && exposed[0].Where != state {
		t.Errorf("exposed %v, %v", exposed, err)
	}

	for name, text := range map[string]string{
		"a key":                "x" + key,
		"a key in JSON":        strings.ReplaceAll(key, "\n", `\n`),
		"a line of a key":      "MIIEpAIBAAKCAQEAx0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL",
		"a line of a config's": "MIIEpAIBAAKCAQEAy0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL",
		"a key in base64":      "x: " + base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(key, "x0", "z0"))),
		"a token":              "token=" + token + "&",
		"an unknown token":     strings.ReplaceAll(token, "c2ln", "d2ln"),
		"a bearer token":       "Authorization: Bearer 0123456789abcdef0123",
		"a variable":           "API_TOKEN=hunter2hunter2",
	} {
		if len(secrets.In([]byte(text))) == 0 {
			t.Errorf("nothing was found in %s", name)
		}
		out := t.TempDir()
		write(t, filepath.Join(out, "logs", "a.log"), "line\n"+text, 0o644)
		if found, err := secrets.InFolder(out); err != nil || len(found) == 0 || found[0].Where != filepath.Join(out, "logs", "a.log") {
			t.Errorf("found %v, %v in a file with %s", found, err, name)
		}
		pid := started(t, nil, text)
		if found, err := secrets.InProcesses([]int{pid}); err != nil || len(found) == 0 {
			t.Errorf("found %v, %v in the arguments of a process with %s", found, err, name)
		}
		descendants, err := Descendants(os.Getpid())
		if err != nil || !slices.Contains(descendants, pid) {
			t.Errorf("descendants %v, %v lack %d", descendants, err, pid)
		}
	}

	out := t.TempDir()
	write(t, filepath.Join(out, "hunter2hunter2"), "", 0o644)
	if found, err := secrets.InFolder(out); err != nil || len(found) != 1 {
		t.Errorf("found %v, %v in names of files", found, err)
	}
	for _, harmless := range []string{"-----BEGIN CERTIFICATE-----", "bearer tokens", "eyJhbGciOiJSUzI1NiJ9", "-----BEGIN PUBLIC KEY-----"} {
		if found := secrets.In([]byte(harmless)); len(found) > 0 {
			t.Errorf("%q has %v", harmless, found)
		}
	}
}

// The environment of a process is its user's alone.
func TestEnvironmentsAreNotShown(t *testing.T) {
	pid := started(t, []string{"API_TOKEN=hunter2hunter2"})
	if found, err := (Secrets{"hunter2hunter2": "API_TOKEN"}).InProcesses([]int{pid}); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}

// Files with secrets that others may read are found.
func TestExposedFiles(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	write(t, filepath.Join(state, "ca.key"), key, 0o640)
	write(t, filepath.Join(state, "token"), token, 0o604)
	write(t, filepath.Join(state, "fine.key"), key, 0o600)
	if err := os.Chmod(state, 0o755); err != nil {
		t.Fatal(err)
	}
	exposed, err := Secrets{}.AddFolder(state)
	if err != nil || len(exposed) != 3 {
		t.Errorf("exposed %v, %v, want the folder, the key and the token", exposed, err)
	}
}
