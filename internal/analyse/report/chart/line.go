package chart

import (
	"html/template"
	"math"
	"slices"
	"strings"
)

// Lines is a chart of lines.
type Lines struct {
	Chart
	X, Y   Axis
	Series []Series
	Bands  []Band // shaded, behind the lines
}

// Series is one line. A point whose Y is NaN breaks it.
type Series struct {
	Name   string
	Style  Style
	Points []Point
	Dots   bool // each point is drawn as a dot, too
}

// Point is a point in the axes' units.
type Point struct{ X, Y float64 }

// Band is a stretch of the x axis.
type Band struct {
	Name     string
	From, To float64
}

// most limits the points of a drawn line to those that fit its width.
const most = 400

// HTML draws the chart.
func (l Lines) HTML() (template.HTML, error) {
	var xs, ys []float64
	for _, s := range l.Series {
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	for _, b := range l.Bands {
		xs = append(xs, b.To)
	}
	v := l.view(len(ys), "there is nothing in it.")
	if v.Absent != "" {
		return v.html()
	}
	x, y := l.X.over(xs), l.Y.over(ys)
	if l.X.Kind == Linear {
		x.endAt(largest(xs)) // a time line ends with its last moment
	}
	v.bands(l.Bands, x)
	v.vertical(y)
	v.horizontal(x)
	for _, s := range l.Series {
		v.line(s, x, y)
	}
	return v.html()
}

func largest(values []float64) float64 {
	most := 0.0
	for _, v := range values {
		most = max(most, min(v, beyond))
	}
	if most == 0 {
		return 1
	}
	return most
}

func (v *view) bands(bands []Band, x scale) {
	for i, b := range bands {
		from, _ := place(x.share(b.From), 0)
		to, _ := place(x.share(b.To), 0)
		class := []string{"even", "odd"}[i%2]
		v.Bands = append(v.Bands, box{at(from), at(top), at(to - from), at(plotHeight), class, b.Name})
		if to-from > widthOf(b.Name) {
			v.Labels = append(v.Labels, label{at((from + to) / 2), at(top - 7), "middle", "tick", b.Name})
		}
	}
}

func (v *view) line(s Series, x, y scale) {
	var d strings.Builder
	broken := true
	for _, p := range thinned(s.Points) {
		if missing(p) {
			broken = true
			continue
		}
		px, py := place(x.share(p.X), y.share(p.Y))
		if broken {
			d.WriteString("M")
		} else {
			d.WriteString("L")
		}
		broken = false
		d.WriteString(at(px) + " " + at(py))
		if s.Dots {
			v.Dots = append(v.Dots, dot{s.Style.class(), at(px), at(py)})
		}
	}
	v.Legend = append(v.Legend, entry{Class: s.Style.class(), Name: s.Name})
	if d.Len() > 0 {
		v.Lines = append(v.Lines, path{s.Style.class(), d.String()})
	}
}

// thinned returns about as many points as a drawing can show. Of points at the same place
// it keeps the lowest, the highest and gaps, in their order: a dip of a second is as
// important as a peak.
func thinned(points []Point) []Point {
	if len(points) <= most {
		return points
	}
	const parts = most / 2
	kept := make([]Point, 0, most)
	for i := range parts {
		part := points[i*len(points)/parts : (i+1)*len(points)/parts]
		for len(part) > 0 {
			gap := missing(part[0])
			n := slices.IndexFunc(part, func(p Point) bool { return missing(p) != gap })
			if n < 0 {
				n = len(part)
			}
			if gap {
				kept = append(kept, part[0])
			} else {
				kept = append(kept, extremes(part[:n])...)
			}
			part = part[n:]
		}
	}
	return kept
}

// missing reports whether a point breaks its line.
func missing(p Point) bool { return math.IsNaN(p.X) || math.IsNaN(p.Y) }

// extremes returns the lowest and the highest of the points, without gaps, in their
// order.
func extremes(points []Point) []Point {
	low, high := 0, 0
	for i, p := range points {
		if p.Y < points[low].Y {
			low = i
		}
		if p.Y > points[high].Y {
			high = i
		}
	}
	if low == high {
		return points[low : low+1]
	}
	return []Point{points[min(low, high)], points[max(low, high)]}
}
