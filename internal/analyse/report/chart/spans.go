package chart

import (
	"html/template"
	"math"
)

// Spans is a waterfall chart: stretches of the x axis below one another.
type Spans struct {
	Chart
	X      Axis
	Format func(float64) string // for how long each is
	Spans  []Span
}

// Span is one stretch.
type Span struct {
	Name     string
	From, To float64
	Hue      int
}

// spanRoom is the height of a span.
const spanRoom = 23.0

// HTML draws the chart. Its height depends on the number of spans.
func (s Spans) HTML() (template.HTML, error) {
	v := s.view(len(s.Spans), "there is nothing in it.")
	if v.Absent != "" {
		return v.html()
	}
	var ends []float64
	for _, span := range s.Spans {
		ends = append(ends, span.To)
	}
	x := s.X.over(ends)
	x.endAt(largest(ends))
	v.horizontal(x)
	tall := spanRoom * float64(len(s.Spans))
	v.stretch(tall)
	for i, span := range s.Spans {
		from, _ := place(x.share(span.From), 0)
		to, _ := place(x.share(span.To), 0)
		y := top + float64(i)*spanRoom
		text := span.Name + " " + s.Format(span.To-span.From)
		v.Bars = append(v.Bars, box{at(from), at(y + 4), at(math.Max(1.5, to-from)), at(spanRoom - 8), Style{Hue: span.Hue}.class(), text})
		anchor, where := "start", to+4
		if room := widthOf(text); where+room > width {
			anchor, where = "end", from-4
			if where < room {
				anchor, where = "start", 4
			}
		}
		v.Labels = append(v.Labels, label{at(where), at(y + spanRoom/2 + 4), anchor, "value", text})
	}
	return v.html()
}

// stretch gives the plot another height.
func (v *view) stretch(tall float64) {
	by := tall - plotHeight
	v.Height, v.Base = at(height+by), at(top+tall)
	for i := range v.Grid {
		v.Grid[i].Y2 = at(top + tall)
	}
	for i := range v.Labels {
		y := top + plotHeight + 15
		if v.Labels[i].Class == "name" {
			y = height - 6
		}
		v.Labels[i].Y = at(y + by)
	}
}
