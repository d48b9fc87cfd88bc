package component

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// ProgramOrigins returns where programs are from, as the record has it; paths says by
// name where each is, as Paths gives it.
func ProgramOrigins(options Options, paths map[string]string) (map[string]record.Program, error) {
	all := map[string]record.Program{}
	for name, path := range paths {
		if name == IstioManifests {
			continue // a folder
		}
		var err error
		if all[name], err = programOrigin(options, path); err != nil {
			return nil, fmt.Errorf("finding where %s is from: %w", name, err)
		}
	}
	return all, nil
}

func programOrigin(options Options, path string) (record.Program, error) {
	cache, err := CacheDir(options)
	if err != nil {
		return record.Program{}, err
	}
	program := record.Program{Source: "given"}
	if strings.HasPrefix(path, cache+string(filepath.Separator)) {
		from := originIn(path)
		program.Source, program.Image = from.source, from.image
	}
	program.Digest, err = Digest(path)
	return program, err
}

// origin describes where a program in the cache comes from.
type origin struct {
	source  string // one of the Source constants: image, build or pip
	image   string // that it was taken from, as REPOSITORY:TAG@DIGEST; "" for others
	version string // that a program from an image reported; "" for others
}

// originIn gives the origin of a program in the cache.
func originIn(path string) origin {
	dir := filepath.Dir(path)
	if text, err := os.ReadFile(filepath.Join(dir, imageName)); err == nil {
		reference, version, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		return origin{source: SourceImage, image: reference, version: version}
	}
	if strings.Contains(filepath.Base(dir), "-pip-") {
		return origin{source: SourcePip}
	}
	return origin{source: SourceBuild}
}
