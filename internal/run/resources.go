package run

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/record"
)

// Bounds of a control plane's memory: below, none starts; above, nothing is
// limited.
const (
	minMemory = 64 << 20
	maxMemory = 1 << 44
)

// ParseMemory parses the value of --control-plane-memory, a quantity as
// Kubernetes reads it: 512Mi, 2Gi, 1G. It returns bytes. Its error names the
// flag, the value and what is wanted.
func ParseMemory(s string) (int64, error) {
	quantity, err := resource.ParseQuantity(s)
	if err != nil {
		return 0, fmt.Errorf("parsing --control-plane-memory %q: want bytes with a unit, as in 512Mi, 2Gi or 1G", s)
	}
	bytes := quantity.Value()
	if bytes < minMemory || bytes > maxMemory {
		return 0, fmt.Errorf("parsing --control-plane-memory %q: want from 64Mi to 16Ti", s)
	}
	return bytes, nil
}

// variable is what a name of the environment may be.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkEnv checks the values of --control-plane-env.
func checkEnv(env []string) error { return checkEnvOf("control-plane-env", env) }

// checkEnvOf is checkEnv of another flag.
func checkEnvOf(flag string, env []string) error {
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		switch {
		case !ok || !variable.MatchString(name):
			return fmt.Errorf("parsing --%s %q: want NAME=VALUE, or the NAME of a variable that is set here", flag, kv)
		case strings.ContainsRune(kv, 0):
			return fmt.Errorf("parsing --%s %s: want a value without zero bytes", flag, name) // it may be a secret
		case name == "GOMAXPROCS":
			return fmt.Errorf("parsing --%s %q: want --control-plane-cpus instead, which is recorded too", flag, kv)
		}
	}
	return nil
}

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
		MaxProcs:    s.ControlPlaneCPUs,
		MemoryBytes: s.ControlPlaneMemory,
		Env:         s.ControlPlaneEnv,
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
