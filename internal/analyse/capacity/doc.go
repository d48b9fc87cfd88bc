// Package capacity states what a larger mesh will need of its control plane: it fits
// figures of runs of several sizes, forecasts them with prediction intervals,
// names the limit that binds first, and turns that into requests, limits, replicas
// and bursts. It is pure and reads nothing but records.
//
// # The models
//
// All that a control plane does in a rollout, it does for each sidecar (a
// handshake, a token's review, a certificate, a stream and its buffers), for each
// byte of configuration that sidecars hold together, or for each sidecar whenever
// a pod comes (whether that concerns it). So figures grow with
//
//	pods                   one more sidecar
//	pods x configuration   one more byte of configuration at every sidecar
//	pods x pods            one more look at every sidecar
//
// where configuration is what a sidecar holds when converged, which is measured
// almost without error. With scope declared it does not depend on the size of the
// mesh, and the second term is the first again; with scope all it grows with the
// services, and the second term is quadratic in pods: no curve is assumed, the
// bytes make it. It then stands for the third, too, from which nothing could tell
// it; the third has a place of its own where configuration does not grow.
//
// Processor time has the first and one of the others. With the second it has a
// constant of either sign, too, if the runs show it: no pods cost nothing, but below the
// size at which sidecars begin to queue for the connection limiter they do not come
// back for further handshakes, and where pushes merge a pod costs less than its bytes
// have it. With the third it has none: a few sizes cannot separate two curves.
//
// Memory has the program itself, a constant of either sign, and a part for each sidecar. The
// memory of the empty control plane contains garbage and buffers of its start. A mesh uses
// that memory again, so that it adds less than its sidecars need, and the constant is
// negative. Without a negative constant, the memory of large meshes is forecast too low. The
// bytes that sidecars hold are no part of it, as a control plane keeps each resource once for all, unless
// the runs show that they are: the term's interval must not hold zero. A term that
// comes out as costing less than nothing is left out. Peaks are higher by a step in meshes in which
// the control plane pushes large responses (largeResponses), if enough sizes show it.
//
// With several replicas memory is that of one, and processor time that of all together.
// Where runs differ in their replicas, memory has a part for each sidecar that a
// replica serves, in addition to the term for each pod of the mesh, and processor
// time has one for what each replica after the first does again for each pod.
//
// Few parameters are what keeps intervals narrow: twice as far out as the largest
// run, three leave twice as much open as two.
//
// Runs vary by some share of a figure, not by some amount: weights are relative, and
// large meshes do not drown small ones. Some sizes vary far more than others, and
// weigh less (spreads). Sizes that were under another regime than the largest are
// left out (onePace).
//
// Repeats do not make a size's own error smaller. Where sizes miss the line by more
// than their repeats differ, intervals are of as many observations as there are
// sizes (scatter); where too few sizes are left to see that, it is a doubt.
//
// # Rules
//
// What is known by rule is not fitted. The record says at which rates its control
// plane admits streams and has tokens reviewed (record.Limits); these grow with
// the processors of the machine that is planned for. Rollout time is the longest
// of the times that the limits take, times a factor that is fitted: who is refused
// comes back with a random delay, so that the limit is not used all the time.
package capacity
