package component

import (
	"crypto/sha256"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"sigs.k8s.io/kwok/pkg/consts"

	"scaler.mesh/scaler/internal/component/image"
	"scaler.mesh/scaler/pkg/scenario"
)

// Values of Options.ImageRegistry that are no registry.
const (
	NoImages      = "none"    // no released programs
	DefaultImages = "default" // images in the registries that their projects release them in
)

// The projects whose images may be in a registry of their own.
const (
	imagesOfIstio      = "istio"
	imagesOfKubernetes = "kubernetes" // with etcd and KWOK
	imagesOfPrometheus = "prometheus"
)

var imageProjects = []string{imagesOfIstio, imagesOfKubernetes, imagesOfPrometheus}

// registries maps a project to the beginning of its images' references, which is "" for the registry
// that a reference without a host means, as for docker and crane. A project that is not there has no images.
type registries map[string]string

// defaultRegistry gives the beginning of the references of a project's images where it releases them. KWOK's
// module is the source of the registry that Kubernetes, etcd and KWOK share.
func defaultRegistry(project string) string {
	if project == imagesOfKubernetes {
		return consts.KubeImagePrefix + "/"
	}
	return ""
}

// registries reads ImageRegistry. Its error is a *[scenario.Error].
func (o Options) registries() (registries, error) {
	all := registries{}
	for _, value := range o.ImageRegistry {
		projects, registry := imageProjects, value
		if project, rest, ok := strings.Cut(value, "="); ok {
			projects, registry = []string{project}, rest
			if !slices.Contains(imageProjects, project) {
				return nil, scenario.Refuse("imageRegistry", value, "REGISTRY, or PROJECT=REGISTRY with one of %s", strings.Join(imageProjects, ", "))
			}
		}
		for _, project := range projects {
			switch {
			case registry == NoImages:
				delete(all, project)
			case registry == DefaultImages:
				all[project] = defaultRegistry(project)
			default:
				prefix := strings.TrimSuffix(registry, "/") + "/"
				host, _, _ := strings.Cut(prefix, "/")
				// What looks like no host would be a path in the default registry.
				if err := image.Check(prefix + "name:tag"); err != nil || !strings.ContainsAny(host, ".:") && host != "localhost" {
					return nil, scenario.Refuse("imageRegistry", value, "%s, %s, or HOST[:PORT][/PATH], as in localhost:5000", NoImages, DefaultImages)
				}
				all[project] = prefix
			}
		}
	}
	return all, nil
}

// released describes the container image that a project releases a program in.
type released struct {
	project    string
	repository string // path below the registry
	tag        string
	path       string // of the program in the image, from its root
	// version is the one that the program must report, as Report.Version; "" = any.
	version string
	// asked reports whether the image is used only where it was asked for, by Get.
	asked bool
}

// imagePlace gives the folder in a cache of a program from its image. The registry is not part of it: a mirror has the
// same image.
func (p Program) imagePlace(cache string) string {
	r := p.image
	return filepath.Join(cache, p.Name, r.tag+"-image-"+fingerprint(sha256.New(), r.repository, r.tag, r.path, runtime.GOOS, runtime.GOARCH))
}

// istioImage gives the image of a program of a release of Istio. The state of a branch has none.
func istioImage(release, repository, program string) released {
	if !istioNumber.MatchString(release) {
		return released{}
	}
	return released{project: imagesOfIstio, repository: "istio/" + repository, tag: release, path: "usr/local/bin/" + program, version: release}
}

func kubernetesImage(program, repository, tag, version string) released {
	return released{project: imagesOfKubernetes, repository: repository, tag: tag, path: "usr/local/bin/" + program, version: version}
}

func prometheusImage(program string) released {
	return released{project: imagesOfPrometheus, repository: "prom/prometheus", tag: "v" + prometheusVersion, path: "bin/" + program, version: prometheusVersion}
}
