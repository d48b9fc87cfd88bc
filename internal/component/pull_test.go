package component

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/kwok/pkg/consts"

	"scaler.mesh/scaler/test/imagetest"
)

var thisPlatform = imagetest.Here()

// reporter returns a program that reports a version.
func reporter(version string) string { return "#!/bin/sh\necho version " + version + "\n" }

// pushFakes puts an image with programs, by their paths in it, into a registry.
func pushFakes(t *testing.T, host string, platform v1.Platform, files map[string]string) (digest string) {
	t.Helper()
	var entries []imagetest.Entry
	for path, content := range files {
		entries = append(entries, imagetest.Entry{Name: path, Content: content})
	}
	layer, err := imagetest.Layer(entries...)
	if err != nil {
		t.Fatal(err)
	}
	image, err := imagetest.Image(platform, layer)
	if err != nil {
		t.Fatal(err)
	}
	if err := imagetest.Push(t.Context(), host+"/fakes/all:v1.2.3", image); err != nil {
		t.Fatal(err)
	}
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

// releasedFakes returns a store whose programs can be built and are released in an image of a registry.
// Built ones report version v1.2.3 too, after the word "version" alone.
func releasedFakes(t *testing.T, handler http.Handler) (s *store, host string, reported func() string) {
	t.Helper()
	if os.Getenv("GOCACHE") == "" { // it is in HOME otherwise
		base, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("GOCACHE", filepath.Join(base, "go-build"))
	}
	emptyHome(t)
	t.Setenv("DOCKER_CONFIG", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("REGISTRY_AUTH_FILE", "")
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	s, _, reported = newStore(t, goodSource)
	s.silence = time.Minute
	s.registries = registries{imagesOfKubernetes: host + "/"}
	s.unreachable = new(Unreachable)
	for i := range s.graphs[0].Programs {
		p := &s.graphs[0].Programs[i]
		p.image = released{project: imagesOfKubernetes, repository: "fakes/all", tag: "v1.2.3", path: "bin/" + p.Name, version: "v1.2.3"}
	}
	return s, host, reported
}

func TestProgramsFromImages(t *testing.T) {
	registry := imagetest.Registry()
	var requests atomic.Int64
	s, host, reported := releasedFakes(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		registry.ServeHTTP(w, r)
	}))
	digest := pushFakes(t, host, thisPlatform, map[string]string{"bin/fake": reporter("v1.2.3"), "bin/other": reporter("v1.2.3")})
	paths, err := s.paths(t.Context(), "", []string{"fake", "other"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fake", "other"} {
		if content, err := os.ReadFile(paths[name]); err != nil || string(content) != reporter("v1.2.3") {
			t.Errorf("%s is %q, %v; want the one of the image", name, content, err)
		}
		want := origin{source: SourceImage, image: host + "/fakes/all:v1.2.3@" + digest, version: "v1.2.3"}
		if got := originIn(paths[name]); got != want {
			t.Errorf("%s is from %+v, want %+v", name, got, want)
		}
	}
	if got := reported(); strings.Contains(got, "building") || !strings.Contains(got, "took fake, other in") {
		t.Errorf("progress = %q, want both taken at once", got)
	}
	checkClean(t, s)

	// The cache has them now, and lists them.
	before := requests.Load()
	if again, err := s.paths(t.Context(), "", []string{"fake"}); err != nil || again["fake"] != paths["fake"] {
		t.Errorf("second time: %v, %v; want it from the cache", again, err)
	}
	all, err := s.list(t.Context(), "")
	if err != nil || all[0].Source != SourceImage || all[0].Path != paths["fake"] || !strings.HasSuffix(all[0].Image, digest) || all[0].Version != "v1.2.3" {
		t.Errorf("list = %+v, %v", all, err)
	}
	if now := requests.Load(); now != before {
		t.Errorf("%d requests for what is in the cache", now-before)
	}
	// One that was changed is taken again.
	if err := os.WriteFile(paths["fake"], []byte(reporter("v6.6.6")), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err = s.paths(t.Context(), "", []string{"fake"}); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(paths["fake"]); err != nil || string(content) != reporter("v1.2.3") {
		t.Errorf("%q, %v: the changed program is still there", content, err)
	}
	// Without registries, those in the cache are not used either.
	s.registries = nil
	built, err := s.paths(t.Context(), "", []string{"fake"})
	if err != nil || originIn(built["fake"]) != (origin{source: SourceBuild}) {
		t.Errorf("without registries: %v, %v; want it built", built, err)
	}
}

// What cannot be had is built, and one line says why.
func TestProgramsAreBuiltInstead(t *testing.T) {
	good := map[string]string{"bin/fake": reporter("v1.2.3")}
	for title, tc := range map[string]struct {
		platform v1.Platform
		files    map[string]string // nil = no image
		want     string
	}{
		"no image":         {thisPlatform, nil, "fake from HOST (finding the image HOST/fakes/all:v1.2.3"},
		"another platform": {v1.Platform{OS: "plan9", Architecture: "mips"}, good, "it is for plan9/mips, want "},
		"no such file":     {thisPlatform, map[string]string{"usr/bin/fake": reporter("v1.2.3")}, "it has no file bin/fake"},
		"another version":  {thisPlatform, map[string]string{"bin/fake": reporter("v1.2.4")}, "trying the released fake: it is of version v1.2.4, want v1.2.3"},
		"does not run":     {thisPlatform, map[string]string{"bin/fake": "no program"}, "exec format error"},
		"fails":            {thisPlatform, map[string]string{"bin/fake": "#!/bin/sh\necho 'wrong\nlibc' >&2\nexit 3\n"}, "exit status 3: wrong libc"},
		"no interpreter":   {thisPlatform, map[string]string{"bin/fake": "#!/nowhere/loader\n"}, "no such file or directory"},
	} {
		t.Run(title, func(t *testing.T) {
			s, host, reported := releasedFakes(t, imagetest.Registry())
			if tc.files != nil {
				pushFakes(t, host, tc.platform, tc.files)
			}
			paths, err := s.paths(t.Context(), "", []string{"fake"})
			if err != nil || originIn(paths["fake"]).source != SourceBuild {
				t.Errorf("%v, %v; want it built", paths, err)
			}
			checkClean(t, s)
			var why []string
			for line := range strings.Lines(reported()) {
				if text, ok := strings.CutPrefix(line, "building instead of taking released programs: "); ok {
					why = append(why, text)
				}
			}
			if want := strings.ReplaceAll(tc.want, "HOST", host); len(why) != 1 || !strings.Contains(why[0], want) {
				t.Errorf("progress = %q, want one line with %q", reported(), want)
			}
		})
	}
}

// Registries that hang are waited for once, together and whatever is asked for; each has a line of its own.
func TestSilentRegistries(t *testing.T) {
	var waiting sync.WaitGroup // for both registries to have been asked
	waiting.Add(2)
	var requests atomic.Int64
	silent := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		waiting.Done()
		waiting.Wait()
		<-r.Context().Done()
	})
	s, host, reported := releasedFakes(t, silent)
	server := httptest.NewServer(silent)
	t.Cleanup(server.Close)
	second := strings.TrimPrefix(server.URL, "http://")
	s.registries[imagesOfIstio] = second + "/"
	s.silence = time.Second
	s.graphs[0].Programs[1].image.project = imagesOfIstio
	for range 2 {
		paths, err := s.paths(t.Context(), "", []string{"fake", "other"})
		if err != nil || originIn(paths["fake"]).source != SourceBuild || originIn(paths["other"]).source != SourceBuild {
			t.Fatalf("%v, %v; want both built", paths, err)
		}
		if err := os.RemoveAll(s.dir); err != nil { // of the second call they are built again
			t.Fatal(err)
		}
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests, want one of each registry", n)
	}
	for name, registry := range map[string]string{"fake": host, "other": second} {
		line := fmt.Sprintf("building instead of taking released programs: %s from %s (finding the image %s/fakes/all:v1.2.3: no answer: %s sent nothing for 1s)\n", name, registry, registry, registry)
		if strings.Count(reported(), line) != 1 {
			t.Errorf("progress %q, want %q once", reported(), line)
		}
	}
}

// emptyHome makes HOME a folder without credentials of the user's. The go command keeps its files elsewhere: it
// writes some of them when it has ended, and the folder is removed then.
func emptyHome(t *testing.T) {
	t.Helper()
	if config, err := os.UserConfigDir(); err == nil {
		t.Setenv("XDG_CONFIG_HOME", config)
	}
	t.Setenv("HOME", t.TempDir())
}

func TestGet(t *testing.T) {
	server := httptest.NewServer(imagetest.Registry())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	emptyHome(t)
	t.Setenv("DOCKER_CONFIG", "")
	layer, err := imagetest.Layer(imagetest.Entry{Name: "bin/prometheus", Content: reporter("3.15.0")}, imagetest.Entry{Name: "bin/promtool", Content: reporter("3.15.0")})
	if err != nil {
		t.Fatal(err)
	}
	made, err := imagetest.Image(thisPlatform, layer)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := made.Digest()
	if err != nil {
		t.Fatal(err)
	}
	digest := hash.String()
	if err := imagetest.Push(t.Context(), host+"/mirror/prom/prometheus:v3.15.0", made); err != nil {
		t.Fatal(err)
	}
	o := Options{CacheDir: t.TempDir(), ImageRegistry: []string{host + "/mirror"}}
	for _, wanted := range []string{Prometheus, Prometheus + "@" + digest, Promtool + "@" + digest} {
		got, err := Get(t.Context(), o, wanted)
		name, _, _ := strings.Cut(wanted, "@")
		if err != nil || len(got) != 1 || got[0].Name != name || got[0].Version != "3.15.0" ||
			!strings.HasPrefix(got[0].Image, host+"/mirror/prom/prometheus") || !strings.HasSuffix(got[0].Image, "@"+digest) {
			t.Errorf("%s: %+v, %v", wanted, got, err)
		}
	}
	paths, err := Paths(t.Context(), o, Prometheus)
	if err != nil {
		t.Fatal(err)
	}
	from, err := ProgramOrigins(o, paths)
	if p := from[Prometheus]; err != nil || p.Source != SourceImage || !strings.HasSuffix(p.Image, "@"+digest) || len(p.Digest) != 12 {
		t.Errorf("%+v, %v: want that it is from an image", from, err)
	}
	none := o
	none.ImageRegistry = []string{NoImages}
	elsewhere := o
	elsewhere.ImageRegistry = []string{"istio=" + host}
	for title, tc := range map[string]struct {
		options Options
		wanted  string
		want    string
	}{
		"another digest":      {o, Prometheus + "@sha256:" + strings.Repeat("0", 64), "getting prometheus: finding the image " + host + "/mirror/prom/prometheus@sha256:000"},
		"no digest":           {o, Prometheus + "@latest", "latest"},
		"no image":            {o, Istiod, "getting istiod: finding the image " + host + "/mirror/istio/pilot:1.31.0"},
		"unknown":             {o, "nonsense", `unknown program "nonsense"`},
		"no registry":         {none, "", "no registry is set"},
		"no registry for it":  {elsewhere, Prometheus, "no registry with images of prometheus is set; name one by --image-registry prometheus=HOST"},
		"state of a branch":   {Options{CacheDir: o.CacheDir, ImageRegistry: o.ImageRegistry, Istio: "1.31-20260423"}, Istiod, "it is not released in an image"},
		"everything it lacks": {o, "", "getting etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, istiod, istioctl, pilot-agent, envoy: "},
	} {
		t.Run(title, func(t *testing.T) {
			var wanted []string
			if tc.wanted != "" {
				wanted = []string{tc.wanted}
			}
			if got, err := Get(t.Context(), tc.options, wanted...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%+v, %v; want an error with %q", got, err, tc.want)
			}
		})
	}
}

// With the value default, the cluster's programs come from the registry that KWOK's module names.
func TestDefaultImages(t *testing.T) {
	if consts.ImagePrefix != consts.KubeImagePrefix+"/kwok" {
		t.Fatalf("KWOK's images are at %s, and those of Kubernetes at %s: they share no registry any more", consts.ImagePrefix, consts.KubeImagePrefix)
	}
	if want := "v" + consts.Version; Version(Kwok) != want {
		t.Errorf("the pinned kwok is %s, and the module of scaler %s: pin one version in both", Version(Kwok), want)
	}
	server := httptest.NewServer(imagetest.Registry())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	official := consts.KubeImagePrefix
	consts.KubeImagePrefix = host + "/official"
	t.Cleanup(func() { consts.KubeImagePrefix = official })
	emptyHome(t)
	t.Setenv("DOCKER_CONFIG", "")
	names := []string{Etcd, KubeAPIServer, KubeControllerManager, KubeScheduler, Kwok}
	for _, name := range names {
		layer, err := imagetest.Layer(imagetest.Entry{Name: "usr/local/bin/" + name, Content: reporter(Version(name))})
		if err != nil {
			t.Fatal(err)
		}
		made, err := imagetest.Image(thisPlatform, layer)
		if err != nil {
			t.Fatal(err)
		}
		repository := map[string]string{Etcd: "etcd:3.6.8-0", Kwok: "kwok/kwok:v0.8.0"}[name]
		if err := imagetest.Push(t.Context(), host+"/official/"+cmp.Or(repository, name+":v1.36.3"), made); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{CacheDir: t.TempDir(), ImageRegistry: []string{DefaultImages}}
	paths, err := Paths(t.Context(), o, names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if from := originIn(paths[name]); from.source != SourceImage || !strings.HasPrefix(from.image, host+"/official/") || from.version != Version(name) {
			t.Errorf("%s is from %+v, want the official image", name, from)
		}
	}
}

func TestRegistries(t *testing.T) {
	references := func(values ...string) string {
		all, err := Options{ImageRegistry: values}.registries()
		if err != nil {
			return err.Error()
		}
		s := store{graphs: graphsOf("1.29.1"), registries: all}
		var found []string
		for _, name := range []string{Etcd, Kwok, Istiod, Promtool} {
			if _, p := s.graphs.find(name); s.hasImage(p) {
				found = append(found, s.reference(pull{Program: p}))
			}
		}
		return strings.Join(found, " ")
	}
	for values, want := range map[string]string{
		"":                                       "",
		"none":                                   "",
		"default":                                consts.KubeImagePrefix + "/etcd:3.6.8-0 " + consts.ImagePrefix + "/kwok:v0.8.0 istio/pilot:1.29.1 prom/prometheus:v3.15.0",
		"kubernetes=default":                     consts.KubeImagePrefix + "/etcd:3.6.8-0 " + consts.ImagePrefix + "/kwok:v0.8.0",
		"localhost:5000":                         "localhost:5000/etcd:3.6.8-0 localhost:5000/kwok/kwok:v0.8.0 localhost:5000/istio/pilot:1.29.1 localhost:5000/prom/prometheus:v3.15.0",
		"default,kubernetes=mirror.example/k8s/": "mirror.example/k8s/etcd:3.6.8-0 mirror.example/k8s/kwok/kwok:v0.8.0 istio/pilot:1.29.1 prom/prometheus:v3.15.0",
		"istio=localhost":                        "localhost/istio/pilot:1.29.1",
		"localhost:5000,none,istio=default":      "istio/pilot:1.29.1",
		"localhost:5000,istio=none":              "localhost:5000/etcd:3.6.8-0 localhost:5000/kwok/kwok:v0.8.0 localhost:5000/prom/prometheus:v3.15.0",
		"library":                                `imageRegistry: got "library", want none, default, or HOST[:PORT][/PATH], as in localhost:5000`,
		"http://localhost":                       `imageRegistry: got "http://localhost", want none, default, or HOST[:PORT][/PATH], as in localhost:5000`,
		"linkerd=localhost":                      `imageRegistry: got "linkerd=localhost", want REGISTRY, or PROJECT=REGISTRY with one of istio, kubernetes, prometheus`,
	} {
		var list []string
		if values != "" {
			list = strings.Split(values, ",")
		}
		if got := references(list...); got != want {
			t.Errorf("%q: %q, want %q", values, got, want)
		}
	}
}

// Every program but those of a branch and those whose sources are edited has an image, whose path in the cache is its own.
func TestImagesOfReleases(t *testing.T) {
	for _, version := range IstioReleases() {
		places := map[string]string{}
		for _, g := range graphsOf(version) {
			for _, p := range g.Programs {
				ok := p.image.project != ""
				ofBranch := strings.Contains(version, "-") && (p.Name == Envoy || strings.HasPrefix(p.Package, istioModulePath))
				if ok == (ofBranch || g.edits != nil) {
					t.Errorf("%s of %s: image %v", p.Name, version, ok)
				}
				if !ok {
					continue
				}
				place := filepath.Join(p.imagePlace("/cache"), p.Name)
				if other := places[place]; other != "" || !strings.HasPrefix(place, "/cache/"+p.Name+"/"+p.image.tag+"-image-") {
					t.Errorf("%s of %s is in %s, as %s", p.Name, version, place, other)
				}
				places[place] = p.Name
			}
		}
	}
}

func TestOriginOfGivenPrograms(t *testing.T) {
	given := filepath.Join(t.TempDir(), Kwok)
	if err := os.WriteFile(given, []byte(reporter("v1.2.3")), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := ProgramOrigins(Options{CacheDir: t.TempDir()}, map[string]string{Kwok: given, IstioManifests: t.TempDir()})
	if p := got[Kwok]; err != nil || len(got) != 1 || p.Source != "given" || p.Image != "" || len(p.Digest) != 12 {
		t.Errorf("%+v, %v; want that it was given", got, err)
	}
	nothing := map[string]string{Kwok: filepath.Join(t.TempDir(), "nothing")}
	if got, err := ProgramOrigins(Options{CacheDir: t.TempDir()}, nothing); err == nil || !strings.HasPrefix(err.Error(), "finding where kwok is from: ") {
		t.Errorf("%+v of nothing, %v", got, err)
	}
}
