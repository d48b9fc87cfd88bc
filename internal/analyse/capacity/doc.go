// Package capacity states what a larger mesh will need of its control plane: it fits
// figures of runs of several sizes, forecasts them with prediction intervals, names the
// limit that binds first, and turns that into requests, limits, replicas and bursts. It
// is pure and reads nothing but records.
//
// # The models
//
// In a rollout a control plane works for each sidecar (a handshake, a token review, a
// certificate, a stream and its buffers), for each byte of configuration that all
// sidecars hold together, and for each sidecar whenever a pod arrives (to check whether
// that concerns it). So figures grow with
//
//	pods                   one more sidecar
//	pods x configuration   one more byte of configuration at every sidecar
//	pods x pods            one more check of every sidecar
//
// where configuration is the number of bytes that a sidecar holds when converged, which
// is measured almost without error. With scope declared it does not depend on the size of
// the mesh, and the second term is proportional to the first. With scope all it grows
// with the services, and the second term is quadratic in pods: this follows from the
// bytes, no curve is assumed. It then includes the third term, which cannot be
// distinguished from it; the third is used only if configuration does not grow.
//
// Processor time has the first term and one of the others. With the second it also has a
// constant of either sign, if the runs show one. No pods cost nothing, but small meshes
// deviate from the line: below the size at which sidecars begin to queue for the
// connection limiter they do not repeat handshakes, and where pushes merge a pod costs
// less than its bytes suggest. With the third it has no constant: a few sizes cannot
// separate two curves.
//
// Memory consists of the program itself, which is a constant of either sign, and a part
// for each sidecar. The memory of the empty control plane contains garbage and buffers of
// its start. A mesh uses that memory again, so that it adds less than its sidecars need,
// and the constant is negative. Without a negative constant, the memory of large meshes
// is forecast too low. Memory does not grow with the bytes that sidecars hold, because a
// control plane keeps each resource once for all of them. That term is added only if the
// runs show it, that is, if its interval excludes zero. A term with a negative cost is
// left out. Peaks are higher by a step in meshes in which the control plane pushes large
// responses (largeResponses), if enough sizes show it.
//
// With several replicas, memory is per replica, and processor time is the sum of all.
// Where runs differ in their replicas, memory has a part for each sidecar that a replica
// serves, in addition to the term for each pod of the mesh, and processor time has a part
// for the work that each replica after the first repeats for each pod.
//
// Few parameters keep intervals narrow: at twice the size of the largest run, intervals
// with three parameters are twice as wide as with two.
//
// The variation of runs is proportional to the figure: weights are relative, so that
// large meshes do not dominate small ones. Some sizes vary far more than others, and have
// less weight (spreads). Sizes in another regime than the largest are left out (onePace).
//
// Repeats do not reduce the error of a size itself. If sizes deviate from the line by
// more than their repeats differ, the number of sizes counts as the number of
// observations for the intervals (scatter). If too few sizes are left to see that, the
// plan warns.
//
// # Rules
//
// Limits that are known by rule are not fitted. The record has the rates at which its
// control plane admits streams and reviews tokens (record.Limits); these grow with the
// processors of the planned machine. Rollout time is the longest of the times that result
// from the limits, multiplied by a fitted factor: refused sidecars come back after a
// random delay, so that the limit is not used all the time.
package capacity
