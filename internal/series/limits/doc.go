// Package limits is `scaler limits`: it searches for the highest change rate, the largest
// mesh, the smallest memory limit or the fewest processors with which an objective is met.
// Each value that it tries is a run of package rollout with a record of its own.
package limits
