package process

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
)

var _ = It("reads the control groups of a process", func() {
	t := GinkgoTB()
	for _, test := range []struct {
		name, text   string
		mount, group string
		v2, fails    bool
	}{
		{name: "version 1", text: "9:name=systemd:/\n4:memory:/user/1\n0::/\n", mount: "memory", group: "/user/1"},
		{name: "mounted with another", text: "4:cpu,memory:/a\n", mount: "cpu,memory", group: "/a"},
		{name: "version 2", text: "0::/user.slice/session-1.scope\n", group: "/user.slice/session-1.scope", v2: true},
		{name: "both, the controller in version 2", text: "1:name=systemd:/x\n0::/y\n", group: "/y", v2: true},
		{name: "none", text: "1:name=systemd:/x\n", fails: true},
		{name: "nonsense", text: "memory", fails: true},
		{name: "empty", fails: true},
		{name: "not a path", text: "4:memory:../..\n", fails: true},
	} {
		mount, group, v2, err := parseCgroups(test.text, "memory")
		if mount != test.mount || group != test.group || v2 != test.v2 || (err != nil) != test.fails {
			t.Errorf("%s: got %q, %q, %t, %v", test.name, mount, group, v2, err)
		}
	}
})

func FuzzParseCgroups(f *testing.F) {
	f.Add("4:memory:/user/1\n0::/\n")
	f.Add("0::/../..\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, group, _, err := parseCgroups(text, "memory")
		if err == nil && group[0] != '/' {
			t.Errorf("%q: group %q", text, group)
		}
	})
}

var _ = It("reads how many processes were killed", func() {
	t := GinkgoTB()
	for text, want := range map[string]int64{
		"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n":                3,
		"low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 0\n": 1,
		"":               0,
		"oom_kill x\n":   0,
		"oom_kill 0\n\n": 0,
	} {
		if got, _ := statCount(text, "oom_kill"); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
})
