package component

import (
	"os"
	"path/filepath"
	"strings"
)

// Origin describes where a program comes from.
type Origin struct {
	// Source is one of the Source constants: bin-dir for a program that was given, or image, build or
	// pip for one in the cache.
	Source string
	// Image is the container image that the program was taken from, as REPOSITORY:TAG@DIGEST; ""
	// for others.
	Image string
	// Version is the version that a program from an image reported; "" for others.
	Version string
	// Digest is Report.Digest.
	Digest string
}

// OriginOf gives the origin of the program at a path, which is one that Paths gave.
func OriginOf(o Options, path string) (Origin, error) {
	cache, err := CacheDir(o)
	if err != nil {
		return Origin{}, err
	}
	origin := Origin{Source: SourceBinDir}
	if strings.HasPrefix(path, cache+string(filepath.Separator)) {
		origin = originIn(path)
	}
	origin.Digest, err = Digest(path)
	return origin, err
}

// originIn gives the origin of a program in the cache, without its digest.
func originIn(path string) Origin {
	dir := filepath.Dir(path)
	if text, err := os.ReadFile(filepath.Join(dir, imageName)); err == nil {
		reference, version, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		return Origin{Source: SourceImage, Image: reference, Version: version}
	}
	if strings.Contains(filepath.Base(dir), "-pip-") {
		return Origin{Source: SourcePip}
	}
	return Origin{Source: SourceBuild}
}
