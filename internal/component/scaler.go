package component

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"runtime/debug"
	"sync"
)

// ScalerVersion returns the version of this program, as the go command recorded it. A program that was
// built without one, as by go run, is identified by its build ID.
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
	if build := buildID("/proc/self/exe"); build != "" {
		return "devel-" + build
	}
	return version
})

// buildID distinguishes builds of a Go program: the first 12 digits of the SHA-256 of the ID that the go command
// wrote into it, which is one of all that it was made from; "" of one without it. Every scaler reads its own as it starts,
// so that reading the whole program would take too long.
func buildID(path string) string {
	program, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer program.Close()
	note := program.Section(".note.go.buildid")
	if note == nil {
		return ""
	}
	id, err := note.Data()
	if err != nil {
		return ""
	}
	digest := sha256.Sum256(id)
	return hex.EncodeToString(digest[:6])
}
