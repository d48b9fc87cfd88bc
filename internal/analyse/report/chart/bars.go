package chart

import (
	"html/template"
	"math"
)

// Bars is a chart of upright bars in groups.
type Bars struct {
	Chart
	X, Y   Axis                 // of X only the name is used
	Format func(float64) string // for the values
	Groups []string
	Series []BarSeries
}

// BarSeries has one bar in each group.
type BarSeries struct {
	Name  string
	Style Style
	Bars  []Bar // one for each group
}

// Bar is one bar; a Value of NaN means none. Low and High are the range of the values
// that it summarizes; for one value they equal it.
type Bar struct{ Value, Low, High float64 }

// NoBar is the absence of one.
var NoBar = Bar{math.NaN(), math.NaN(), math.NaN()}

// One returns a bar for one value; NoBar for nil.
func One(v *float64) Bar {
	if v == nil {
		return NoBar
	}
	return Bar{*v, *v, *v}
}

// HTML draws the chart.
func (b Bars) HTML() (template.HTML, error) {
	var values []float64
	for _, s := range b.Series {
		for _, bar := range s.Bars {
			if !math.IsNaN(bar.Value) {
				values = append(values, bar.High)
			}
		}
	}
	v := b.view(len(values), "it was not measured.")
	if v.Absent != "" {
		return v.html()
	}
	y := b.Y.over(values)
	v.vertical(y)
	room := plotWidth / float64(len(b.Groups))
	step := room * 0.82 / float64(len(b.Series))
	for g, name := range b.Groups {
		start := left + float64(g)*room + room*0.09
		v.Labels = append(v.Labels, label{at(left + (float64(g)+0.5)*room), at(top + plotHeight + 15), "middle", "tick", name})
		for i, s := range b.Series {
			v.bar(s, s.Bars[g], start+float64(i)*step, step, name, y, b.Format)
		}
	}
	v.Labels = append(v.Labels, label{at(left + plotWidth/2), at(height - 6), "middle", "name", b.X.Name})
	if len(b.Series) > 1 {
		for _, s := range b.Series {
			v.Legend = append(v.Legend, entry{s.Style.class(), s.Name, true})
		}
	}
	return v.html()
}

func (v *view) bar(s BarSeries, bar Bar, x, step float64, group string, y scale, format func(float64) string) {
	if math.IsNaN(bar.Value) {
		return
	}
	_, head := place(0, y.share(bar.Value))
	foot := top + plotHeight
	text := format(bar.Value)
	wide := step * 0.9
	v.Bars = append(v.Bars, box{at(x), at(head), at(wide), at(foot - head), s.Style.class(), group + ", " + s.Name + ": " + text})
	middle := x + wide/2
	above := head
	if bar.High > bar.Low {
		_, low := place(0, y.share(bar.Low))
		_, high := place(0, y.share(bar.High))
		v.Whiskers = append(v.Whiskers, segment{at(middle), at(low), at(middle), at(high)})
		above = high
	}
	if widthOf(text)+6 <= step {
		v.Labels = append(v.Labels, label{at(middle), at(above - 4), "middle", "value", text})
	}
}
