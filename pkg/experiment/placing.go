package experiment

import (
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"scaler.mesh/scaler/internal/process"
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
func checkEnv(env []string) error {
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		switch {
		case !ok || !variable.MatchString(name):
			return fmt.Errorf("parsing --control-plane-env %q: want NAME=VALUE", kv)
		case strings.ContainsRune(kv, 0):
			return fmt.Errorf("parsing --control-plane-env %q: want a value without zero bytes", kv)
		case name == "GOMAXPROCS":
			return fmt.Errorf("parsing --control-plane-env %q: want --control-plane-cpus instead, which says it to the record too", kv)
		}
	}
	return nil
}

// processors are those that scaler, and what it starts, may use.
func processors() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var all []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	return all
}

// lastProcessors are the last n of all, nil when that is all of them: the first
// ones are where a kernel likes to do its own work.
func lastProcessors(all []int, n int) []int {
	if n <= 0 || n >= len(all) {
		return nil
	}
	return all[len(all)-n:]
}

// limitMemory reports whether the kernel can hold the control plane to its
// memory limit, and warns when it cannot.
func (r *rolloutRun) limitMemory() bool {
	if r.spec.ControlPlaneMemory == 0 {
		return false
	}
	if err := process.CanLimitMemory(); err != nil {
		r.warn("environment.controlPlane.memoryLimitBytes", "the limit is told to the control plane (GOMEMLIMIT) and not enforced: %v", err)
		return false
	}
	return true
}
