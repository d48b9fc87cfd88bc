package compare

import (
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// The tests of all variants are one family, and each variant has its own verdicts.
func TestCompareVariants(t *testing.T) {
	base := Variant{"preset", runs("base", 5, 1)}
	family := []string{"latencies.push.endpointAdd", "controlPlane.rollout.cores"}
	e, err := CompareVariants(base, []Variant{{"alike", runs("alike", 5, 2)}, {"debounce", runs("debounce", 5, 3, debounced)}, {"none", nil}}, family)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	tested := 0
	for _, f := range e.Variants[0].Figures {
		names = append(names, f.Name)
	}
	for _, v := range e.Variants {
		for _, f := range v.Figures {
			if f.Holm != nil {
				tested++
			}
		}
	}
	if !slices.Equal(names, []string{"rollout.cores", "rollout.cores.peak", "push.endpointAdd.p50", "push.endpointAdd.p99", "push.endpointAdd.lost"}) || tested != e.Tests || tested != 8 {
		t.Errorf("%v, %d tests of %d", names, tested, e.Tests)
	}
	for i, want := range []Verdict{CannotTell, Higher} {
		f := e.Variants[i].Figure("latencies.push.endpointAdd.p50")
		if f.Verdict != want {
			t.Errorf("%s: %s, want %s", e.Variants[i].Name, f.Verdict, want)
		}
		better, worse := f.Better()
		if better || worse != (want == Higher) {
			t.Errorf("%s: better %v, worse %v", e.Variants[i].Name, better, worse)
		}
		// The same pair alone is a smaller family.
		alone, err := CompareVariants(base, []Variant{{"alone", [][]record.Run{runs("alike", 5, 2), runs("debounce", 5, 3, debounced)}[i]}}, family)
		if err != nil || *alone.Variants[0].Figure(f.Path).Holm > *f.Holm {
			t.Errorf("alone %+v, %v", alone, err)
		}
	}
	if len(e.Variants[2].Figures) != 0 {
		t.Errorf("without runs: %+v", e.Variants[2])
	}
	text := e.Table("value").Text()
	for _, want := range []string{"FIGURE", "VALUE", "preset", "debounce", "higher", "~"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if !strings.Contains(e.Variants[1].Figure("latencies.push.endpointAdd.p50").Change(), "push.endpointAdd.p50 +") {
		t.Error(e.Variants[1].Figure("latencies.push.endpointAdd.p50").Change())
	}
}

// Runs of one variant that were made on two machines are no repeats.
func TestCompareVariantsOfTwoMachines(t *testing.T) {
	two := append(runs("a", 2, 1), runs("b", 2, 2, func(r *record.Run) { r.Environment.CPUs = 64 })...)
	if _, err := CompareVariants(Variant{"preset", runs("base", 4, 3)}, []Variant{{"value", two}}, nil); err != nil {
		return
	}
	if _, err := CompareVariants(Variant{"preset", two}, []Variant{{"value", two}}, nil); err == nil {
		t.Error("no error")
	}
}
