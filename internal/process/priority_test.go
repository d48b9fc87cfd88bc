package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
)

var _ = It("finds the group to put weights below", func() {
	t := GinkgoTB()
	for _, test := range []struct {
		group   string
		limited string // the group that limits processors
		want    []string
	}{
		{group: "/", want: []string{"/"}},
		{group: "/a", want: []string{"/"}},
		{group: "/a/b/c", want: []string{"/a/b", "/a", "/"}},
		{group: "/a/b/c", limited: "/a/b", want: []string{"/a/b"}},
		{group: "/a/b/c", limited: "/a/b/c"},
	} {
		got, err := weightParents(test.group, func(group string) bool { return group == test.limited })
		if !slices.Equal(got, test.want) || (err != nil) != (test.want == nil) {
			t.Errorf("beside %s, of which %q is limited: got %v, %v, want %v", test.group, test.limited, got, err, test.want)
		}
	}
})

var _ = It("reads the control group of a controller", func() {
	t := GinkgoTB()
	mount, group, v2, err := parseCgroups("5:cpu,cpuacct:/x\n4:memory:/y\n0::/z\n", "cpu")
	if mount != "cpu,cpuacct" || group != "/x" || v2 || err != nil {
		t.Errorf("got %q, %q, %t, %v", mount, group, v2, err)
	}
	mount, group, v2, err = parseCgroups("4:cpuset:/x\n0::/z\n", "cpu")
	if mount != "" || group != "/z" || !v2 || err != nil {
		t.Errorf("named as the beginning of another: got %q, %q, %t, %v", mount, group, v2, err)
	}
})

// Weights are in the range of each version, in the order of the priorities and in
// the same proportion.
var _ = It("orders priorities by weight", func() {
	t := GinkgoTB()
	for _, w := range []weightGroups{{}, {v2: true}} {
		p := w.priorities()
		if p.First <= p.Own || p.Own <= p.Last || p.Last < 2 || p.First > maxShares || w.v2 && p.First > maxWeight {
			t.Errorf("%s: %+v", p.Mechanism, p)
		}
		if got := float64(p.First) / float64(p.Last); got < 255 || got > 258 {
			t.Errorf("%s: the first has %g times the last, want 256", p.Mechanism, got)
		}
	}
})

// Without control groups children are ordered by niceness, as far as that is
// permitted.
var _ = It("orders children by niceness without control groups", func() {
	t := GinkgoTB()
	group, err := OpenGroup(filepath.Join(t.TempDir(), "group"), GroupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	DeferCleanup(func(ctx SpecContext) {
		if err := group.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	p := nicePriorities()
	if p.Own != ownNice() || p.First > p.Own || p.Last <= p.Own && p.Own < 19 {
		t.Errorf("levels are %+v for an own niceness of %d", p, ownNice())
	}
	if p.Own-p.First == 0 && mayNice(p.Own-1) {
		t.Errorf("the first have scaler's own niceness, although a lower one is permitted")
	}
	group.levels = &levels{Priorities: p}
	for _, each := range []struct {
		name     string
		priority Priority
		want     int
	}{{"first", PriorityFirst, p.First}, {"own", PriorityOwn, p.Own}, {"last", PriorityLast, p.Last}} {
		log := filepath.Join(group.Dir(), each.name+".log")
		child, err := group.Start(Spec{Name: each.name, Path: "/bin/sh", Args: []string{"-c", "exec nice"}, Log: log, Priority: each.priority})
		if err != nil {
			t.Fatal(err)
		}
		<-child.Done()
		if got := readInt(t, log); got != each.want {
			t.Errorf("%s: niceness %d, want %d", each.name, got, each.want)
		}
	}
	if ownNice() != p.Own {
		t.Errorf("scaler's own niceness became %d", ownNice())
	}
})

func readInt(t testing.TB, file string) (n int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		t.Fatal(err)
	}
	return n
}
