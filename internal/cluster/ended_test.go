package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/process"
)

// The test binary acts as one of these programs when it is started under that name.
const (
	endingEtcd      = "etcd-that-ends"
	interruptedEtcd = "etcd-that-is-interrupted"
	deafAPIServer   = "kube-apiserver-that-is-never-ready"
)

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case endingEtcd:
		serveUntilAsked()
	case interruptedEtcd:
		_ = unix.Kill(os.Getpid(), unix.SIGINT)
		_ = unix.Pause()
	case deafAPIServer:
		askAndWait()
	}
	os.Exit(m.Run())
}

// flagValue returns the value of an argument --name=VALUE of this process.
func flagValue(name string) string {
	for _, arg := range os.Args[1:] {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// serveUntilAsked answers as etcd does when it is ready, and ends with an error when somebody connects to its socket.
func serveUntilAsked() {
	tcp, socket, _ := strings.Cut(flagValue("listen-client-urls"), ",")
	listen, err := url.Parse(tcp)
	if err != nil {
		fail(err)
	}
	asked, err := net.Listen("unix", strings.TrimPrefix(socket, "unix://"))
	if err != nil {
		fail(err)
	}
	go func() {
		if _, err := asked.Accept(); err != nil {
			fail(err)
		}
		fmt.Fprintln(os.Stderr, "panic: write /data/wal: no space left on device")
		os.Exit(2)
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	fail((&http.Server{Addr: listen.Host, Handler: mux}).ListenAndServeTLS(flagValue("cert-file"), flagValue("key-file")))
}

// fail ends this process.
func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}

// askAndWait has etcd end, and stays without ever listening.
func askAndWait() {
	if _, err := net.Dial("unix", strings.TrimPrefix(flagValue("etcd-servers"), "unix://")); err != nil {
		fail(err)
	}
	for { // as select would, which the runtime takes for a deadlock where no goroutine is left
		_ = unix.Pause()
	}
}

// upWith starts a cluster whose etcd and API server are two of these programs, and returns the error.
func upWith(ctx context.Context, t *testing.T, etcd, apiServer string, progress func(string)) error {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	program := func(name string) string {
		path := filepath.Join(root, name)
		if err := os.Symlink(self, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	group, err := process.OpenGroup(filepath.Join(root, "one"), process.GroupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	_, err = Up(ctx, Options{Progress: progress, Group: group, LogDir: filepath.Join(root, "logs"), Programs: Programs{
		Etcd: program(etcd), APIServer: program(apiServer), ControllerManager: self, Scheduler: self, Kwok: self,
	}})
	return err
}

// An etcd that ends while the API server is waited for is named at once, and is the reason, with its last lines.
func TestUpNamesTheProgramThatEnded(t *testing.T) {
	said := make(chan string, 20)
	err := upWith(t.Context(), t, endingEtcd, deafAPIServer, func(text string) { said <- text })
	exit, ok := errors.AsType[*process.ExitError](err)
	if !ok || exit.Name != Etcd || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("error %v, want that etcd ended, with its last line", err)
	}
	var got []string
	for range len(said) {
		got = append(got, <-said)
	}
	if want := []string{"starting etcd", "starting kube-apiserver", "etcd has ended: exit status 2"}; !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}

// A terminal's ctrl-C ends a program that was just forked and has no process group of its own yet.
func TestAnInterruptIsTheReasonWhenItEndsAProgramToo(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := &interrupt.Error{Signal: unix.SIGINT}
	err := upWith(ctx, t, interruptedEtcd, deafAPIServer, func(string) { cancel(interrupted) })
	if want := "starting cluster one: " + interrupted.Error(); !errors.Is(err, interrupted) || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}
