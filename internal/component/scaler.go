package component

import (
	"runtime/debug"
	"sync"
)

// ScalerVersion returns the version of this program, as the go command recorded it. A program that was
// built without one, as by go run, is identified by its own digest.
var ScalerVersion = sync.OnceValue(func() string {
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
	digest, err := Digest(path)
	if err != nil {
		return ""
	}
	return digest
}
