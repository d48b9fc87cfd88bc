// Package image takes single files out of container images in registries: it finds an image of
// this platform, streams its layers, and checks every byte against the digests that the image's
// manifest has. No container runtime is needed. The caller chooses images, files and their places.
//
// Credentials come from Docker's configuration, credential helpers included.
package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Limits of the bytes that are read. The largest of the released programs has 140 MB, the largest of their
// images 350 MB.
const (
	maxFile   = 1 << 30
	maxImage  = 8 << 30 // uncompressed
	maxLayers = 200
)

// Client reads from registries. It is safe for concurrent use; Close it when done.
type Client struct {
	silence   time.Duration // the longest time in which a registry may send nothing; then it counts as unreachable
	transport *http.Transport
	keychain  authn.Keychain
	platform  v1.Platform
	maxFile   int64
}

// NewClient makes a client that gives up on a registry that sends nothing for the time silence.
func NewClient(silence time.Duration) *Client {
	return &Client{
		silence:   silence,
		transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true},
		keychain:  authn.DefaultKeychain,
		platform:  v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH},
		maxFile:   maxFile,
	}
}

// Close closes the client's idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Check states what is wrong with a reference of an image, as in HOST/PATH:TAG or PATH@DIGEST;
// nil = nothing.
func Check(reference string) error {
	_, err := name.ParseReference(reference)
	return err
}

// Registry gives the host of a reference.
func Registry(reference string) string {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return reference
	}
	return ref.Context().RegistryStr()
}

// Image is an image in a registry.
type Image struct {
	// Reference names the image with its digest, as in REPOSITORY:TAG@sha256:.... For an image of
	// several platforms, it is the digest of their list.
	Reference string

	image v1.Image
	guard *guard
	max   int64
}

// Find asks the registry of a reference for the image of this platform. ctx is also that of
// Take. Its errors name the reference.
func (c *Client) Find(ctx context.Context, reference string) (*Image, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return nil, err
	}
	g := newGuard(ctx, c.silence, ref.Context().RegistryStr())
	var found *Image
	err = g.watch(func() error {
		found, err = c.find(g.ctx, ref)
		return err
	})
	if err != nil {
		g.cancel(nil)
		return nil, fmt.Errorf("finding the image %s: %w", reference, err)
	}
	found.guard, found.max = g, c.maxFile
	return found, nil
}

func (c *Client) find(ctx context.Context, ref name.Reference) (*Image, error) {
	auth, err := c.credentials(ctx, ref.Context())
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of Docker's configuration: %w", err)
	}
	described, err := remote.Get(ref, remote.WithContext(ctx), remote.WithAuth(auth), remote.WithTransport(c.transport), remote.WithPlatform(c.platform))
	if err != nil {
		return nil, err
	}
	image, err := described.Image()
	if err != nil {
		return nil, err
	}
	// The platform of an image that is in no list of platforms is stated here alone.
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading its configuration: %w", err)
	}
	if config.OS != c.platform.OS || config.Architecture != c.platform.Architecture {
		return nil, fmt.Errorf("it is for %s/%s, want %s/%s", config.OS, config.Architecture, c.platform.OS, c.platform.Architecture)
	}
	found := &Image{Reference: ref.String(), image: image}
	if _, pinned := ref.(name.Digest); !pinned {
		found.Reference += "@" + described.Digest.String()
	}
	return found, nil
}

// credentials gives the credentials for a repository. A credential helper is a program that cannot be
// interrupted: it is not waited for when ctx is done.
func (c *Client) credentials(ctx context.Context, repository name.Repository) (authn.Authenticator, error) {
	type answer struct {
		auth authn.Authenticator
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		auth, err := authn.Resolve(ctx, c.keychain, repository)
		answered <- answer{auth, err}
	}()
	select {
	case a := <-answered:
		return a.auth, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close ends all reading. An image is closed when nothing more is taken from it.
func (i *Image) Close() { i.guard.cancel(nil) }

// guard gives up on a registry that is silent while it is waited for.
type guard struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	limit  time.Duration
	err    error // the cause where it was silent
}

func newGuard(ctx context.Context, limit time.Duration, registry string) *guard {
	g := &guard{limit: limit, err: fmt.Errorf("%w: %s sent nothing for %v", errSilent, registry, limit)}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// watch runs f with the limit, and gives the reason in place of its error where it took longer.
func (g *guard) watch(f func() error) error {
	timer := time.AfterFunc(g.limit, func() { g.cancel(g.err) })
	defer timer.Stop()
	err := f()
	if err != nil && g.ctx.Err() != nil {
		return context.Cause(g.ctx)
	}
	return err
}

// reader watches each Read of r. The time between two of them does not count.
func (g *guard) reader(r io.Reader) io.Reader { return guarded{g, r} }

type guarded struct {
	guard *guard
	inner io.Reader
}

func (r guarded) Read(b []byte) (n int, err error) {
	err = r.guard.watch(func() error {
		n, err = r.inner.Read(b)
		return err
	})
	return n, err
}

// Unreachable reports whether an error of Find or Take says that the registry gave no answer, so
// that asking it for other images is in vain.
func Unreachable(err error) bool {
	_, failed := errors.AsType[*url.Error](err) // of the HTTP client
	return failed || errors.Is(err, errSilent)
}

// Absent reports whether an error of Find says that the registry has no such image.
func Absent(err error) bool {
	answer, failed := errors.AsType[*transport.Error](err)
	return failed && answer.StatusCode == http.StatusNotFound
}

var (
	errSilent   = errors.New("no answer")
	errTooLarge = errors.New("too large")
)
