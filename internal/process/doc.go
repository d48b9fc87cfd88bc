// Package process runs child programs so that none outlives its purpose.
//
// A [Group] is the set of children of one run or cluster, with its own folder. Children
// end when the group is stopped, and when the program that started them ends in any way,
// kill -9 included. A small file in the folder describes the group and its owner, so that
// another program can find and remove what was left ([Orphans], [Inspect]).
//
// It does not depend on what the programs do: the caller provides a readiness probe
// ([WaitReady]), arguments and ports ([FreePorts]). It needs Linux, because it relies on
// parent-death signals and on /proc.
package process
