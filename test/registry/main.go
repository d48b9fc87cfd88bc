// Registry serves the programs of scaler's cache as container images, in the repositories and at
// the paths in which their projects release them. It is for runs that take released programs
// from a registry on the same machine:
//
//	go run ./test/registry -listen 127.0.0.1:5000
//	scaler rollout --pods 200 --image-registry localhost:5000 --cache-dir /tmp/empty
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/test/imagetest"
)

// images are the files of each image, by their paths.
var images = map[string]map[string]string{
	"istio/pilot:" + component.IstioDefault:    {"usr/local/bin/pilot-discovery": component.Istiod},
	"istio/istioctl:" + component.IstioDefault: {"usr/local/bin/istioctl": component.Istioctl},
	"istio/proxyv2:" + component.IstioDefault:  {"usr/local/bin/pilot-agent": component.PilotAgent, "usr/local/bin/envoy": component.Envoy},
	"prom/prometheus:v" + component.Version(component.Prometheus): {
		"bin/prometheus": component.Prometheus, "bin/promtool": component.Promtool,
	},
	"etcd:" + strings.TrimPrefix(component.Version(component.Etcd), "v") + "-0":     {"usr/local/bin/etcd": component.Etcd},
	"kube-apiserver:" + component.Version(component.KubeAPIServer):                  {"usr/local/bin/kube-apiserver": component.KubeAPIServer},
	"kube-controller-manager:" + component.Version(component.KubeControllerManager): {"usr/local/bin/kube-controller-manager": component.KubeControllerManager},
	"kube-scheduler:" + component.Version(component.KubeScheduler):                  {"usr/local/bin/kube-scheduler": component.KubeScheduler},
	"kwok/kwok:" + component.Version(component.Kwok):                                {"usr/local/bin/kwok": component.Kwok},
}

func main() {
	listen := flag.String("listen", "127.0.0.1:5000", "address to serve at")
	cache := flag.String("cache-dir", os.Getenv("SCALER_CACHE_DIR"), "folder of the built programs; what is missing is built into it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, *listen, *cache); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, listen, cache string) error {
	paths, err := component.Paths(ctx, component.Options{CacheDir: cache, Progress: func(msg string) { fmt.Fprintln(os.Stderr, msg) }}, component.Names()...)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: imagetest.Registry(), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer server.Close()
	for _, reference := range slices.Sorted(maps.Keys(images)) {
		if err := push(ctx, listener.Addr().String()+"/"+reference, images[reference], paths); err != nil {
			return fmt.Errorf("making the image %s: %w", reference, err)
		}
	}
	fmt.Printf("%d images at %s, until ctrl-C\n", len(images), listener.Addr())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// push puts an image with these programs into the registry.
func push(ctx context.Context, reference string, files, paths map[string]string) error {
	var entries []imagetest.Entry
	for _, file := range slices.Sorted(maps.Keys(files)) {
		program, err := os.ReadFile(paths[files[file]])
		if err != nil {
			return err
		}
		entries = append(entries, imagetest.Entry{Name: file, Content: string(program)})
	}
	layer, err := imagetest.Layer(entries...)
	if err != nil {
		return err
	}
	image, err := imagetest.Image(imagetest.Here(), layer)
	if err != nil {
		return err
	}
	return imagetest.Push(ctx, reference, image)
}
