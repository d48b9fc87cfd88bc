package capture

import (
	"embed"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/boundedfile"
	"scaler.mesh/scaler/pkg/scenario"
)

//go:embed samples/*.yaml
var samples embed.FS

// samplePrefix begins the name of a sample, where the path of a file could be; ./sample:NAME is a file.
const samplePrefix = "sample:"

// Samples returns the names of the meshes that are part of the program, sorted, as in "sample:bookinfo".
func Samples() []string {
	files, err := fs.Glob(samples, "samples/*.yaml")
	if err != nil {
		return nil // the pattern is a constant
	}
	var names []string
	for _, file := range files {
		names = append(names, samplePrefix+strings.TrimSuffix(path.Base(file), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// Open opens the file of a mesh, which is a path, or the name of a sample. The error names the field mesh.file.
func Open(name string) (io.ReadCloser, error) {
	if !strings.HasPrefix(name, samplePrefix) {
		f, err := boundedfile.Open(name, MaxFile)
		if err != nil {
			return nil, scenario.Refuse("mesh.file", name, "the file of a mesh: %s", boundedfile.Cause(err))
		}
		return f, nil
	}
	if !slices.Contains(Samples(), name) {
		return nil, scenario.Refuse("mesh.file", name, "one of %s", strings.Join(Samples(), ", "))
	}
	return samples.Open("samples/" + strings.TrimPrefix(name, samplePrefix) + ".yaml")
}
