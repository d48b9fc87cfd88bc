package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

var _ = It("reads the working set of a control group", func() {
	t := GinkgoTB()
	v2 := map[string]string{"cgroup.procs": "7\n", "memory.current": "5000\n", "memory.stat": "anon 1\ninactive_file 1000\nactive_file 30\n"}
	v1 := map[string]string{
		"cgroup.procs": "7\n", "memory.usage_in_bytes": "5000\n", "memory.stat": "inactive_file 1\ntotal_inactive_file 1000\n",
		"memory.kmem.tcp.usage_in_bytes": "600\n",
	}
	for _, test := range []struct {
		name        string
		files       memoryFiles
		has         map[string]string
		change, to  string // of the files; to "" = deleted
		want        int64
		wantMessage string
	}{
		{name: "version 2", files: memoryV2, has: v2, want: 4000},
		{name: "version 1 counts sockets apart", files: memoryV1, has: v1, want: 4600},
		{name: "version 1 without them", files: memoryV1, has: v1, change: "memory.kmem.tcp.usage_in_bytes", wantMessage: "memory.kmem.tcp.usage_in_bytes"},
		{name: "the group has another process", files: memoryV2, has: v2, change: "cgroup.procs", to: "7\n8\n", wantMessage: "does not hold process 7 alone"},
		{name: "more inactive than all", files: memoryV2, has: v2, change: "memory.current", to: "10\n", want: 0},
		{name: "no such line", files: memoryV2, has: v2, change: "memory.stat", to: "anon 1\n", wantMessage: "no line inactive_file"},
		{name: "no number", files: memoryV2, has: v2, change: "memory.current", to: "max\n", wantMessage: "memory.current"},
	} {
		By(test.name, func() {
			dir := t.TempDir()
			for name, text := range test.has {
				if name == test.change {
					text = test.to
				}
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := memoryCount{dir: dir, files: &test.files}.workingSet(7)
			if test.wantMessage != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantMessage) {
					t.Fatalf("got %v, want an error with %q", err, test.wantMessage)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %d, %v, want %d", got, err, test.want)
			}
		})
	}
})

// A control group is noted before it is made: a scaler that is killed in between leaves
// none that no cleanup knows.
var _ = It("plans the group whose memory is limited", func() {
	t := GinkgoTB()
	if err := CanLimitMemory(); err != nil {
		t.Skip("memory cannot be limited here: ", err)
	}
	exists := func(dir string) bool {
		_, err := os.Stat(dir)
		return err == nil
	}
	planned := ""
	g, err := newMemoryGroup(groupName("planned"), 0, func(dir string) error {
		planned = dir
		if exists(dir) {
			t.Errorf("%s was made before it was noted", dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.remove(); err != nil {
			t.Error(err)
		}
	}()
	if g.dir != planned {
		t.Errorf("made %s, noted %q", g.dir, planned)
	}

	full := errors.New("disk full")
	_, err = newMemoryGroup(groupName("unplanned"), 0, func(dir string) error {
		planned = dir
		return full
	})
	if !errors.Is(err, full) || exists(planned) {
		t.Errorf("%v, and %s exists: %v; want neither without a note", err, planned, exists(planned))
	}
})
