package experiment

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/pkg/record"
)

// Machine is the one that scaler runs on.
func Machine() record.Machine {
	return record.Machine{CPUModel: cpuModel(), CPUs: runtime.NumCPU(), Kernel: Kernel()}
}

// cpuModel is what the kernel calls the first processor; "" where it is
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

// Version is scaler's own, as the go command recorded it. A program that was
// built without one, as by go run, is identified by its own digest.
var Version = sync.OnceValue(func() string {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && version == "(devel)" {
				version = s.Value
			}
		}
	}
	if version != "(devel)" {
		return version
	}
	if build := ProgramDigest("/proc/self/exe"); build != "" {
		return "devel-" + build
	}
	return version
})

// ProgramDigest distinguishes builds of a program that report the same version: the first 12
// digits of its SHA-256; "" of one that cannot be read.
func ProgramDigest(path string) string {
	digest, err := component.Digest(path)
	if err != nil {
		return ""
	}
	return digest
}

// MemoryBytes is the size of this machine's memory; 0 where it is not known.
func MemoryBytes() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// Kernel is the release of this machine's kernel; "" where it is not known.
func Kernel() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// FirstLine is the first line of an error's message, for where one line is shown.
func FirstLine(err error) string {
	line, _, _ := strings.Cut(fmt.Sprint(err), "\n")
	return line
}
