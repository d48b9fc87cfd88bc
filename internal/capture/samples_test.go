package capture

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestSamples checks that samples are meshes, alone and in copies, and that an unknown one is refused with those there are.
func TestSamples(t *testing.T) {
	type counts struct{ services, pods, endpoints int }
	want := map[string]counts{
		"sample:bookinfo":  {services: 4, pods: 6, endpoints: 6}, // reviews has three workloads
		"sample:emojivoto": {services: 3, pods: 4, endpoints: 5}, // emoji and voting have two ports, vote-bot none
	}
	if got, all := Samples(), slices.Sorted(maps.Keys(want)); !slices.Equal(got, all) {
		t.Fatalf("samples are %q, want %q", got, all)
	}
	for name, want := range want {
		f, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		m, err := Read(name, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 3, MaxScale} {
			copies, err := m.Times(n)
			if err != nil {
				t.Fatal(err)
			}
			checkReadable(t, name, copies)
			sidecars, outside := copies.Members()
			if got := (counts{len(copies.Services), sidecars, copies.Endpoints()}); got != (counts{n * want.services, n * want.pods, n * want.endpoints}) || outside > 0 {
				t.Errorf("%d copies of %s: %+v and %d pods without a sidecar, want %d times %+v", n, name, got, outside, n, want)
			}
		}
	}
	for _, name := range []string{"sample:nope", "sample:", "sample:../testdata/mesh", "sample:bookinfo.yaml"} {
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), "want one of sample:bookinfo, sample:emojivoto") {
			t.Errorf("%q: %v, want an error with the samples", name, err)
		}
	}
}
