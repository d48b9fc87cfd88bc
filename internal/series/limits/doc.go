// Package limits searches for the highest change rate, the largest mesh, the smallest memory limit or
// the fewest processors with which an objective is met: `scaler limits`. Each value that it tries is a run
// of package run with a record of its own. How the runs are done and resumed is left to package series.
package limits
