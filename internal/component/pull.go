package component

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/component/image"
)

const (
	// registrySilence is the longest time in which a registry may send nothing; then programs are built instead.
	registrySilence = 5 * time.Second
	// pullTimeout is the time limit of all images together, which are up to 350 MB each: beyond it, building
	// is no slower.
	pullTimeout = 10 * time.Minute
)

// imageName is the file next to a cached program that has the image it is from, as
// REPOSITORY:TAG@DIGEST, and in its second line the version that it reported. A built program has
// none.
const imageName = "image"

// Unreachable are the registries that did not answer, and the releases of Istio whose images could not be
// had, so that each is tried once. The zero value is ready, a nil one remembers nothing. It is safe for
// concurrent use.
type Unreachable struct {
	mu    sync.Mutex
	known map[string]bool
}

// The keys of a registry's host and of a release.
func ofHost(host string) string       { return "host " + host }
func ofRelease(release string) string { return "release " + release }

func (u *Unreachable) has(key string) bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.known[key]
}

func (u *Unreachable) add(key string) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known == nil {
		u.known = map[string]bool{}
	}
	u.known[key] = true
}

// Get puts released programs into the cache, out of their container images, and reports on them;
// all that are released if none is named. Each is named by NAME or NAME@DIGEST, of which the
// latter demands that digest of the image. Nothing is built: its error states what could not be
// had.
func Get(ctx context.Context, o Options, wanted ...string) ([]Status, error) {
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	if len(s.registries) == 0 {
		return nil, errors.New("getting released programs: no registry is set; name one by --image-registry or SCALER_IMAGE_REGISTRY")
	}
	digests := map[string]string{}
	for _, w := range wanted {
		name, digest, _ := strings.Cut(w, "@")
		digests[name] = digest
	}
	var all []pull
	for g, p := range s.graphs.programs() {
		digest, named := digests[p.Name]
		delete(digests, p.Name)
		if len(wanted) > 0 && !named {
			continue
		}
		if s.hasImage(p) {
			all = append(all, pull{g, p, digest})
		} else if named {
			return nil, fmt.Errorf("getting %s %s: %s", p.Name, p.Version, p.withoutImage())
		}
	}
	for name := range digests {
		return nil, s.unknown(name)
	}
	// A program that is there already is taken again only where another digest is wanted.
	missing := slices.DeleteFunc(slices.Clone(all), func(p pull) bool {
		path := s.intact(p.g, p.Program, toolchain{})
		if path == "" {
			return false
		}
		from := originIn(path).image
		return from != "" && (p.digest == "" || strings.HasSuffix(from, "@"+p.digest))
	})
	if failed := s.pullAll(ctx, missing); len(failed) > 0 {
		var wrong []error
		for _, f := range failed {
			wrong = append(wrong, fmt.Errorf("getting %s: %w", strings.Join(f.programs, ", "), f.err))
		}
		return nil, errors.Join(wrong...)
	}
	var got []Status
	for _, p := range all {
		got = append(got, s.status(p.g, p.Program, toolchain{}))
	}
	return got, ctx.Err()
}

// withoutImage states why no image is known for a program.
func (p Program) withoutImage() string {
	project := p.image.project
	if project == "" {
		return "it is not released in an image; scaler builds it: components build " + p.Name
	}
	return fmt.Sprintf("no registry with images of %s is set; name one by --image-registry %s=HOST[:PORT][/PATH]", project, project)
}

// hasImage reports whether a program is released in an image and a registry for it is set.
func (s *store) hasImage(p Program) bool {
	_, set := s.registries[p.image.project]
	return set
}

// pull is a program that is to be taken from its image.
type pull struct {
	g *Graph
	Program
	digest string // that the image must have; "" = whichever it has
}

// reference gives the image of a program as users of docker and crane write it.
func (s *store) reference(p pull) string {
	repository := s.registries[p.image.project] + p.image.repository
	if p.digest != "" {
		return repository + "@" + p.digest
	}
	return repository + ":" + p.image.tag
}

// failure states why programs could not be taken from the images of a registry.
type failure struct {
	registry string
	programs []string
	err      error // of the first of them
}

// String states a failure in one line, whatever a registry answers.
func (f failure) String() string {
	return fmt.Sprintf("%s from %s (%s)", strings.Join(f.programs, ", "), f.registry, f.reason())
}

func (f failure) reason() string { return strings.Join(strings.Fields(f.err.Error()), " ") }

// pullMissing takes those of the missing programs of each graph that are released from their
// images, and gives their paths. It reports in one line for each registry those that could not be
// taken, which are left to be built.
func (s *store) pullMissing(ctx context.Context, missing [][]Program) map[string]string {
	var wanted []pull
	for i := range s.graphs {
		for _, p := range missing[i] {
			one := pull{g: &s.graphs[i], Program: p}
			if s.hasImage(p) && !p.image.asked && !s.unreachable.has(ofHost(image.Registry(s.reference(one)))) {
				wanted = append(wanted, one)
			}
		}
	}
	failed := s.pullAll(ctx, wanted)
	taken := map[string]string{}
	for _, p := range wanted {
		if !slices.ContainsFunc(failed, func(f failure) bool { return slices.Contains(f.programs, p.Name) }) {
			taken[p.Name] = filepath.Join(p.imagePlace(s.dir), p.Name)
		}
	}
	if len(failed) == 0 || ctx.Err() != nil {
		return taken
	}
	for _, f := range failed {
		s.progress("building instead of taking released programs: " + f.String())
	}
	return taken
}

// pullAll takes programs from their images into the cache, and gives what failed, by registry.
func (s *store) pullAll(ctx context.Context, wanted []pull) (failed []failure) {
	if len(wanted) == 0 {
		return nil
	}
	client := image.NewClient(s.silence)
	defer client.Close()
	fail := func(registry string, from []pull, err error) {
		i := slices.IndexFunc(failed, func(f failure) bool { return f.registry == registry })
		if i < 0 {
			i, failed = len(failed), append(failed, failure{registry: registry, err: err})
		}
		for _, p := range from {
			failed[i].programs = append(failed[i].programs, p.Name)
		}
	}

	// All are asked for at once: a registry that does not answer is waited for once.
	ctx, cancel := context.WithTimeoutCause(ctx, pullTimeout, fmt.Errorf("taking programs from images took longer than %v", pullTimeout))
	defer cancel()
	var references []string
	for _, p := range wanted {
		if r := s.reference(p); !slices.Contains(references, r) {
			references = append(references, r)
		}
	}
	found, wrong := make([]*image.Image, len(references)), make([]error, len(references))
	var asking sync.WaitGroup
	for i, reference := range references {
		asking.Go(func() { found[i], wrong[i] = client.Find(ctx, reference) })
	}
	asking.Wait()
	for i, reference := range references {
		registry := image.Registry(reference)
		for _, from := range s.byGraph(wanted, reference) {
			err := wrong[i]
			if err == nil && !s.unreachable.has(ofHost(registry)) {
				err = s.take(ctx, found[i], from)
			} else if err == nil {
				err = errors.New("it does not answer any more")
			}
			if err != nil && image.Unreachable(err) {
				s.unreachable.add(ofHost(registry))
			}
			if err != nil {
				fail(registry, from, err)
			}
		}
		if found[i] != nil {
			found[i].Close()
		}
	}
	return failed
}

// byGraph gives the wanted programs that are in an image, those of each graph together.
func (s *store) byGraph(wanted []pull, reference string) (groups [][]pull) {
	for _, p := range wanted {
		if s.reference(p) != reference {
			continue
		}
		i := slices.IndexFunc(groups, func(group []pull) bool { return group[0].g == p.g })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

// take takes programs of one image and graph into the cache.
func (s *store) take(ctx context.Context, from *image.Image, programs []pull) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return hinted(fmt.Errorf("making the cache folder: %w", err), "")
	}
	g := programs[0].g
	unlock, err := s.lock(ctx, g)
	if err != nil {
		return err
	}
	defer unlock()
	dir, err := s.buildFolder(g)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	start := time.Now()
	files := map[string]string{}
	var all []Program
	for _, p := range programs {
		files[p.image.path] = filepath.Join(dir, p.Name)
		all = append(all, p.Program)
	}
	s.progress(fmt.Sprintf("taking %s from the image %s, this once; kept in %s", list(all), from.Reference, s.dir))
	if err := from.Take(files); err != nil {
		return err
	}
	var size int64
	for _, p := range programs {
		taken := filepath.Join(dir, p.Name)
		version, err := p.check(ctx, taken)
		if err != nil {
			return err
		}
		n, err := p.place(taken, p.imagePlace(s.dir), map[string]string{imageName: from.Reference + "\n" + version + "\n"}, "")
		if err != nil {
			return hinted(err, "")
		}
		size += n
	}
	s.progress(fmt.Sprintf("took %s in %v, %d MB", list(all), time.Since(start).Round(time.Second), size/1_000_000))
	return nil
}

// check runs a program that was taken, and gives its version: it must work here, and be of the
// version that is wanted.
func (p pull) check(ctx context.Context, path string) (version string, err error) {
	reported, err := p.report(ctx, path)
	if err != nil {
		return "", fmt.Errorf("trying the released %s: %w", p.Name, err)
	}
	if p.image.version != "" && reported.Version != p.image.version {
		return "", fmt.Errorf("trying the released %s: it is of version %s, want %s", p.Name, reported.Version, p.image.version)
	}
	return reported.Version, nil
}
