package run

import (
	"regexp"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/record"
)

// variable is what a name of the environment may be.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// lastProcessors are the last n of all, nil when that is all of them: the first
// ones are where a kernel likes to do its own work.
func lastProcessors(all []int, n int) []int {
	if n <= 0 || n >= len(all) {
		return nil
	}
	return all[len(all)-n:]
}

// controlPlaneResources decides what the control plane is given of this machine, of
// which cpus are its own processors. A memory limit that cannot be enforced is a doubt
// about the run; nil = there is none.
func (s Spec) controlPlaneResources(cpus []int) (controlplane.Resources, *record.Warning) {
	resources := controlplane.Resources{
		CPUs:        cpus,
		MaxProcs:    s.ControlPlane.CPUs,
		MemoryBytes: int64(s.ControlPlane.Memory),
		Env:         s.ControlPlane.Env,
	}
	if resources.MemoryBytes > 0 {
		err := controlplane.CanLimitMemory()
		resources.Enforced = err == nil
		if err != nil {
			return resources, &record.Warning{About: "environment.controlPlane.memoryLimitBytes", Reason: record.ReasonLimitNotEnforced, Detail: err.Error()}
		}
	}
	return resources, nil
}
