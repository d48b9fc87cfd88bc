// Package imagetest makes container images and puts them into registries, for tests.
package imagetest

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Entry is an entry of a layer.
type Entry struct {
	Name    string
	Content string // of a symbolic link, where it leads
	Kind    byte   // as in tar.Header.Typeflag; 0 = a regular file
}

// Registry makes an empty registry in memory.
func Registry() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }

// Layer makes a layer with these entries.
func Layer(entries ...Entry) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, e := range entries {
		header := &tar.Header{Name: e.Name, Typeflag: e.Kind, Mode: 0o755}
		switch e.Kind {
		case 0, tar.TypeReg:
			header.Typeflag, header.Size = tar.TypeReg, int64(len(e.Content))
		case tar.TypeSymlink:
			header.Linkname = e.Content
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if header.Size > 0 {
			if _, err := io.WriteString(w, e.Content); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
}

// Image makes an image of a platform, its lowest layer first.
func Image(platform v1.Platform, layers ...v1.Layer) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = platform.OS, platform.Architecture
	return mutate.ConfigFile(image, config)
}

// Push puts an image, or a list of images, into a registry.
func Push(ctx context.Context, reference string, content remote.Taggable) error {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return err
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	return remote.Push(ref, content, remote.WithTransport(transport), remote.WithContext(ctx))
}

// Here gives the platform that this program runs on.
func Here() v1.Platform { return v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH} }
