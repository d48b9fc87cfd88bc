// Package stats turns many observations into few numbers: histograms of
// latencies and the quantiles of them, linear models of figures, and tests of
// whether two samples differ. It is pure: it knows nothing of meshes, runs or
// clocks, and leaves the keeping of results to package record.
package stats
