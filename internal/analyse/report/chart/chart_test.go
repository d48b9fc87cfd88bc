package chart

import (
	"fmt"
	"html/template"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/test/golden"
)

func plainly(v float64) string { return fmt.Sprintf("%.4g", v) }

func TestScales(t *testing.T) {
	for _, test := range []struct {
		kind   Kind
		values []float64
		ticks  string
	}{
		{Linear, []float64{0.3, 1.9}, "0 0.5 1 1.5 2"},
		{Linear, []float64{1600}, "0 500 1000 1500 2000"},
		{Linear, []float64{0}, "0 0.5 1"},
		{Linear, nil, "0 0.5 1"},
		{Linear, []float64{math.NaN(), 8}, "0 2 4 6 8"},
		{Log, []float64{0.11, 0.4}, "0.1 0.2 0.5"},
		{Log, []float64{0.1}, "0.1 0.2"},
		{Log, []float64{0, 3e-6, 40}, "1e-05 0.0001 0.001 0.01 0.1 1 10"},
		{Log, nil, "0.1 0.2 0.5 1"},
		{Percentile, []float64{0.5}, "0 0.5 0.9 0.99"},
		{Percentile, []float64{0.9995}, "0 0.5 0.9 0.99 0.999"},
		{Percentile, nil, "0 0.5 0.9 0.99"},
	} {
		s := Axis{Kind: test.kind}.over(test.values)
		var ticks []string
		for _, tick := range s.ticks {
			ticks = append(ticks, plainly(tick))
		}
		if got := strings.Join(ticks, " "); got != test.ticks {
			t.Errorf("%v of kind %d have ticks %q: want %q", test.values, test.kind, got, test.ticks)
		}
		for _, v := range append(test.values, s.ticks...) {
			if share := s.share(v); !math.IsNaN(v) && (share < 0 || share > 1) {
				t.Errorf("of kind %d, %g lies at %g", test.kind, v, share)
			}
		}
	}
}

// Labels of bytes are round in the units that they are printed in.
func TestScaleOfBytes(t *testing.T) {
	for most, want := range map[float64]string{
		1.66 * (1 << 30): "0B 512MiB 1GiB 1.5GiB 2GiB", 250 << 20: "0B 64MiB 128MiB 192MiB 256MiB", 3: "0B 1B 2B 3B", 1 << 20: "0B 256KiB 512KiB 768KiB 1MiB",
	} {
		var ticks []string
		for _, tick := range (Axis{Ticks: Bytes}).over([]float64{most}).ticks {
			ticks = append(ticks, Bytes.Text(tick))
		}
		if got := strings.Join(ticks, " "); got != want {
			t.Errorf("up to %g: %s, want %s", most, got, want)
		}
	}
}

// A tick beyond the end would be drawn at the end, and say of it what it is not.
func TestAxisThatEndsHasNoTicksBeyond(t *testing.T) {
	for end, want := range map[float64][]float64{226: {0, 100, 200}, 200: {0, 50, 100, 150, 200}, 0: {0, 0.5, 1}} {
		s := Axis{}.over([]float64{0, end})
		if s.endAt(end); !slices.Equal(s.ticks, want) {
			t.Errorf("an axis that ends at %v has ticks at %v: want %v", end, s.ticks, want)
		}
	}
}

func TestPercentilesTakeTheirRoom(t *testing.T) {
	s := Axis{Kind: Percentile}.over([]float64{0.999})
	for want, q := range map[float64]float64{0: 0, 1.0 / 3: 0.9, 2.0 / 3: 0.99, 1: 0.999} {
		if got := s.share(q); math.Abs(got-want) > 1e-9 {
			t.Errorf("%g lies at %g: want %g", q, got, want)
		}
	}
}

// What lasted for a second of an hour is seen: peaks, dips and gaps.
func TestThinnedKeepsWhatStandsOut(t *testing.T) {
	var points []Point
	for i := range 10 * most {
		points = append(points, Point{float64(i), 200})
	}
	nan := Point{3003, math.NaN()}
	points[1234].Y, points[2345].Y, points[2346].Y, points[3003].Y = 207, 0, 1, nan.Y
	for i := 3500; i < 3600; i++ {
		points[i].Y = math.NaN()
	}
	kept := thinned(points)
	if len(kept) > most+10 {
		t.Errorf("%d points", len(kept))
	}
	for _, want := range []Point{{1234, 207}, {2345, 0}} {
		if !slices.Contains(kept, want) {
			t.Errorf("%v is gone", want)
		}
	}
	at := slices.IndexFunc(kept, func(p Point) bool { return p.X == nan.X })
	if at < 1 || !math.IsNaN(kept[at].Y) || missing(kept[at-1]) || missing(kept[at+1]) {
		t.Errorf("a gap of one is gone: %v", kept)
	}
	if !slices.IsSortedFunc(kept, func(a, b Point) int { return int(a.X - b.X) }) {
		t.Error("points are not in their order")
	}
	for i, p := range kept[:len(kept)-1] {
		if next := kept[i+1]; p.X < 3500 && next.X >= 3600 {
			t.Errorf("drawn over a gap: %v, %v", p, next)
		}
	}
	if again := thinned(points[:most]); len(again) != most {
		t.Errorf("%d of %d points that there is room for", len(again), most)
	}
}

func TestGolden(t *testing.T) {
	format := func(v float64) string { return plainly(v) + "s" }
	nan := math.NaN()
	about := Chart{ID: "it", Title: "A & <b>", About: "What is seen.", LimitedBy: []Link{{"#w1", "[1]", "warning 1"}}, Table: Table{Head: []string{"name", "value"}, Rows: [][]string{{"<i>", "1"}}}}
	for name, c := range map[string]interface {
		HTML() (template.HTML, error)
	}{
		"lines": Lines{Chart: about, X: Axis{Name: "seconds", Ticks: Ticks{Text: plainly}}, Y: Axis{Ticks: Ticks{Text: format}},
			Series: []Series{{Name: "one", Points: []Point{{0, 1}, {1, nan}, {2, 3}, {3, 4}}, Dots: true}, {Name: "<two>", Style: Style{Hue: 9, Dash: 5}}},
			Bands:  []Band{{"first", 0, 2}, {"a name that does not fit into it", 2, 3}}},
		"bars": Bars{Chart: about, X: Axis{Name: "pods"}, Y: Axis{Ticks: Ticks{Text: format}}, Format: format, Groups: []string{"200", "400"},
			Series: []BarSeries{{Name: "strict", Bars: []Bar{One(new(1.0)), {2, 1.5, 2.5}}}, {Name: "permissive", Style: Style{Hue: 1, Light: true}, Bars: []Bar{NoBar, One(new(3.0))}}}},
		"spans": Spans{Chart: about, X: Axis{Name: "seconds", Ticks: Ticks{Text: format}}, Format: format,
			Spans: []Span{{"address", 0, 1, 0}, {"a long name near the end", 3.9, 4, 1}, {"at once", 2, 2, 2}}},
		"absent":  Lines{Chart: Chart{ID: "it", Title: "None", Absent: "it was <not> measured."}},
		"nothing": Bars{Chart: Chart{ID: "it", Title: "None"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.HTML()
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", name+".html"), string(got))
		})
	}
}

// Whatever is drawn, every coordinate is a number.
func FuzzLines(f *testing.F) {
	f.Add(0.0, 1.0, 2.0, 3.0, 0)
	f.Add(math.Inf(1), -1.0, math.MaxFloat64, 1e-300, 1)
	f.Fuzz(func(t *testing.T, a, b, c, d float64, kind int) {
		l := Lines{Chart: Chart{ID: "it"}, X: Axis{Kind: Linear, Ticks: Ticks{Text: plainly}}, Y: Axis{Kind: Kind(uint(kind) % 3), Ticks: Ticks{Text: plainly}},
			Series: []Series{{Points: []Point{{a, b}, {c, d}}}}}
		got, err := l.HTML()
		if err != nil {
			t.Fatal(err)
		}
		if _, drawn, _ := strings.Cut(string(got), "class=\"mark"); strings.Contains(drawn, "NaN") || strings.Contains(drawn, "Inf") {
			t.Errorf("it holds what is no number: %s", drawn)
		}
	})
}
