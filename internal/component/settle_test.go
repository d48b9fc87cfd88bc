package component

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/imagetest"
)

// renderer returns an istioctl that reports a version, and renders its arguments.
func renderer(version string) string {
	return "#!/bin/sh\nif [ \"$1\" = version ]; then echo client version: " + version + "; else echo \"# $*\"; fi\n"
}

// istioRegistry serves images of istiod and istioctl with a tag, whose programs report a version, and counts requests.
func istioRegistry(t *testing.T, tag, reports string) (o Options, requests *atomic.Int64, said func() string) {
	t.Helper()
	emptyHome(t)
	t.Setenv("DOCKER_CONFIG", "")
	requests = new(atomic.Int64)
	registry := imagetest.Registry()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		registry.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	for repository, file := range map[string]imagetest.Entry{
		"istio/pilot":    {Name: "usr/local/bin/pilot-discovery", Content: reporter(reports)},
		"istio/istioctl": {Name: "usr/local/bin/istioctl", Content: renderer(reports)},
	} {
		layer, err := imagetest.Layer(file)
		if err != nil {
			t.Fatal(err)
		}
		made, err := imagetest.Image(thisPlatform, layer)
		if err != nil {
			t.Fatal(err)
		}
		if err := imagetest.Push(t.Context(), host+"/"+repository+":"+tag, made); err != nil {
			t.Fatal(err)
		}
	}
	requests.Store(0)
	var lines []string
	return Options{
		CacheDir: t.TempDir(), ImageRegistry: []string{host}, Unreachable: new(Unreachable), Progress: func(msg string) { lines = append(lines, msg) },
	}, requests, func() string { return strings.Join(lines, "\n") }
}

// A release that is not pinned runs from its images, with the manifests of its own istioctl.
func TestReleaseFromImages(t *testing.T) {
	o, requests, said := istioRegistry(t, "1.31.7", "1.31.7")
	o.Istio = "1.31.7"
	for _, revision := range []string{"", "1-31-7"} {
		o.IstioRevision = revision
		paths, err := Paths(t.Context(), o, Istiod, IstioManifests)
		if err != nil {
			t.Fatal(err)
		}
		if from := originIn(paths[Istiod]); from.source != SourceImage || from.version != "1.31.7" {
			t.Errorf("istiod is from %+v, want its image", from)
		}
		rendered := read(t, filepath.Join(paths[IstioManifests], IstioManifestsFile))
		if !strings.HasPrefix(rendered, "# manifest generate --set profile=minimal ") || !strings.Contains(rendered, "tag=1.31.7") || strings.Contains(rendered, "--manifests") ||
			strings.Contains(rendered, "revision="+revision) != (revision != "") {
			t.Errorf("manifests of revision %q: %s; want those that its istioctl renders from its own charts", revision, rendered)
		}
		bootstrap, err := manifest(IstioBootstrapFile)
		if err != nil || read(t, filepath.Join(paths[IstioManifests], IstioBootstrapFile)) != string(bootstrap) {
			t.Errorf("%v: the bootstrap template is not that of the nearest version", err)
		}
	}
	if strings.Contains(said(), "in place of") || strings.Contains(said(), "building") {
		t.Errorf("progress %q, want neither a build nor another version", said())
	}
	before := requests.Load()
	settled, err := SettleIstio(t.Context(), o, Istiod, IstioManifests)
	if err != nil || settled.Istio != "1.31.7" || requests.Load() != before {
		t.Errorf("again: %q, %v, %d requests; want it from the cache", settled.Istio, err, requests.Load()-before)
	}
	all, err := List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range all {
		if st.Name == Istiod && (st.Source != SourceImage || st.Version != "1.31.7") || st.Name == PilotAgent && (st.Source != SourceImage || st.Path != "" || st.Version != "1.31.7" || !strings.HasSuffix(st.Image, "istio/proxyv2:1.31.7")) {
			t.Errorf("listed: %+v", st)
		}
	}
}

// Where its images cannot be had, the nearest pinned release runs. It is tried once, and one line says why.
func TestReleaseInPlaceOfAnother(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	unreachable := strings.TrimPrefix(gone.URL, "http://")
	gone.Close()
	for title, tc := range map[string]struct {
		registry string // "" = the one with the images
		asked    string
		runs     string
		why      string
	}{
		"its programs are of another version": {"", "1.29.2", "1.29.1", "trying the released istiod: it is of version 1.29.1, want 1.29.2"},
		"no registry":                         {NoImages, "1.29.2", "1.29.1", "no registry with its images is set"},
		"a registry that is not there":        {unreachable, "1.30.2", "1.30-20260826", "connection refused"},
		"no registry, an older line":          {NoImages, "1.20.3", "1.27.0", "no registry with its images is set"},
		"no registry, a newer line":           {NoImages, "1.40.0", "1.31.0", "no registry with its images is set"},
	} {
		t.Run(title, func(t *testing.T) {
			o, requests, said := istioRegistry(t, "1.29.2", "1.29.1")
			o.Istio = tc.asked
			if tc.registry != "" {
				o.ImageRegistry = []string{tc.registry}
			}
			settled, err := SettleIstio(t.Context(), o, Istiod, IstioManifests)
			if err != nil || settled.Istio != tc.runs {
				t.Fatalf("%q, %v; want %s", settled.Istio, err, tc.runs)
			}
			want := "Istio " + tc.runs + ", the nearest version that scaler builds, runs in place of " + tc.asked + ", whose images cannot be had: "
			if _, line, found := strings.Cut(said(), want); !found || !strings.Contains(line, tc.why) {
				t.Errorf("progress %q, want %q and %q", said(), want, tc.why)
			}
			before, line := requests.Load(), said()
			if again, err := SettleIstio(t.Context(), o, Istiod); err != nil || again.Istio != tc.runs || requests.Load() != before || said() != line {
				t.Errorf("again: %q, %v, %d requests, progress %q; want neither a request nor a line", again.Istio, err, requests.Load()-before, said())
			}
			all, err := List(t.Context(), o)
			for _, st := range all {
				if st.Name == PilotAgent && st.Version != tc.runs && st.Version != istioVersion {
					t.Errorf("%+v, %v is listed; want what would run", st, err)
				}
			}
			if entries, err := os.ReadDir(filepath.Join(o.CacheDir, Istiod)); len(entries) > 0 {
				t.Errorf("%v, %v: an istiod of another version is in the cache", entries, err)
			}
		})
	}
}

// What nobody released is an error, as is building what is not pinned.
func TestReleaseThatIsNone(t *testing.T) {
	o, requests, _ := istioRegistry(t, "1.29.2", "1.29.2")
	o.Istio = "1.29.99"
	_, err := Paths(t.Context(), o, Istiod, IstioManifests)
	field, ok := errors.AsType[*scenario.Error](err)
	if !ok || field.Path != "controlPlane.version" || !strings.Contains(err.Error(), `got "1.29.99", want a released version: `) ||
		!strings.Contains(err.Error(), "istio/pilot:1.29.99") || !strings.HasSuffix(err.Error(), "the nearest that is built is 1.29.1") {
		t.Errorf("%v: want the field, the image and the nearest", err)
	}
	o.Istio = "1.29.2"
	before := requests.Load()
	if settled, err := SettleIstio(t.Context(), o, Etcd, Kwok); err != nil || settled.Istio != "1.29.2" || requests.Load() != before {
		t.Errorf("where no program of Istio runs: %q, %v, %d requests; want none", settled.Istio, err, requests.Load()-before)
	}
	if err := Build(t.Context(), o, Istiod); err == nil || !strings.HasPrefix(err.Error(), `controlPlane.version: got "1.29.2", want one of 1.31.0, `) {
		t.Errorf("building it: %v", err)
	}
}
