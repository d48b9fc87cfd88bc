// Package process runs child programs so that none outlives its purpose.
//
// A [Group] is the set of children of one run or cluster, with a folder of its
// own. Children end when the group is stopped, and when the program that
// started them ends in any way, kill -9 included. What a group is and who owns
// it stands in a small file in its folder, so that another program can find
// and remove what was left ([Orphans], [Inspect]).
//
// It knows nothing of what the programs do: readiness is a probe the caller
// brings ([WaitReady]), and so are arguments and ports ([FreePorts]). It needs
// Linux: it relies on parent-death signals and on /proc.
package process
