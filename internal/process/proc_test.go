package process

import (
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
)

var _ = It("reads the state of a process", func() {
	t := GinkgoTB()
	tail := " S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2"
	for _, test := range []struct {
		name, stat string
		start      uint64
		ok         bool
	}{
		{"plain", "42 (etcd)" + tail, 987654, true},
		{"name with parentheses and spaces", "42 (a) R 1 (b) )" + tail, 987654, true},
		{"empty", "", 0, false},
		{"cut short", "42 (etcd) S 1 1 1", 0, false},
		{"not a number", "42 (etcd) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 x 1 2", 0, false},
	} {
		By(test.name, func() {
			start, state, err := parseStat([]byte(test.stat))
			if (err == nil) != test.ok || start != test.start || test.ok && state != 'S' {
				t.Errorf("parseStat(%q) = %d, %c, %v; want %d, ok %v", test.stat, start, state, err, test.start, test.ok)
			}
		})
	}
})

var _ = It("knows when this process started", func() {
	t := GinkgoTB()
	start, err := startTime(os.Getpid())
	if err != nil || start == 0 {
		t.Fatalf("startTime = %d, %v", start, err)
	}
	if !(identity{os.Getpid(), start}).alive() || (identity{os.Getpid(), start + 1}).alive() {
		t.Error("this process is alive, and one that started later is not")
	}
})

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (etcd) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, state, err := parseStat(data); err == nil && state == 0 {
			t.Errorf("parseStat(%q): no state and no error", data)
		}
	})
}
