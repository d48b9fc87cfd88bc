package place

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/pkg/record"
)

// Machine describes the machine that scaler runs on.
func Machine() record.Machine {
	return record.Machine{CPUModel: cpuModel(), CPUs: runtime.NumCPU(), Kernel: Kernel()}
}

// cpuModel returns the kernel's name of the first processor; "" where it is
// not known.
func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Kernel returns the release of this machine's kernel; "" where it is not known.
func Kernel() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}
