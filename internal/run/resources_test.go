package run

import (
	"slices"
	"testing"

	"scaler.mesh/scaler/internal/experiment"
)

func TestParseMemory(t *testing.T) {
	for _, test := range []struct {
		in   string
		want int64 // 0 = an error
	}{
		{"512Mi", 512 << 20}, {"2Gi", 2 << 30}, {"1G", 1e9}, {"1.5Gi", 3 << 29}, {"67108864", 64 << 20}, {"1e9", 1e9}, {"16Ti", 1 << 44},
		{in: ""}, {in: "5x"}, {in: "512"}, {in: "512m"}, {in: "-1Gi"}, {in: "0"}, {in: "63Mi"}, {in: "17Ti"}, {in: "1e30"}, {in: "512 Mi"}, {in: "Mi"}, {in: "512MB"},
	} {
		got, err := ParseMemory(test.in)
		if got != test.want || (err == nil) != (test.want != 0) {
			t.Errorf("ParseMemory(%q) = %d, %v, want %d", test.in, got, err, test.want)
		}
	}
}

func FuzzParseMemory(f *testing.F) {
	for _, s := range []string{"512Mi", "2Gi", "1e9", "99999999999999999999", "0.000000000000001Ei"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if bytes, err := ParseMemory(s); err == nil && (bytes < minMemory || bytes > maxMemory) {
			t.Errorf("%q is %d bytes", s, bytes)
		}
	})
}

func TestCheckEnv(t *testing.T) {
	if err := checkEnv([]string{"A=b", "_X1=", "PILOT_DEBOUNCE_AFTER=1s", "EMPTY="}); err != nil {
		t.Error(err)
	}
	for _, kv := range []string{"", "A", "=b", "1A=b", "A B=c", "GOMAXPROCS=1", "A=\x00"} {
		if checkEnv([]string{"OK=1", kv}) == nil {
			t.Errorf("%q: want an error", kv)
		}
	}
}

func TestLastProcessors(t *testing.T) {
	all := []int{0, 1, 4, 5}
	for n, want := range map[int][]int{0: nil, 1: {5}, 3: {1, 4, 5}, 4: nil, 9: nil} {
		if got := lastProcessors(all, n); !slices.Equal(got, want) {
			t.Errorf("the last %d of %v: got %v, want %v", n, all, got, want)
		}
	}
	if len(experiment.Processors()) == 0 {
		t.Error("no processors")
	}
}
