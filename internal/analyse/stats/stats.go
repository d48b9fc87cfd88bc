// Package stats reduces many observations to few numbers: histograms of latencies and
// their quantiles, linear models of figures, and tests whether two samples differ. It is
// pure and does not depend on meshes, runs or clocks; package record stores its results.
package stats
