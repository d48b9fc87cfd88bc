// Package compare compares the runs of two folders: what differs between them, by how
// much, and whether that is more than runs that are alike differ by. It reads only
// records, and leaves the statistics to package stats.
//
// The unit of replication is the run. Four thousand observations of one latency in one
// run have the same machine, the same moment and the same control plane in common: they
// are one observation of what a run's median is. So a figure of a run is one value, and
// repeats of the run are the sample.
//
// Compare puts runs that are alike in all but the control plane into one Group (one size,
// one mesh, one machine), and tests every figure of every Group by Welch's t on
// logarithms, as needs and latencies are never below zero and vary in proportion to their
// size; figures that may be zero (refusals, losses) are tested without logarithms. All
// tests together are one family, corrected by Holm's method: the probability of a single
// false alarm among all reported differences is at most 5 %.
//
// A test of ranks, as benchstat uses, is not suitable: for 5 runs against 5 its smallest
// p is 0.008, so with more than six figures none could be significant after the
// correction. But ranks do show how many runs are needed at least: with 3 against 3 all
// values of one side are above all of the other in one of ten comparisons of like with
// like, and only an assumption of normality could extract more. Such Groups are marked as
// having too few repeats, and nothing in them is tested. Package stats has simulations of
// the false alarms for distributions that are not normal (between 0 and 7 %), and of the
// differences that are found.
package compare
