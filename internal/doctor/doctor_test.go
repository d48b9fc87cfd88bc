package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestCheckOnThisMachine(t *testing.T) {
	results := Check(t.Context(), Requirements{
		Pods:     10,
		Dirs:     []Dir{{Name: "cache", Path: filepath.Join(t.TempDir(), "not", "yet"), Bytes: 1}},
		Programs: []Program{{Name: "etcd", Path: "/bin/true"}},

		SidecarPrograms: []Program{{Name: "envoy", Path: "/bin/true"}},
	})
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
		if r.Detail == "" || (r.Fix == "") != (r.Status == OK) {
			t.Errorf("%+v: want a detail, and a fix if and only if it is not ok", r)
		}
	}
	want := "open files, ports, outgoing ports, memory, processors, inotify, disk of cache, go, programs, real sidecars"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("checks = %s, want %s", got, want)
	}
}

func TestOpenFilesAreRaised(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	})
	low := syscall.Rlimit{Cur: 400, Max: before.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	if r := checkOpenFiles(10, filesPerSidecar); r.Status != OK {
		t.Errorf("%+v, want ok", r)
	}
	var after syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &after); err != nil {
		t.Fatal(err)
	}
	if after.Cur != before.Max {
		t.Errorf("limit = %+v, want the soft one at the hard one (%d)", after, before.Max)
	}
	// More than the kernel lets anybody have (fs.nr_open).
	if r := checkOpenFiles(1<<40, filesPerSidecar); r.Status != Failed || !strings.Contains(r.Fix, "ulimit -Hn") {
		t.Errorf("%+v, want failed with the fix", r)
	}
}

func TestPorts(t *testing.T) {
	if r := checkPorts(3); r.Status != OK || !strings.HasPrefix(r.Detail, "3 free") {
		t.Errorf("%+v", r)
	}
}

func TestParsePortRange(t *testing.T) {
	for text, want := range map[string]int{
		"32768\t60999\n": 28232, "1024 65535": 64512, "5 5": 1,
		"": -1, "1": -1, "a b": -1, "1 b": -1, "5 4": -1, "1 99999": -1,
	} {
		got, err := parsePortRange(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("parsePortRange(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

func FuzzParsePortRange(f *testing.F) {
	f.Add("32768\t60999\n")
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parsePortRange(text); err == nil && (n < 1 || n > 65536) {
			t.Errorf("parsePortRange(%q) = %d", text, n)
		}
	})
}

func FuzzParseAvailable(f *testing.F) {
	f.Add("MemTotal: 5 kB\nMemAvailable:   12 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseAvailable(text); err == nil && n%1024 != 0 {
			t.Errorf("parseAvailable(%q) = %d", text, n)
		}
	})
}

func TestFreeMemory(t *testing.T) {
	const meminfo = "MemTotal:       8000 kB\nMemAvailable:   4000 kB\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"no container":  {nil, 4000 << 10},
		"v2, unlimited": {map[string]string{"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "5\n"}, 4000 << 10},
		"v2, limited":   {map[string]string{"sys/fs/cgroup/memory.max": "2048000\n", "sys/fs/cgroup/memory.current": "1024000\n", "sys/fs/cgroup/memory.stat": "anon 7\ninactive_file 24000\n"}, 1048000},
		"v2, over":      {map[string]string{"sys/fs/cgroup/memory.max": "100\n", "sys/fs/cgroup/memory.current": "200\n"}, 0},
		"v1, limited":   {map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "3000\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000\n"}, 2000},
		"v1, unlimited": {map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000\n"}, 4000 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			writeFile(t, filepath.Join(root, "proc/meminfo"), meminfo)
			for path, text := range tc.files {
				writeFile(t, filepath.Join(root, path), text)
			}
			if got, err := freeMemory(root); err != nil || got != tc.want {
				t.Errorf("got %d, %v; want %d", got, err, tc.want)
			}
		})
	}
	if _, err := freeMemory(t.TempDir()); err == nil {
		t.Error("no error without /proc")
	}
}

func TestJudgements(t *testing.T) {
	dir := Dir{Name: "cache", Bytes: 1000}
	for name, tc := range map[string]struct {
		got  Result
		want Status
	}{
		"memory, plenty":   {judgeMemory(Result{Status: OK}, 4e9, Requirements{Pods: 200}), OK},
		"memory, scarce":   {judgeMemory(Result{Status: OK}, 1.5e9, Requirements{Pods: 200}), Warning},
		"memory, for real": {judgeMemory(Result{Status: OK}, 3e9, Requirements{Pods: 200, RealSidecars: 10}), Warning},
		"memory, too low":  {judgeMemory(Result{Status: OK}, 0.9e9, Requirements{Pods: 200}), Failed},
		"other machines":   {judgeMemory(Result{Status: OK}, 1e9, Requirements{Pods: 200, Elsewhere: true}), OK},
		"processors, one":  {judgeProcessors(1), Warning},
		"processors, two":  {judgeProcessors(2), OK},
		"room, plenty":     {judgeRoom(Result{Status: OK}, dir, "x", 1000), OK},
		"room, too little": {judgeRoom(Result{Status: OK}, dir, "x", 999), Failed},
		"programs, there":  {checkPrograms([]Program{{Name: "a", Path: "/a"}}, false), OK},
		"to be built":      {checkPrograms([]Program{{Name: "a"}}, true), Warning},
		"cannot be built":  {checkPrograms([]Program{{Name: "a"}}, false), Failed},
		"inotify":          {checkInotify(1), OK},
		"no inotify":       {checkInotify(1 << 20), Failed},
		"broken":           {checkPrograms([]Program{{Name: "a", Problem: "is broken"}}, true), Failed},
	} {
		if tc.got.Status != tc.want || tc.got.Detail == "" || (tc.got.Fix == "") != (tc.want == OK) {
			t.Errorf("%s: %+v, want %s", name, tc.got, tc.want)
		}
	}
}

// Without real sidecars nothing of theirs is an error.
func TestSidecarPrograms(t *testing.T) {
	envoy, agent := Program{Name: "envoy", Path: "/e"}, Program{Name: "pilot-agent", Path: "/p"}
	noEnvoy, noAgent := Program{Name: "envoy", Pip: true}, Program{Name: "pilot-agent"}
	noPip := Program{Name: "envoy", Pip: true, Problem: "is missing and cannot be installed: no pip found"}
	for name, tc := range map[string]struct {
		programs    []Program
		haveGo      bool
		free, asked Status // real sidecars not asked for, and asked for
		detail, fix string
	}{
		"there":           {[]Program{envoy, agent}, false, OK, OK, "envoy (/e), pilot-agent (/p)", ""},
		"to be got":       {[]Program{noEnvoy, noAgent}, true, Warning, Warning, "not there yet: envoy, pilot-agent; needed for rollout --real-sidecars", "scaler components build envoy pilot-agent"},
		"Envoy to be got": {[]Program{noEnvoy, agent}, false, Warning, Warning, "not there yet: envoy;", "scaler components build envoy"},
		"no Go":           {[]Program{envoy, noAgent}, false, Warning, Failed, "not there yet: pilot-agent;", "install Go"},
		"no pip":          {[]Program{noPip, agent}, true, Warning, Failed, "envoy is missing and cannot be installed: no pip found; needed for", "install Python 3 with pip"},
		"broken":          {[]Program{{Name: "envoy", Problem: "is broken: x"}}, true, Warning, Failed, "envoy is broken: x", "--envoy"},
	} {
		for _, asked := range []bool{false, true} {
			want := tc.free
			if asked {
				want = tc.asked
			}
			r := checkSidecarPrograms(tc.programs, asked, tc.haveGo)
			if r.Status != want || !strings.Contains(r.Detail, tc.detail) || !strings.Contains(r.Fix, tc.fix) || (r.Fix == "") != (want == OK) {
				t.Errorf("%s, asked for %t: %+v, want %s", name, asked, r, want)
			}
		}
	}
}

func TestDir(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	writeFile(t, file, "")
	for path, want := range map[string]Status{
		dir:                         OK,
		filepath.Join(dir, "a/b/c"): OK,
		file:                        Failed,
		filepath.Join(file, "a"):    Failed,
		"/proc/nothing/here":        Failed,
	} {
		if r := checkDir(Dir{Name: "--out", Path: path, Bytes: 1}); r.Status != want {
			t.Errorf("%s: %+v, want %s", path, r, want)
		}
	}
}

func TestGo(t *testing.T) {
	if r := checkGo(t.Context()); r.Status != OK || !strings.HasPrefix(r.Detail, "go1.") {
		t.Errorf("%+v", r)
	}
	t.Setenv("PATH", t.TempDir())
	existing, installed, missing := Program{Name: "a", Path: "/a"}, Program{Name: "envoy", Pip: true}, Program{Name: "b"}
	for name, test := range map[string]struct {
		req  Requirements
		want Status // "" = it is not checked
	}{
		"every program is there, as in an image":      {Requirements{Programs: []Program{existing}}, ""},
		"pip installs it":                             {Requirements{Programs: []Program{existing, installed}}, ""},
		"a program is missing":                        {Requirements{Programs: []Program{existing, missing}}, Failed},
		"one of real sidecars that are not asked for": {Requirements{Programs: []Program{existing}, SidecarPrograms: []Program{missing}}, ""},
		"one of real sidecars":                        {Requirements{Programs: []Program{existing}, SidecarPrograms: []Program{missing}, RealSidecars: 1}, Failed},
	} {
		got := Status("")
		for _, r := range Check(t.Context(), test.req) {
			if r.Name == "go" {
				got = r.Status
			}
		}
		if got != test.want {
			t.Errorf("%s: Go is %q without one, want %q", name, got, test.want)
		}
	}
}

func TestError(t *testing.T) {
	results := []Result{{"a", OK, "d", ""}, {"b", Warning, "d", "f"}}
	if err := Error(results); err != nil {
		t.Error(err)
	}
	results = append(results, Result{"c", Failed, "2 allowed, 4 needed", "raise it"})
	if err := Error(results); err == nil || err.Error() != "checking c: 2 allowed, 4 needed; raise it" {
		t.Error(err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
