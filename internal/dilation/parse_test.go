package dilation

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]float64{"1": 1, "2.5": 2.5, "64": 64, "auto": Auto} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%s: got %g, %v, want %g", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "x", "Auto", "2x"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is a factor", text)
		}
	}
}
