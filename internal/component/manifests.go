package component

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"scaler.mesh/scaler/internal/process"
)

// IstioManifests names a folder, which Paths gives as it gives programs: the objects that istioctl
// installs of a release of Istio, Envoy's bootstrap template of that release, and the kinds of the
// Gateway API of the version that it is built with.
const IstioManifests = "istio-manifests"

// Files of the folder IstioManifests.
const (
	IstioManifestsFile = "istio.yaml"           // the output of `istioctl manifest generate`, unedited
	IstioBootstrapFile = "envoy_bootstrap.json" // tools/packaging/common/envoy_bootstrap.json of Istio's module, unedited
	GatewayAPIFile     = "gateway-api.yaml"     // the files of config/crd/standard of the Gateway API's module, one after the other
)

// gatewayAPIPath is the module of the Gateway API.
const gatewayAPIPath = "sigs.k8s.io/gateway-api"

// manifests has the folder of the default release, each file compressed with gzip;
// hack/update-manifests.sh writes it. With it no Go toolchain is needed where all programs are ready.
//
//go:embed manifests/*.gz
var manifests embed.FS

// manifest gives a file of the default release's folder, decompressed.
func manifest(name string) ([]byte, error) {
	compressed, err := manifests.Open(path.Join("manifests", name+".gz"))
	if err != nil {
		return nil, err
	}
	defer compressed.Close()
	text, err := gzip.NewReader(compressed)
	if err != nil {
		return nil, fmt.Errorf("decompressing %s: %w", name, err)
	}
	return io.ReadAll(text)
}

// renderArgs gives the arguments of istioctl, which renders the charts of a folder of Istio's module, or without
// one those that it has itself. The registry and the tag are only in objects that are not installed: no container is started.
func renderArgs(module, release, revision string) []string {
	args := []string{"manifest", "generate"}
	if module != "" {
		args = append(args, "--manifests", filepath.Join(module, "manifests"))
	}
	args = append(args, "--set", "profile=minimal", "--set", "hub=docker.io/istio", "--set", "tag="+release)
	if revision != "" {
		args = append(args, "--set", "revision="+revision, "--set", "values.revisionTags[0]=default")
	}
	return args
}

// istioManifests gives the folder IstioManifests of a release, and of a revision of it unless
// that is "", having made it in the cache. Those of a release that is not pinned are rendered by its own istioctl, from the
// charts that this has; the other files are those of the nearest pinned release.
func (s *store) istioManifests(ctx context.Context, release, revision string) (string, error) {
	base, exact := NearestIstio(release)
	mod, sum := istioModFiles(base)
	charts, istioctl := ".", Version(Istioctl)
	if !exact {
		own, err := s.paths(ctx, "", []string{Istioctl})
		if err != nil {
			return "", err
		}
		if istioctl, err = Digest(own[Istioctl]); err != nil {
			return "", err
		}
		charts = ""
	}
	inputs := append(renderArgs(charts, release, revision), mod, sum, istioctl, GatewayAPIFile)
	place := filepath.Join(s.dir, IstioManifests, release+"-"+fingerprint(sha256.New(), inputs...))
	if manifestsIntact(place) {
		return place, nil
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return "", hinted(fmt.Errorf("making the cache folder: %w", err), "")
	}
	g := &Graph{Name: IstioManifests, Title: "the manifests of Istio " + release, Mod: mod, Sum: sum}
	unlock, err := s.lock(ctx, g)
	if err != nil {
		return "", err
	}
	defer unlock()
	if manifestsIntact(place) {
		return place, nil // another scaler made it meanwhile
	}
	dir, err := s.buildFolder(g)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	files, err := s.manifestFiles(ctx, g, release, revision, dir)
	if err != nil {
		return "", fmt.Errorf("making %s: %w", g.Title, err)
	}
	ready := filepath.Join(dir, "ready")
	if err := os.Mkdir(ready, 0o755); err != nil {
		return "", hinted(err, "")
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(ready, name), text, 0o644); err != nil {
			return "", hinted(err, "")
		}
	}
	return place, errors.Join(writeDigest(filepath.Join(ready, IstioManifestsFile)), os.RemoveAll(place), os.Rename(ready, place))
}

// manifestsIntact reports whether the folder is there, with the manifests as they were rendered.
func manifestsIntact(dir string) bool {
	file := filepath.Join(dir, IstioManifestsFile)
	if _, err := os.Stat(file); err != nil {
		return false
	}
	ok, err := verify(file)
	return ok && err == nil
}

// manifestFiles gives the files of a release. A pinned one is rendered by the pinned istioctl from its module, another by
// its own istioctl. dir is a folder for what is made on the way.
func (s *store) manifestFiles(ctx context.Context, g *Graph, release, revision, dir string) (map[string][]byte, error) {
	base, exact := NearestIstio(release)
	files := map[string][]byte{}
	if base == IstioDefault {
		for _, name := range []string{IstioManifestsFile, IstioBootstrapFile, GatewayAPIFile} {
			var err error
			if files[name], err = manifest(name); err != nil {
				return nil, err
			}
		}
		if exact && revision == "" {
			return files, nil
		}
	}
	module := ""
	if exact || base != IstioDefault {
		tc, err := s.probeToolchain(ctx)
		if err != nil {
			return nil, err
		}
		if module, err = g.moduleFolder(ctx, istioModulePath, tc, dir); err != nil {
			return nil, err
		}
		if files[IstioBootstrapFile], err = os.ReadFile(filepath.Join(module, "tools", "packaging", "common", IstioBootstrapFile)); err != nil {
			return nil, err
		}
		if files[GatewayAPIFile], err = gatewayAPI(ctx, module, tc, dir); err != nil {
			return nil, err
		}
	}
	var err error
	files[IstioManifestsFile], err = s.render(ctx, release, revision, module, dir)
	return files, err
}

// render gives the manifests of a release. dir is istioctl's home.
func (s *store) render(ctx context.Context, release, revision, module, dir string) ([]byte, error) {
	own := *s
	if isPinned(release) {
		own.graphs = pinned
	} else {
		module = "" // the charts are those of its istioctl
	}
	programs, err := own.paths(ctx, "", []string{Istioctl})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, programs[Istioctl], renderArgs(module, release, revision)...)
	cmd.Env = []string{"HOME=" + dir, "PATH=/usr/bin:/bin"} // no setting of the user's
	var log bytes.Buffer
	cmd.Stderr = &log
	rendered, err := process.Output(cmd)
	if err != nil {
		return nil, fmt.Errorf("running %s: %w: %s", commandLine(cmd.Args), err, lastLines(log.String(), 3))
	}
	return rendered, nil
}

// gatewayAPI gives the standard kinds of the Gateway API at the version that a module of Istio
// requires, in one file. dir is a folder for files of Go's.
func gatewayAPI(ctx context.Context, istio string, tc toolchain, dir string) ([]byte, error) {
	mod, modErr := os.ReadFile(filepath.Join(istio, "go.mod"))
	sum, sumErr := os.ReadFile(filepath.Join(istio, "go.sum"))
	if err := errors.Join(modErr, sumErr); err != nil {
		return nil, err
	}
	g := &Graph{Title: "the Gateway API", Mod: string(mod), Sum: string(sum)}
	module, err := g.moduleFolder(ctx, gatewayAPIPath, tc, dir)
	if err != nil {
		return nil, err
	}
	parts, err := filepath.Glob(filepath.Join(module, "config", "crd", "standard", "*.yaml")) // in the order of their names
	if err == nil && len(parts) == 0 {
		err = fmt.Errorf("%s has no config/crd/standard/*.yaml", module)
	}
	var all []byte
	for _, part := range parts {
		text, readErr := os.ReadFile(part)
		all = append(append(all, "---\n"...), text...)
		err = errors.Join(err, readErr)
	}
	return all, err
}

// moduleFolder downloads a module of the graph, if need be, and gives its folder. It refuses a
// module whose hash is not the one that the graph has for it. dir is a folder for the graph's files.
func (g *Graph) moduleFolder(ctx context.Context, module string, tc toolchain, dir string) (string, error) {
	version := moduleVersion(g.Mod, module)
	hash := ""
	for line := range strings.Lines(g.Sum) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == module && fields[1] == version {
			hash = fields[2]
		}
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte(g.Mod), 0o644),
		os.WriteFile(filepath.Join(dir, "go.sum"), []byte(g.Sum), 0o644),
	); err != nil {
		return "", hinted(fmt.Errorf("writing the module file of %s: %w", g.Title, err), "")
	}
	cmd := exec.CommandContext(ctx, tc.path, "mod", "download", "-json", module+"@"+version)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "GO111MODULE=on", "GOWORK=off", strings.TrimSpace("GOFLAGS=-mod=readonly "+tc.flags))
	out, err := process.Output(cmd)
	var got struct{ Dir, Sum, Error string }
	if parseErr := json.Unmarshal(out, &got); parseErr == nil && got.Error != "" {
		err = errors.New(got.Error)
	} else if err == nil {
		err = parseErr
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, lastLines(string(exit.Stderr), 3))
	}
	if err == nil && (hash == "" || got.Sum != hash) {
		err = fmt.Errorf("its hash is %s, want %s", got.Sum, hash)
	}
	if err != nil {
		return "", hinted(fmt.Errorf("downloading %s@%s: %w", module, version, err), "")
	}
	return got.Dir, nil
}

// manifestsFor gives the folder IstioManifests that fits the istiod of the options.
func (s *store) manifestsFor(ctx context.Context, o Options) (string, error) {
	if o.BinDir != "" {
		return s.manifestsOf(ctx, o.BinDir)
	}
	release, err := o.release()
	if err != nil {
		return "", err
	}
	return s.istioManifests(ctx, release, o.IstioRevision)
}

// manifestsOf gives the folder IstioManifests for the istiod of a folder of ready programs: the one
// in the folder itself or, without one, the one of its version's line.
func (s *store) manifestsOf(ctx context.Context, binDir string) (string, error) {
	own, err := filepath.Abs(filepath.Join(binDir, IstioManifests))
	if err != nil {
		return "", fmt.Errorf("finding the folder %q: %w", binDir, err)
	}
	if _, err := os.Stat(filepath.Join(own, IstioManifestsFile)); err == nil {
		return own, nil
	}
	programs, err := s.pathsIn(ctx, binDir, []string{Istiod})
	if err != nil {
		return "", err
	}
	report, err := new(Versions).Of(ctx, Istiod, programs[Istiod])
	if err != nil {
		return "", err
	}
	release, exact := NearestIstio(report.Version)
	if !exact {
		var known bool
		if release, known = istioReleaseOf(report.Version); !known {
			return "", fmt.Errorf("using --bin-dir %q: its istiod is of version %q, and scaler has the manifests of %s: put those of its version there, as %s and %s (`istioctl manifest generate --set profile=minimal` and tools/packaging/common/%s of that version's source)",
				binDir, report.Version, strings.Join(istioReleases, ", "),
				filepath.Join(IstioManifests, IstioManifestsFile), filepath.Join(IstioManifests, IstioBootstrapFile), IstioBootstrapFile)
		}
	}
	return s.istioManifests(ctx, release, "")
}
