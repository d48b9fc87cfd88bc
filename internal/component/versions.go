package component

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Report has the version that a program reports, and its digest.
type Report struct {
	// Version is its release: the version that it reports or, where that is not the
	// number of a release and its build information names a module version whose
	// release is known here, that release. "unknown" when it reports none.
	Version string
	// Text is the version as it reports it.
	Text string
	// Digest is the first 12 digits of the SHA-256 of its file: it distinguishes
	// builds that report the same version.
	Digest string
}

// Versions asks programs for their versions, each file once. The zero value is
// ready. It is safe for concurrent use; a nil one asks every time.
type Versions struct {
	mu    sync.Mutex
	known map[string]Report // by name and digest
}

// Of asks the program of this name (as in Names) at path. Its error names the
// program and the end of its output.
func (v *Versions) Of(ctx context.Context, name, path string) (Report, error) {
	g, p := pinned.find(name)
	if g == nil {
		return Report{}, fmt.Errorf("asking for the version of an unknown program %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	digest, err := Digest(path)
	if err != nil {
		return Report{}, fmt.Errorf("reading %s: %w", name, err)
	}
	if v != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		if b, ok := v.known[name+digest]; ok {
			return b, nil
		}
	}
	b, err := p.report(ctx, path)
	if err != nil {
		return Report{}, fmt.Errorf("asking %s for its version: %w", name, err)
	}
	b.Digest = digest
	if v != nil {
		if v.known == nil {
			v.known = map[string]Report{}
		}
		v.known[name+digest] = b
	}
	return b, nil
}

// report gives the report of the program at a path, without its digest.
func (p Program) report(ctx context.Context, path string) (Report, error) {
	reported, err := answer(ctx, path, p.Ask)
	if err != nil {
		return Report{}, err
	}
	b := Report{Version: reported, Text: reported}
	if strings.HasPrefix(p.Version, "v") && release.MatchString("v"+reported) {
		b.Version = "v" + reported // etcd answers without
	}
	if !release.MatchString(strings.TrimPrefix(reported, "v")) {
		b.Version = releaseOf(moduleOf(path), reported)
	}
	return b, nil
}

// release is the number of a release, or of one before it: 1.31.0, 1.32.0-rc.1.
// A pseudo-version of Go is none.
var release = regexp.MustCompile(`^v?\d+\.\d+\.\d+([-+][A-Za-z0-9.]+)?$`)

// releaseOf gives the release of a module version; otherwise, if none is known.
func releaseOf(module, otherwise string) string {
	for _, release := range istioReleases {
		if module == istioModulePath+"@"+istioModuleVersion(release) {
			return release
		}
	}
	return otherwise
}

// moduleOf gives the main module that a program was built from, as PATH@VERSION; ""
// when its file does not say so.
func moduleOf(path string) string {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "" // not written in Go, or stripped of it
	}
	return info.Main.Path + "@" + info.Main.Version
}

// Digest gives Report.Digest of a program's file.
func Digest(path string) (string, error) {
	digest, err := digestOf(path)
	if err != nil {
		return "", err
	}
	return digest[:12], nil
}

// ClusterVersions returns the versions that a cluster's programs report; programs are their
// paths.
func ClusterVersions(ctx context.Context, versions *Versions, programs map[string]string) (kubernetes, kwok string, err error) {
	server, err := versions.Of(ctx, KubeAPIServer, programs[KubeAPIServer])
	if err != nil {
		return "", "", err
	}
	nodes, err := versions.Of(ctx, Kwok, programs[Kwok])
	return server.Version, nodes.Version, err
}
