package fleet

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/convergence"
)

func TestDifferences(t *testing.T) {
	keys := func(names ...string) map[convergence.Key]bool {
		all := map[convergence.Key]bool{}
		for _, name := range names {
			all[convergence.Key{Type: convergence.CDS, Name: name}] = true
		}
		return all
	}
	type pair struct{ expected, held map[convergence.Key]bool }
	for _, c := range []struct {
		name  string
		pairs []pair
		want  []string
	}{
		{"none", []pair{{keys("a", "b"), keys("b", "a")}, {keys(), keys()}}, nil},
		{"unwanted", []pair{{keys("a"), keys("a")}, {keys("a"), keys("a", "b", "c", "d", "e")}, {keys(), keys("x")}},
			[]string{"2 sidecars hold 5 resources that the mesh and its knobs do not call for, as pod-1 CDS b, CDS c, CDS d"}},
		{"both", []pair{{keys("a"), keys("b")}}, []string{
			"1 sidecars hold 1 resources that the mesh and its knobs do not call for, as pod-0 CDS b",
			"1 sidecars hold 1 resources fewer than the control plane was expected to send, as pod-0 CDS a",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d differences
			for i, p := range c.pairs {
				d.compare("pod-"+string(rune('0'+i)), p.expected, p.held)
			}
			var got []string
			for _, w := range d.warnings() {
				got = append(got, w.Sentence())
			}
			if !slices.Equal(got, c.want) {
				t.Error(cmp.Diff(c.want, got))
			}
		})
	}
}
