package component

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"scaler.mesh/scaler/test/leak"
)

// helperEnv makes this test binary act as a second scaler that builds the fake program: its
// value is the cache folder and the folder of the fake's source.
const helperEnv = "SCALER_COMPONENT_TEST_HELPER"

func TestMain(m *testing.M) {
	if where := os.Getenv(validatorEnv); where != "" {
		_, err := ValidateEnvoy(context.Background(), where, filepath.Dir(where), nil)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if where := os.Getenv(helperEnv); where != "" {
		dir, source, _ := strings.Cut(where, ":")
		s := &store{graphs: fakeGraphs(source), dir: dir, progress: func(msg string) { fmt.Fprintln(os.Stderr, msg) }}
		paths, err := s.paths(context.Background(), "", []string{"fake"})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(paths["fake"])
		os.Exit(0)
	}
	leak.Main(m)
}

const goodSource = `package main

import "fmt"

var version = "unstamped"

func main() { fmt.Println("version", version) }
`

// fakeGraphs returns a module graph that needs no network: one program, its module replaced by a
// folder.
func fakeGraphs(source string) []Graph {
	return []Graph{{
		Name: "fakes", Title: "Fakes",
		Mod:    "module scaler.mesh/components/fake\n\ngo 1.26\n\nrequire fake.test/programs v0.0.0\n\nreplace fake.test/programs => " + source + "\n",
		Stamps: []string{"main.version=v1.2.3"},
		Programs: []Program{
			{Name: "fake", Version: "v1.2.3", Package: "fake.test/programs/fakemain", Output: "fakemain", Ask: []string{"--version"}},
			{Name: "other", Version: "v1.2.3", Package: "fake.test/programs/other", Output: "other", Ask: []string{"--version"}},
		},
	}}
}

// newStore gives a store over an empty cache, the fake's source folder, and the progress reported.
func newStore(t *testing.T, source string) (s *store, dir string, reported func() string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module fake.test/programs\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "fakemain", "main.go"), source)
	write(t, filepath.Join(dir, "other", "main.go"), goodSource)
	var mu sync.Mutex
	var lines []string
	s = &store{graphs: fakeGraphs(dir), dir: filepath.Join(t.TempDir(), "cache"), progress: func(msg string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, msg)
	}}
	return s, dir, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(lines, "\n")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBuildAndCache(t *testing.T) {
	s, source, reported := newStore(t, goodSource)
	// Settings of the user's that would lead a build astray, if they were followed.
	t.Setenv("GOFLAGS", "-mod=vendor")
	t.Setenv("GOWORK", "/nowhere/go.work")
	t.Setenv("GOOS", "plan9")
	paths, err := s.paths(t.Context(), "", []string{"fake", "other"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(paths["fake"]).Output()
	if err != nil || string(out) != "version v1.2.3\n" {
		t.Errorf("the built program says %q, %v; want the stamped version", out, err)
	}
	if got := reported(); !strings.Contains(got, "2 programs") || !strings.Contains(got, "built fake, other in") {
		t.Errorf("progress = %q, want both programs built in one go", got)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(paths["fake"]), "build.log")); err != nil {
		t.Errorf("the log is not next to the program: %v", err)
	}
	checkClean(t, s)

	// From here on there is nothing to build from, and no Go to build with.
	if err := os.RemoveAll(source); err != nil {
		t.Fatal(err)
	}
	again, err := s.paths(t.Context(), "", []string{"fake"})
	if err != nil || again["fake"] != paths["fake"] {
		t.Errorf("second time: %v, %v; want it from the cache", again, err)
	}
	t.Setenv("PATH", t.TempDir())
	again, err = s.paths(t.Context(), "", []string{"fake"})
	if err != nil || again["fake"] != paths["fake"] {
		t.Errorf("without Go: %v, %v; want it from the cache", again, err)
	}
	all, err := s.list(t.Context(), "")
	if err != nil || len(all) != 2 || all[0].Source != SourceCache || all[0].Path != paths["fake"] {
		t.Errorf("list = %+v, %v", all, err)
	}
	// Another pin is another program.
	s.graphs[0].Stamps = []string{"main.version=v1.2.4"}
	_, err = s.paths(t.Context(), "", []string{"fake"})
	if err == nil || !strings.Contains(err.Error(), "building fake: no Go toolchain found") {
		t.Errorf("changed pin without Go: %v", err)
	}
	if all, err = s.list(t.Context(), ""); err != nil || all[0].Source != SourceBuild || all[0].Path != "" {
		t.Errorf("list = %+v, %v; want it to be built", all, err)
	}
}

func TestBrokenBuild(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"does not compile": {"package main\n\nfunc main() { undefined() }\n", "undefined: undefined"},
		"does not answer":  {"package main\n\nimport \"os\"\n\nfunc main() { os.Exit(3) }\n", "trying the built fake: running"},
		"no program":       {"package other\n", "no main packages to build"},
	} {
		t.Run(name, func(t *testing.T) {
			s, source, _ := newStore(t, tc.source)
			_, err := s.paths(t.Context(), "", []string{"fake"})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error = %v, want one with %q", err, tc.want)
			}
			checkClean(t, s)
			if _, err := os.Stat(filepath.Join(s.dir, "fake")); name != "does not answer" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a broken build left something in the cache: %v", err)
			}
			if log := filepath.Join(s.dir, "logs", "fakes.log"); name == "does not compile" && !strings.Contains(err.Error(), log) {
				t.Errorf("error %v does not name its log %s", err, log)
			}
			// Mended, it builds.
			write(t, filepath.Join(source, "fakemain", "main.go"), goodSource)
			if _, err := s.paths(t.Context(), "", []string{"fake"}); err != nil {
				t.Errorf("after mending: %v", err)
			}
		})
	}
}

// checkClean fails when a build folder was left in the cache.
func checkClean(t *testing.T, s *store) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(s.dir, ".build-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %v %v", left, err)
	}
}

// slowCompiler makes the fake's build take as long as the test wants: the compiler is wrapped by a
// script that waits for a file to appear. It gives the file.
func slowCompiler(t *testing.T, s *store) (started, release string) {
	t.Helper()
	dir := t.TempDir()
	started, release = filepath.Join(dir, "started"), filepath.Join(dir, "release")
	script := filepath.Join(dir, "toolexec")
	text := fmt.Sprintf("#!/bin/sh\ncase \"$2$3\" in *full*) exec \"$@\";; esac\necho $$ >>%s\nwhile [ ! -e %s ]; do sleep 0.05; done\nexec \"$@\"\n", started, release)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	wrapper := filepath.Join(dir, "bin", "go")
	write(t, wrapper, fmt.Sprintf("#!/bin/sh\ncase $1 in build) shift; exec %s build -toolexec %s \"$@\";; esac\nexec %s \"$@\"\n", real, script, real))
	if err := os.Chmod(wrapper, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(wrapper)+":"+os.Getenv("PATH"))
	return started, release
}

func TestCancelEndsTheWholeBuild(t *testing.T) {
	g := gomega.NewWithT(t)
	s, _, _ := newStore(t, goodSource)
	started, _ := slowCompiler(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.paths(ctx, "", []string{"fake"})
		ended <- err
	}()
	g.Eventually(started, "60s").Should(gomega.BeAnExistingFile())
	pids := compilers(t, started)
	cancel()
	var err error
	g.Eventually(ended, "20s").Should(gomega.Receive(&err))
	g.Expect(err).To(gomega.MatchError(context.Canceled))
	checkClean(t, s)
	for _, pid := range pids {
		g.Eventually(func() error { return syscall.Kill(pid, 0) }, "20s").Should(gomega.MatchError(syscall.ESRCH), "compiler %d lives on", pid)
	}
}

// compilers returns the process ids that the wrapped compiler wrote.
func compilers(t *testing.T, started string) []int {
	t.Helper()
	text, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for f := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// helper starts a second scaler over the same cache.
func helper(t *testing.T, s *store, source string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), helperEnv+"="+s.dir+":"+source)
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stdout, stderr
}

func TestSecondScalerWaitsAndTakesTheFirstOnesBuild(t *testing.T) {
	g := gomega.NewWithT(t)
	s, source, reported := newStore(t, goodSource)
	started, release := slowCompiler(t, s)
	first, stdout, stderr := helper(t, s, source)
	g.Eventually(started, "60s").Should(gomega.BeAnExistingFile())

	var paths map[string]string
	ended := make(chan error, 1)
	go func() {
		var err error
		paths, err = s.paths(t.Context(), "", []string{"fake"})
		ended <- err
	}()
	g.Eventually(reported, "20s").Should(gomega.ContainSubstring("another scaler is building Fakes: waiting for it"))
	g.Expect(ended).NotTo(gomega.Receive())

	// One that waits can be cancelled, too.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.paths(ctx, "", []string{"fake"})
	g.Expect(err).To(gomega.MatchError(context.DeadlineExceeded))

	write(t, release, "")
	g.Expect(first.Wait()).To(gomega.Succeed(), stderr.String())
	g.Eventually(ended, "20s").Should(gomega.Receive(gomega.BeNil()))
	g.Expect(paths["fake"]).To(gomega.Equal(strings.TrimSpace(stdout.String())))
	g.Expect(reported()).NotTo(gomega.ContainSubstring("built"), "the second built again")
}

func TestKilledBuildIsCleanedUpByTheNext(t *testing.T) {
	g := gomega.NewWithT(t)
	s, source, _ := newStore(t, goodSource)
	started, release := slowCompiler(t, s)
	first, _, _ := helper(t, s, source)
	g.Eventually(started, "60s").Should(gomega.BeAnExistingFile())
	g.Expect(first.Process.Kill()).To(gomega.Succeed())
	g.Expect(first.Wait()).NotTo(gomega.Succeed())
	left, err := filepath.Glob(filepath.Join(s.dir, ".build-*"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(left).To(gomega.HaveLen(1), "the killed build should have left its folder")

	write(t, release, "")
	paths, err := s.paths(t.Context(), "", []string{"fake"})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(paths["fake"]).To(gomega.BeAnExistingFile())
	checkClean(t, s)
}

// A build removes no folder of a graph whose name begins with its own: that one may be at work.
func TestBuildsLeaveTheFoldersOfOthers(t *testing.T) {
	s, _, _ := newStore(t, goodSource)
	other := &Graph{Name: s.graphs[0].Name + "-1.29.1"}
	write(t, filepath.Join(s.dir, ".build-"+s.graphs[0].Name+"-123", "file"), "")
	at, err := s.buildFolder(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.buildFolder(&s.graphs[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(at); err != nil {
		t.Errorf("the folder of another build is gone: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, ".build-"+s.graphs[0].Name+"-123")); err == nil {
		t.Error("the folder of a killed build is left")
	}
}

func TestHints(t *testing.T) {
	for reported, want := range map[string]string{
		"write x: no space left on device":                        "the disk is full",
		"go: x: dial tcp: lookup proxy.test: no such host":        "check the network and GOPROXY",
		"go: go.mod requires go >= 1.27 (running go 1.26.1; ...)": "needs a newer Go",
		"link: signal: killed":                                    "want of memory",
		"mkdir /x: permission denied":                             "cannot be written",
	} {
		if err := hinted(errors.New("building x"), reported); !strings.Contains(err.Error(), want) {
			t.Errorf("hint for %q = %q, want %q", reported, err, want)
		}
	}
	if err := errors.New("x.go:1: syntax error"); hinted(err, "") != err {
		t.Error("a hint where there is none to give")
	}
}

func TestProgressOfABuild(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	for text, want := range map[string]string{
		"":                            "4 packages to compile",
		"go: downloading x v1\nfmt\n": "1 of 4 packages compiled, about 6m0s left",
		"fmt\nio/fs\na.test/b\n":      "3 of 4 packages compiled, about 40s left",
		"fmt\nio/fs\na.test/b\na.test/a\n# a.test/a\nwarning: x\n": "all 4 packages compiled, linking",
	} {
		write(t, log, text)
		if got := compiling(log, 4, 2*time.Minute); got != want {
			t.Errorf("compiling after %q = %q, want %q", text, got, want)
		}
	}
	write(t, log, "go: downloading x v1\ngo: downloading y v1\n")
	if got := downloading(log); got != "2 modules downloaded so far" {
		t.Errorf("downloading = %q", got)
	}
}

func TestHarmlessFlags(t *testing.T) {
	if got := harmlessFlags("-mod=mod -p=1 -race --modfile=x -tags=a -modcacherw"); got != "-p=1 -modcacherw" {
		t.Errorf("kept %q", got)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPinned(t *testing.T) {
	if got := Names(); len(got) != 15 || !slices.Contains(got, Istiod) {
		t.Errorf("Names() = %v", got)
	}
	if got := Version(KubeAPIServer); got != "v1.36.3" {
		t.Errorf("Version(kube-apiserver) = %q", got)
	}
	if got := Version("nonsense"); got != "" {
		t.Errorf("Version(nonsense) = %q", got)
	}
	// The versions reported must be the versions pinned.
	for _, tc := range []struct{ name, module string }{
		{Etcd, "go.etcd.io/etcd/server/v3 " + Version(Etcd)},
		{KubeAPIServer, "k8s.io/kubernetes " + Version(KubeAPIServer)},
		{Kwok, "sigs.k8s.io/kwok " + Version(Kwok)},
		{Istiod, strings.TrimPrefix(Version(Istiod), "1.31")}, // the commit
		{Prometheus, "github.com/prometheus/prometheus v0.3" + strings.TrimSuffix(strings.TrimPrefix(Version(Prometheus), "3."), ".0") + ".0"},
	} {
		g, _ := pinned.find(tc.name)
		if !strings.Contains(g.Mod, tc.module) {
			t.Errorf("%s: modules/%s.mod does not pin %q", tc.name, g.Name, tc.module)
		}
	}
	text, err := json.Marshal(Status{Name: "x", Version: "v1", Source: SourceBuild})
	if err != nil || string(text) != `{"name":"x","version":"v1","source":"build"}` {
		t.Errorf("status = %s, %v", text, err)
	}
}
