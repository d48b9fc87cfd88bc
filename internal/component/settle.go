package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/component/image"
	"scaler.mesh/scaler/pkg/scenario"
)

// SettleIstio gives the options with the release of Istio that runs where programs of these names are
// wanted. A release that is not pinned runs from its images, which it takes into the cache. Where they
// cannot be had, the nearest pinned release takes its place, and Options.Progress says so. A release that the registry
// says it does not have is an error, a *[scenario.Error].
func SettleIstio(ctx context.Context, o Options, names ...string) (Options, error) {
	release, err := o.release()
	if err != nil {
		return o, err
	}
	wanted := istioPrograms(release, names)
	if isPinned(release) || o.BinDir != "" || len(wanted) == 0 {
		return o, nil
	}
	if settled := o.offline(release); settled.Istio != release {
		if !o.Unreachable.has(ofRelease(release)) {
			o.Unreachable.add(ofRelease(release))
			settled.sayNearest(release, "no registry with its images is set")
		}
		return settled, nil
	}
	s, err := open(o)
	if err != nil {
		return o, err
	}
	failed, err := s.takeReleased(ctx, wanted)
	if err := errors.Join(err, ctx.Err()); err != nil || len(failed) == 0 {
		return o, err
	}
	nearest, _ := NearestIstio(release)
	var reasons []string
	for _, f := range failed {
		if image.Absent(f.err) {
			return o, scenario.Refuse("controlPlane.version", o.Istio, "a released version: %s; the nearest that is built is %s", f.reason(), nearest)
		}
		reasons = append(reasons, f.String())
	}
	s.unreachable.add(ofRelease(release))
	o.Istio = nearest
	o.sayNearest(release, strings.Join(reasons, "; "))
	return o, nil
}

// istioPrograms gives those of the names that are programs of Istio, and istioctl where manifests are
// rendered.
func istioPrograms(release string, names []string) (wanted []string) {
	for _, name := range istioGraphs(release).names() {
		if slices.Contains(names, name) || name == Istioctl && slices.Contains(names, IstioManifests) {
			wanted = append(wanted, name)
		}
	}
	return wanted
}

// isPinned reports whether a release can be built.
func isPinned(release string) bool { return slices.Contains(istioReleases, release) }

// offline gives the options with the nearest pinned release in place of one whose images are known not to be had.
func (o Options) offline(release string) Options {
	all, err := o.registries()
	if _, set := all[imagesOfIstio]; err == nil && !isPinned(release) && (!set || o.Unreachable.has(ofRelease(release))) {
		o.Istio, _ = NearestIstio(release)
	}
	return o
}

// sayNearest reports that the release of the options runs in place of another.
func (o Options) sayNearest(release, why string) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf("Istio %s, the nearest version that scaler builds, runs in place of %s, whose images cannot be had: %s", o.Istio, release, why))
	}
}

// takeReleased takes those of the programs into the cache that it lacks, and gives what could not be had.
func (s *store) takeReleased(ctx context.Context, names []string) ([]failure, error) {
	var missing []pull
	for g, p := range s.graphs.programs() {
		if !slices.Contains(names, p.Name) || s.intact(g, p, toolchain{}) != "" {
			continue
		}
		if !s.hasImage(p) {
			return nil, errors.New(p.withoutImage())
		}
		one := pull{g: g, Program: p}
		if host := image.Registry(s.reference(one)); s.unreachable.has(ofHost(host)) {
			return []failure{{registry: host, programs: names, err: errors.New("it does not answer")}}, nil
		}
		missing = append(missing, one)
	}
	return s.pullAll(ctx, missing), nil
}
