package component

import (
	"cmp"
	"embed"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/pkg/scenario"
)

// istioFiles has the module files of the releases of Istio except for the default one. Such a .sum has
// only what go.sum of Istio's module lacks: its own hash and those of replacements. The rest is
// taken from that go.sum, which the module's hash covers.
//
//go:embed modules/istio-*
var istioFiles embed.FS

// istioModulePath is the path of Istio's module. Its tags are no versions of a Go module, so each
// release is pinned by a pseudo-version.
const istioModulePath = "istio.io/istio"

// IstioDefault is the release of Istio that is used when none is asked for.
const IstioDefault = "1.31.0"

// istioReleases are the releases of Istio that can be built. The first one of a line is used for the
// line. A name with a date is not a release but the state of a branch on that day.
var istioReleases = []string{IstioDefault, "1.31-20260423", "1.30-20260826", "1.29.1", "1.28.3", "1.27.0"}

// IstioReleases lists the values of Options.Istio, newest line first.
func IstioReleases() []string { return slices.Clone(istioReleases) }

// IstioLine gives the line that a version of Istio belongs to, as in 1.29; "" for a text that is no version.
func IstioLine(version string) string { return istioLine.FindString(strings.TrimPrefix(version, "v")) }

var istioLine = regexp.MustCompile(`^\d+\.\d+`)

// IstioRelease gives the release that a value of Options.Istio means: itself, or for a line alone
// the one that is used for the line. Its error is a *[scenario.Error]. Whether the images of a release that is
// not pinned can be had is not known here.
func IstioRelease(value string) (string, error) {
	value = cmp.Or(value, IstioDefault)
	if isPinned(value) || istioNumber.MatchString(value) {
		return value, nil
	}
	if release, ok := istioReleaseOf(value); ok && value == IstioLine(value) {
		return release, nil
	}
	return "", scenario.Refuse("controlPlane.version", value, "%s", wantedIstio())
}

// wantedIstio states what is wanted in place of a value that means no release.
func wantedIstio() string { return pinnedIstio() + ", or the number of another release, as in 1.30.2" }

// pinnedIstio states which values mean a release that can be built.
func pinnedIstio() string {
	return "one of " + strings.Join(istioReleases, ", ") + ", a minor version of these, as in " + IstioLine(IstioDefault)
}

// istioNumber matches the number of a release, all of which have the major version 1.
var istioNumber = regexp.MustCompile(`^1\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)

// CheckIstio states what is wanted in place of a value that means no release of Istio; "" if it means one.
func CheckIstio(value string) string {
	if _, err := IstioRelease(value); err != nil || value == "" {
		return wantedIstio()
	}
	return ""
}

// istioReleaseOf gives the release that is used for the line of a version.
func istioReleaseOf(version string) (string, bool) {
	i := slices.IndexFunc(istioReleases, func(release string) bool {
		return IstioLine(version) != "" && IstioLine(release) == IstioLine(version)
	})
	if i < 0 {
		return "", false
	}
	return istioReleases[i], true
}

// NearestIstio gives the release that can be built which is nearest to a version: that version, the one of its line, or
// that of the line next to it, the newer of two. exact reports that it is that version.
func NearestIstio(version string) (release string, exact bool) {
	version = strings.TrimPrefix(version, "v")
	if slices.Contains(istioReleases, version) {
		return version, true
	}
	if release, ok := istioReleaseOf(version); ok {
		return release, false
	}
	apart := func(release string) int {
		of, to := minor(release)-minor(version), minor(version)-minor(release)
		return max(of, to)
	}
	return slices.MinFunc(istioReleases, func(a, b string) int { return apart(a) - apart(b) }), false
}

// minor returns the number of the line of a version, counted over all major versions.
func minor(version string) int {
	major, line, _ := strings.Cut(IstioLine(version), ".")
	of, _ := strconv.Atoi(major)
	n, _ := strconv.Atoi(line)
	return of*1000 + n
}

// istioModFiles gives the module files of a release.
func istioModFiles(release string) (mod, sum string) {
	if release == IstioDefault {
		return istioMod, istioSum
	}
	var files [2]string
	for i, suffix := range []string{".mod", ".sum"} {
		text, err := istioFiles.ReadFile("modules/istio-" + release + suffix)
		if err != nil {
			return "", "" // a test reads those of every release
		}
		files[i] = string(text)
	}
	return files[0], files[1]
}

// istioModuleVersion gives the version of Istio's module for a release.
func istioModuleVersion(release string) string {
	mod, _ := istioModFiles(release)
	return moduleVersion(mod, istioModulePath)
}

// moduleVersion gives the version at which a module file requires a module; "" if it does not.
func moduleVersion(mod, module string) string {
	for line := range strings.Lines(mod) {
		fields := strings.Fields(strings.TrimPrefix(line, "require")) // alone, or in a block
		if len(fields) >= 2 && fields[0] == module {
			return fields[1]
		}
	}
	return ""
}

// istioGraphs gives the module graphs of a release: of istiod and istioctl, and of the agent.
func istioGraphs(release string) graphs {
	version := release
	name, agent, title := "istio-"+release, "istio-agent-"+release, " "+release
	if release == IstioDefault {
		version, name, agent, title = istioVersion, "istio", "istio-agent", ""
	}
	mod, sum := istioModFiles(release)
	commit := istioModuleVersion(release)
	commit = commit[strings.LastIndex(commit, "-")+1:]
	// As common/scripts/report_build_info.sh of istio.io/istio sets them; unstamped its programs
	// say "unknown".
	stamps := []string{
		"istio.io/istio/pkg/version.buildVersion=" + version,
		"istio.io/istio/pkg/version.buildGitRevision=" + commit,
		"istio.io/istio/pkg/version.buildTag=" + version,
		"istio.io/istio/pkg/version.buildStatus=Clean",
	}
	completes := istioModulePath
	if release == IstioDefault {
		completes = ""
	}
	return []Graph{
		{
			Name: name, Title: "Istio" + title, Mod: mod, Sum: sum, SumFrom: completes, Stamps: stamps,
			// STANDARD_TAGS in Makefile.core.mk of istio.io/istio, as its releases are built. They
			// matter here: vtprotobuf is the faster of two ways to marshal configuration.
			Tags: "vtprotobuf,disable_pgv",
			Programs: []Program{
				{Istiod, version, "istio.io/istio/pilot/cmd/pilot-discovery", "pilot-discovery", []string{"version", "-o", "json"}, istioImage(release, "pilot", "pilot-discovery")},
				{Istioctl, version, "istio.io/istio/istioctl/cmd/istioctl", Istioctl, []string{"version", "--remote=false"}, istioImage(release, "istioctl", Istioctl)},
			},
		},
		{
			Name: agent, Title: "Istio's agent" + title, Mod: mod, Sum: sum, SumFrom: completes, Stamps: stamps,
			// AGENT_TAGS of the same file.
			Tags: "agent,disable_pgv,grpcnotrace,retrynotrace",
			Programs: []Program{
				{PilotAgent, version, "istio.io/istio/pilot/cmd/pilot-agent", PilotAgent, []string{"version", "-o", "json"}, istioImage(release, "proxyv2", PilotAgent)},
			},
		},
	}
}

// graphsOf gives all graphs, with Istio of a release.
func graphsOf(release string) graphs {
	return slices.Concat(firstGraphs, istioGraphs(release), lastGraphs, []Graph{envoyGraph(release)})
}
