// Package nightly plans for a cluster that is there already, time after time, as a CronJob does:
// rollouts of several sizes in it, a plan from their records, and a report in a folder of that
// time. The oldest folders are deleted, and so is what a run of an earlier time left in
// the cluster that was killed or failed.
//
// When a night is due is left to others.
package nightly
