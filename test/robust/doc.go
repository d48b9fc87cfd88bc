// Package robust has the suite for what must hold however scaler is used and
// ended: what is not scaler's is left alone, nothing is left running, nothing is
// lost, nothing is exposed. It mostly uses the reference control plane, which
// starts in seconds.
package robust
