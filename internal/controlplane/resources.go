package controlplane

import (
	"runtime"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/mask"
	"scaler.mesh/scaler/internal/process"
)

// Resources are the resources of this machine that a control plane may use, and the environment
// variables that state them. The zero value is all of the machine.
type Resources struct {
	MaxProcs    int      // its GOMAXPROCS; 0 = as many as there are processors
	Quota       Quota    // that the kernel holds it to; zero = none
	MemoryBytes int64    // that it may hold; 0 = no limit
	Enforced    bool     // the kernel holds it to MemoryBytes, and kills it when it exceeds them
	Env         []string // further NAME=VALUE, over what the adapter sets
	Args        []string // further arguments of its program, over what the adapter sets
}

// Quota is the processor time that the kernel lets a program use.
type Quota = process.Quota

// memoryShare is the share of its memory limit that a Go program gets as GOMEMLIMIT: the
// rest is for what the Go runtime does not count, such as the program's own
// pages and what the kernel holds for it.
const memoryShare = 0.9

// Environment returns the environment of a control plane that is written in Go: what
// the adapter sets, what the resources make of GOMAXPROCS and GOMEMLIMIT, and
// over both Env. Of a name that comes several times the last value counts.
func (p Resources) Environment(own ...string) []string {
	env := append([]string(nil), own...)
	env = append(env, "GOMAXPROCS="+strconv.Itoa(p.Processors()))
	if p.MemoryBytes > 0 {
		env = append(env, "GOMEMLIMIT="+strconv.FormatInt(int64(memoryShare*float64(p.MemoryBytes)), 10))
	}
	return unique(append(env, p.Env...))
}

// Processors is GOMAXPROCS.
func (p Resources) Processors() int {
	if p.MaxProcs > 0 {
		return p.MaxProcs
	}
	return runtime.NumCPU()
}

// Apply limits a child that is to be started to the resources. What is under test
// runs before what measures it, where its group has priorities.
func (p Resources) Apply(spec process.Spec) process.Spec {
	spec.Quota = p.Quota
	spec.Priority, spec.CountMemory = process.PriorityFirst, true
	if p.Enforced {
		spec.MemoryLimit = p.MemoryBytes
	}
	return spec
}

// Settings adds the resources to the settings in a control plane's description. Values that look like secrets are
// masked.
func (p Resources) Settings(settings map[string]string) map[string]string {
	for _, kv := range p.Environment() {
		if name, value, _ := strings.Cut(kv, "="); name != "GOMAXPROCS" { // which has a place of its own
			settings[name] = mask.Value(name, value)
		}
	}
	return settings
}

// ValueIn returns the value of a variable in an environment (NAME=VALUE), "" if the variable is absent. The last of
// several values counts.
func ValueIn(env []string, name string) (last string) {
	for _, kv := range env {
		if of, value, _ := strings.Cut(kv, "="); of == name {
			last = value
		}
	}
	return last
}

// NumberIn returns a variable of an environment as a number, and otherwise if the value is no number or absent.
func NumberIn(env []string, name string, otherwise float64) float64 {
	if number, err := strconv.ParseFloat(ValueIn(env, name), 64); err == nil {
		return number
	}
	return otherwise
}

// SecondsIn returns a variable of an environment that is a duration, in seconds, and otherwise if the value is no duration
// or absent.
func SecondsIn(env []string, name string, otherwise float64) float64 {
	if d, err := time.ParseDuration(ValueIn(env, name)); err == nil {
		return d.Seconds()
	}
	return otherwise
}

// unique keeps the last of the values of each name, where the first one stood:
// of two, a program may read either.
func unique(env []string) []string {
	at := map[string]int{}
	kept := env[:0]
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if i, ok := at[name]; ok {
			kept[i] = kv
			continue
		}
		at[name] = len(kept)
		kept = append(kept, kv)
	}
	return kept
}
