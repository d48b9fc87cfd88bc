// Package stats turns many observations into few numbers: histograms of
// latencies and the quantiles of them, and linear models of figures. It is pure: it knows nothing of meshes,
// runs or clocks, and leaves the keeping of results to package record.
package stats
