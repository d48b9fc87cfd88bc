// Package chart draws charts as SVG for pages without scripts and without a network. A
// chart is plain data. The caller decides what its numbers mean, and how they are scaled
// for reading; Number, Seconds and Bytes are for axes.
//
// The drawing has no colours, only classes (hue0 to hue7, light, dash0 to dash3, band,
// axis, grid), so that a page's style sheet makes it light or dark. Colour is never the
// only distinction: lines have dashes, bars are in the order of the legend, and each
// chart has a table of its numbers.
package chart

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"strings"
	"unicode/utf8"
)

// Chart holds what all charts have in common.
type Chart struct {
	ID    string // unique in its page
	Title string
	// About describes the chart in a sentence or two, also for those who cannot see
	// it.
	About string
	// Absent says why there is nothing to draw; "" if there is something.
	Absent    string
	LimitedBy []Link // to what limits its figures
	Table     Table  // the numbers; none when it has no head
}

// Link leads to another place in the page.
type Link struct{ Href, Text, Label string }

// Table holds the numbers of a chart.
type Table struct {
	Head []string
	Rows [][]string
}

// Hues is the number of different hues; beyond it a style's hue repeats.
const Hues = 8

// Style distinguishes a series.
type Style struct {
	Hue   int
	Dash  int  // of a line: 0 is unbroken, up to 3
	Light bool // of a bar: paler
}

func (s Style) class() string {
	class := fmt.Sprintf("hue%d dash%d", s.Hue%Hues, s.Dash%4)
	if s.Light {
		class += " light"
	}
	return class
}

// The drawing's size and margins, in the units of its view box. A chart is as wide as a
// phone in portrait mode. Larger screens show several in a row.
const (
	width, height            = 440.0, 250.0
	left, right, top, bottom = 62.0, 12.0, 22.0, 40.0
	plotWidth, plotHeight    = width - left - right, height - top - bottom
	letter                   = 7.0 // width of a letter, at most
)

// widthOf returns an upper bound of the width of a text.
func widthOf(text string) float64 { return letter * float64(utf8.RuneCountInString(text)) }

// view is a drawing before it is rendered. All numbers are strings already.
type view struct {
	Chart
	Width, Height  string
	Bands          []box
	Grid           []segment
	Labels         []label
	Lines          []path
	Dots           []dot
	Bars           []box
	Whiskers       []segment
	Legend         []entry
	Left, PlotEnd  string
	Base, PlotHead string
}

type segment struct{ X1, Y1, X2, Y2 string }

type label struct{ X, Y, Anchor, Class, Text string }

type path struct{ Class, D string }

type dot struct{ Class, X, Y string }

type box struct{ X, Y, W, H, Class, Text string }

type entry struct {
	Class, Name string
	Bar         bool
}

//go:embed chart.tmpl
var source string

var markup = template.Must(template.New("chart").Parse(source))

func (v view) html() (template.HTML, error) {
	var b strings.Builder
	if err := markup.Execute(&b, v); err != nil {
		return "", fmt.Errorf("drawing chart %q: %w", v.Title, err)
	}
	return template.HTML(b.String()), nil
}

// view returns an empty drawing. Of a chart without figures it states why nothing is shown, unless the chart does.
func (c Chart) view(figures int, none string) view {
	if figures == 0 {
		c.Absent = cmp.Or(c.Absent, none)
	}
	return view{
		Chart: c, Width: at(width), Height: at(height),
		Left: at(left), PlotEnd: at(width - right), Base: at(top + plotHeight), PlotHead: at(top),
	}
}

// at prints a coordinate to a tenth.
func at(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

// place returns the position of shares of the plot's width and height.
func place(x, y float64) (float64, float64) {
	return left + x*plotWidth, top + (1-y)*plotHeight
}

// vertical adds the grid lines and labels of the vertical axis.
func (v *view) vertical(a scale) {
	for _, t := range a.ticks {
		_, y := place(0, a.share(t))
		v.Grid = append(v.Grid, segment{at(left), at(y), at(width - right), at(y)})
		v.Labels = append(v.Labels, label{at(left - 6), at(y + 4), "end", "tick", a.format(t)})
	}
}

func (v *view) horizontal(a scale) {
	previous := math.Inf(-1)
	for _, t := range a.ticks {
		x, _ := place(a.share(t), 0)
		text := a.format(t)
		if x-previous < widthOf(text)+6 {
			continue // it would run into the one before
		}
		previous = x
		v.Grid = append(v.Grid, segment{at(x), at(top), at(x), at(top + plotHeight)})
		anchor := "middle"
		if x+widthOf(text)/2 > width {
			anchor = "end" // or it would be cut off
		}
		v.Labels = append(v.Labels, label{at(x), at(top + plotHeight + 15), anchor, "tick", text})
	}
	v.Labels = append(v.Labels, label{at(left + plotWidth/2), at(height - 6), "middle", "name", a.name})
}
