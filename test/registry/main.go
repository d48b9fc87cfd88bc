// Registry serves the programs of scaler's cache as container images, in the repositories and at
// the paths in which their projects release them. It is for runs that take released programs
// from a registry on the same machine:
//
//	go run ./test/registry -listen 127.0.0.1:5000
//	scaler rollout --pods 200 --image-registry localhost:5000 --cache-dir /tmp/empty
//
// With -istio-tag it has Istio's programs in images of another version, whether they report that one or not:
//
//	go run ./test/registry -istio-version 1.29.1 -istio-tag 1.29.2
package main

import (
	"cmp"
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

// images returns the files of each image, by their paths, in the images of Istio that have this tag.
func images(istio string) map[string]map[string]string {
	return map[string]map[string]string{
		"istio/pilot:" + istio:    {"usr/local/bin/pilot-discovery": component.Istiod},
		"istio/istioctl:" + istio: {"usr/local/bin/istioctl": component.Istioctl},
		"istio/proxyv2:" + istio:  {"usr/local/bin/pilot-agent": component.PilotAgent, "usr/local/bin/envoy": component.Envoy},
		"prom/prometheus:v" + component.Version(component.Prometheus): {
			"bin/prometheus": component.Prometheus, "bin/promtool": component.Promtool,
		},
		"etcd:" + strings.TrimPrefix(component.Version(component.Etcd), "v") + "-0":     {"usr/local/bin/etcd": component.Etcd},
		"kube-apiserver:" + component.Version(component.KubeAPIServer):                  {"usr/local/bin/kube-apiserver": component.KubeAPIServer},
		"kube-controller-manager:" + component.Version(component.KubeControllerManager): {"usr/local/bin/kube-controller-manager": component.KubeControllerManager},
		"kube-scheduler:" + component.Version(component.KubeScheduler):                  {"usr/local/bin/kube-scheduler": component.KubeScheduler},
		"kwok/kwok:" + component.Version(component.Kwok):                                {"usr/local/bin/kwok": component.Kwok},
	}
}

type options struct {
	listen, istioTag string
	programs         component.Options
}

func main() {
	o := options{programs: component.Options{Progress: func(msg string) { fmt.Fprintln(os.Stderr, msg) }}}
	flag.StringVar(&o.listen, "listen", "127.0.0.1:5000", "address to serve at")
	flag.StringVar(&o.programs.CacheDir, "cache-dir", os.Getenv("SCALER_CACHE_DIR"), "folder of the built programs; what is missing is built into it")
	flag.StringVar(&o.programs.BinDir, "bin-dir", "", "folder of the programs, in place of built ones")
	flag.StringVar(&o.programs.Istio, "istio-version", "", "version of Istio's programs; the default one if empty")
	flag.StringVar(&o.istioTag, "istio-tag", "", "tag of their images; their version if empty")
	flag.Parse()
	o.istioTag = cmp.Or(o.istioTag, o.programs.Istio, component.IstioDefault)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, o options) error {
	images := images(o.istioTag)
	var names []string
	for _, files := range images {
		names = slices.AppendSeq(names, maps.Values(files))
	}
	paths, err := component.Paths(ctx, o.programs, names...)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
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
