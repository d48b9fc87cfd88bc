package image

import (
	"archive/tar"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"scaler.mesh/scaler/test/imagetest"
	"scaler.mesh/scaler/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const (
	file = "usr/local/bin/program" // what is taken
	// patient is longer than any answer takes, impatient is waited for in full.
	patient, impatient = time.Minute, 200 * time.Millisecond
)

// entry is imagetest.Entry.
type entry struct {
	Name, Content string
	Kind          byte
}

func layerOf(t *testing.T, entries ...entry) v1.Layer {
	t.Helper()
	var all []imagetest.Entry
	for _, e := range entries {
		all = append(all, imagetest.Entry{Name: e.Name, Content: e.Content, Kind: e.Kind})
	}
	layer, err := imagetest.Layer(all...)
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

func imageOf(t *testing.T, platform v1.Platform, layers ...v1.Layer) v1.Image {
	t.Helper()
	image, err := imagetest.Image(platform, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

var (
	here      = v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	elsewhere = v1.Platform{OS: "plan9", Architecture: "mips"}
)

// serve serves a registry, and gives its host.
func serve(t *testing.T, handler http.Handler) (host string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func push(t *testing.T, reference string, content remote.Taggable) {
	t.Helper()
	if err := imagetest.Push(t.Context(), reference, content); err != nil {
		t.Fatal(err)
	}
}

// client returns a client without the user's credentials.
func client(t *testing.T, silence time.Duration) *Client {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("DOCKER_CONFIG", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("REGISTRY_AUTH_FILE", "")
	c := NewClient(silence)
	t.Cleanup(c.Close)
	return c
}

// take takes the file of a reference, and gives its content.
func take(ctx context.Context, c *Client, reference, to string) (string, error) {
	image, err := c.Find(ctx, reference)
	if err != nil {
		return "", err
	}
	defer image.Close()
	if err := image.Take(map[string]string{file: to}); err != nil {
		return "", err
	}
	content, err := os.ReadFile(to)
	return string(content), err
}

func TestTake(t *testing.T) {
	large := strings.Repeat("x", 101)
	for title, tc := range map[string]struct {
		layers [][]entry
		want   string // content of the file; "" = refused, as refusal says
		refuse string
	}{
		"one layer":                   {[][]entry{{{file, "program", 0}}}, "program", ""},
		"named from the root":         {[][]entry{{{"/" + file, "program", 0}}}, "program", ""},
		"named from here":             {[][]entry{{{"./" + file, "program", 0}}}, "program", ""},
		"below others":                {[][]entry{{{file, "program", 0}}, {{"etc/other", "other", 0}}}, "program", ""},
		"replaced by a later layer":   {[][]entry{{{file, "old", 0}}, {{file, "new", 0}}}, "new", ""},
		"twice in a layer":            {[][]entry{{{file, "older and longer", 0}, {file, "new", 0}}}, "new", ""},
		"deleted":                     {[][]entry{{{file, "old", 0}}, {{"usr/local/bin/.wh.program", "", 0}}}, "", "was deleted by a later layer"},
		"its folder deleted":          {[][]entry{{{file, "old", 0}}, {{"usr/.wh.local", "", 0}}}, "", "was deleted by a later layer"},
		"its folder emptied":          {[][]entry{{{file, "old", 0}}, {{"usr/local/.wh..wh..opq", "", 0}}}, "", "was deleted by a later layer"},
		"its folder replaced":         {[][]entry{{{file, "old", 0}}, {{"usr/local", "elsewhere", tar.TypeSymlink}}}, "", "was deleted by a later layer"},
		"another deleted":             {[][]entry{{{file, "program", 0}}, {{"usr/local/bin/.wh.prog", "", 0}}}, "program", ""},
		"its folder emptied and made": {[][]entry{{{file, "old", 0}}, {{"usr/local/.wh..wh..opq", "", 0}, {file, "new", 0}}}, "new", ""},
		"its folder made again":       {[][]entry{{{file, "program", 0}}, {{"usr/local", "", tar.TypeDir}}}, "program", ""},
		"not there":                   {[][]entry{{{"usr/local/bin/other", "other", 0}}}, "", "it has no file " + file},
		"no layers":                   {nil, "", "it has no file " + file},
		"a symbolic link":             {[][]entry{{{file, "/bin/sh", tar.TypeSymlink}}}, "", "is not a regular file"},
		"a path out and in again":     {[][]entry{{{"../" + file, "program", 0}, {"tmp/../../" + file, "program", 0}}}, "", "it has no file"},
		"too large":                   {[][]entry{{{file, large, 0}}}, "", "too large: it has 101 bytes, want 100 at most"},
	} {
		t.Run(title, func(t *testing.T) {
			var layers []v1.Layer
			for _, entries := range tc.layers {
				layers = append(layers, layerOf(t, entries...))
			}
			reference := serve(t, imagetest.Registry()) + "/some/program:1.2.3"
			push(t, reference, imageOf(t, here, layers...))
			c := client(t, patient)
			c.maxFile = 100
			dir := t.TempDir()
			got, err := take(t.Context(), c, reference, filepath.Join(dir, "out"))
			if tc.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refuse) || !strings.Contains(err.Error(), reference) {
					t.Errorf("%q, %v; want an error with %q and the reference", got, err, tc.refuse)
				}
			} else if err != nil || got != tc.want {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
			if written, err := os.ReadDir(dir); err != nil || len(written) > 1 {
				t.Errorf("%v, %v: want nothing written but the file", written, err)
			}
		})
	}
}

func TestDigestsAndPlatforms(t *testing.T) {
	host := serve(t, imagetest.Registry())
	c := client(t, patient)
	ours := imageOf(t, here, layerOf(t, entry{file, "ours", 0}))
	theirs := imageOf(t, elsewhere, layerOf(t, entry{file, "theirs", 0}))
	index := func(images ...v1.Image) v1.ImageIndex {
		made := v1.ImageIndex(empty.Index)
		for _, i := range images {
			config, err := i.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			made = mutate.AppendManifests(made, mutate.IndexAddendum{Add: i, Descriptor: v1.Descriptor{Platform: config.Platform()}})
		}
		return made
	}
	both := index(theirs, ours)
	// The list says that it is for this platform, the image that it is not.
	lie := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: theirs, Descriptor: v1.Descriptor{Platform: &here}})
	for tag, content := range map[string]remote.Taggable{"ours": ours, "theirs": theirs, "both": both, "elsewhere": index(theirs), "lie": lie} {
		push(t, host+"/program:"+tag, content)
	}
	digestOf := func(of interface{ Digest() (v1.Hash, error) }) string {
		digest, err := of.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return digest.String()
	}
	unknown := "sha256:" + strings.Repeat("0", 64)
	for reference, tc := range map[string]struct{ digest, refuse string }{
		":ours":                  {digestOf(ours), ""},
		":both":                  {digestOf(both), ""},
		"@" + digestOf(ours):     {digestOf(ours), ""},
		"@" + digestOf(both):     {digestOf(both), ""},
		":theirs":                {"", "it is for plan9/mips, want " + here.String()},
		":elsewhere":             {"", here.String()},
		":lie":                   {"", "it is for plan9/mips, want " + here.String()},
		"@" + unknown:            {"", "MANIFEST_UNKNOWN"},
		":none":                  {"", "MANIFEST_UNKNOWN"},
		"@" + digestOf(theirs):   {"", "it is for plan9/mips"},
		"@sha256:not-a-digest":   {"", "not-a-digest"},
		":ours@sha256:" + "0000": {"", "0000"},
	} {
		t.Run(reference, func(t *testing.T) {
			image, err := c.Find(t.Context(), host+"/program"+reference)
			if tc.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refuse) {
					t.Fatalf("%+v, %v; want an error with %q", image, err, tc.refuse)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer image.Close()
			if !strings.HasPrefix(image.Reference, host+"/program") || !strings.HasSuffix(image.Reference, "@"+tc.digest) {
				t.Errorf("%s, want %s", image.Reference, tc.digest)
			}
			to := filepath.Join(t.TempDir(), "out")
			if err := image.Take(map[string]string{file: to}); err != nil {
				t.Error(err)
			}
			if got, err := os.ReadFile(to); err != nil || string(got) != "ours" {
				t.Errorf("%q, %v; want the file of this platform", got, err)
			}
		})
	}
}

// altered returns a registry that answers requests for a part of its paths with a body changed.
func altered(part string, change func(body []byte) []byte) func(http.Handler) http.Handler {
	return onGet(part, func(inner http.Handler, w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		for key, values := range answer.Header() {
			w.Header()[key] = values // with the length of what is not changed
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(change(answer.Body.Bytes()))
		_ = http.NewResponseController(w).Flush()
	})
}

// silent returns a registry that does not answer requests for a part of its paths.
func silent(part string) func(http.Handler) http.Handler {
	return onGet(part, func(_ http.Handler, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}

func onGet(part string, answer func(inner http.Handler, w http.ResponseWriter, r *http.Request)) func(http.Handler) http.Handler {
	return func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, part) {
				answer(inner, w, r)
				return
			}
			inner.ServeHTTP(w, r)
		})
	}
}

// locked admits requests with this user and password alone.
func locked(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "user" || password != "password" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

func TestBrokenRegistries(t *testing.T) {
	content := imageOf(t, here, layerOf(t, entry{file, "program", 0}))
	layers, err := content.Layers()
	if err != nil {
		t.Fatal(err)
	}
	layer, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := content.Digest()
	if err != nil {
		t.Fatal(err)
	}
	blob, manifest := "/blobs/"+layer.String(), "/manifests/"+digest.String()
	half := func(w http.ResponseWriter, body []byte) {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
	}
	for title, tc := range map[string]struct {
		over    func(http.Handler) http.Handler
		silence time.Duration
		want    string
	}{
		"layer cut short": {altered(blob, func(b []byte) []byte { return b[:len(b)-8] }), patient, "EOF"},
		"layer of another digest": {altered(blob, func(b []byte) []byte {
			b[4] ^= 1 // of the time in gzip's header: what it decompresses to is the same
			return b
		}), patient, "error verifying sha256 checksum"},
		"manifest of another digest": {altered(manifest, func(b []byte) []byte {
			b[len(b)-1] = ' '
			return b
		}), patient, "does not match requested digest"},
		"silent from the start":     {silent("/v2/"), impatient, "sent nothing for 200ms"},
		"silent about the manifest": {silent(manifest), impatient, "sent nothing for 200ms"},
		"silent about a layer":      {silent(blob), impatient, "sent nothing for 200ms"},
		"silent within a layer": {onGet(blob, func(inner http.Handler, w http.ResponseWriter, r *http.Request) {
			answer := httptest.NewRecorder()
			inner.ServeHTTP(answer, r)
			half(w, answer.Body.Bytes())
			<-r.Context().Done()
		}), impatient, "sent nothing for 200ms"},
		"without credentials": {locked, patient, "401 Unauthorized"},
	} {
		t.Run(title, func(t *testing.T) {
			inner := imagetest.Registry()
			push(t, serve(t, inner)+"/program:1", content)
			reference := serve(t, tc.over(inner)) + "/program@" + digest.String()
			to := filepath.Join(t.TempDir(), "out")
			got, err := take(t.Context(), client(t, tc.silence), reference, to)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), reference) {
				t.Errorf("%q, %v; want an error with %q and the reference", got, err, tc.want)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	asked := make(chan struct{})
	once := sync.OnceFunc(func() { close(asked) })
	host := serve(t, onGet("/v2/", func(_ http.Handler, _ http.ResponseWriter, r *http.Request) {
		once()
		<-r.Context().Done()
	})(nil))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := client(t, patient).Find(ctx, host+"/program:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that it was cancelled", err)
	}
}

func TestCredentials(t *testing.T) {
	inner := imagetest.Registry()
	push(t, serve(t, inner)+"/program:1", imageOf(t, here, layerOf(t, entry{file, "program", 0})))
	host := serve(t, locked(inner))
	c := client(t, patient)
	config := t.TempDir()
	text := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte("user:password")))
	if err := os.WriteFile(filepath.Join(config, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", config)
	got, err := take(t.Context(), c, host+"/program:1", filepath.Join(t.TempDir(), "out"))
	if err != nil || got != "program" {
		t.Errorf("%q, %v; want the program", got, err)
	}
}
