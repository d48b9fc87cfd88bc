// Package compare compares the runs of two folders: what differs
// between them, by how much, and whether that is more than runs that are alike
// differ by. It reads records alone, and leaves the statistics
// to package stats.
//
// The unit of replication is the run. Four thousand observations of one latency
// in one run have the same machine, the same moment and the same control plane
// in common: they are one observation of what a run's median is. So a figure of
// a run is one value, and repeats of the run are the sample.
//
// Compare puts runs that are alike in all but the control plane into cells (one
// size, one mesh, one machine), and tests every figure of every cell by Welch's t
// on logarithms, as needs and latencies are never below zero and vary in
// proportion to their size; figures that may be zero (refusals, losses) are
// tested as they are. All tests together are one family, corrected by Holm's
// method: among all that is reported as different, the chance of a single false alarm is
// held to 5 %.
//
// Why not a test of ranks, as benchstat has it: of 5 runs against 5 it cannot say
// less than p = 0.008, and of more than six figures none could ever be
// significant once corrected. But ranks do state how many runs it takes at least: with 3 against
// 3 all of one side lie above all of the other in one of ten comparisons of like
// with like, and only faith in the normal law could make more of it. Such cells
// are marked as having too few repeats, and nothing in them is tested. What
// becomes of the 5 % under laws that are not normal (it stays between 0 and 7), and
// what differences are found, is simulated in package stats.
package compare
