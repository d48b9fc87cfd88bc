package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"

	"scaler.mesh/scaler/internal/component"
)

// importProxy makes the image of injected containers and gives it to containerd: Istio's agent,
// upstream's Envoy with its libraries and bootstrap template, and the iptables that redirects a
// pod's connections to it.
func importProxy(ctx context.Context, o options, paths map[string]string, ref string) error {
	tools, err := findTools(ctx, o)
	if err != nil {
		return err
	}
	const multi = "usr/sbin/xtables-nft-multi"
	iptables := filepath.Join(tools.dir, multi)
	i := image{ref: ref, entrypoint: []string{"/usr/local/bin/pilot-agent"}, user: istioUser, files: map[string]string{
		"usr/local/bin/pilot-agent":                     paths[component.PilotAgent],
		"usr/local/bin/envoy":                           paths[component.Envoy],
		"var/lib/istio/envoy/envoy_bootstrap_tmpl.json": filepath.Join(paths[component.IstioManifests], component.IstioBootstrapFile),
	}}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, name := range []string{"", "-save", "-restore", "-nft", "-nft-save", "-nft-restore"} {
			i.files["usr/sbin/"+family+name] = iptables
		}
	}
	for _, pattern := range []string{"usr/lib/*-linux-gnu/xtables/*.so", "lib/*-linux-gnu/xtables/*.so"} {
		modules, err := filepath.Glob(filepath.Join(tools.dir, pattern))
		if err != nil {
			return err
		}
		for _, m := range modules {
			name, err := filepath.Rel(tools.dir, m)
			if err != nil {
				return err
			}
			i.files[name] = m
		}
	}
	libraries, err := filepath.Glob(filepath.Join(tools.dir, "usr/lib/*-linux-gnu/*.so.*"))
	if err != nil {
		return err
	}
	for _, l := range libraries {
		i.files["lib/"+filepath.Base(l)] = l
	}
	for _, program := range []string{paths[component.Envoy], iptables} {
		if err := addLibraries(ctx, i.files, program); err != nil {
			return err
		}
	}
	return importImage(ctx, o, paths, i)
}

// library is a line of ldd(1): a name with where it was found, or a path.
var library = regexp.MustCompile(`(?m)^\s*(?:(\S+) => )?(/\S+) \(0x`)

// addLibraries adds the libraries of a program that the machine has, and what loads them.
func addLibraries(ctx context.Context, files map[string]string, program string) error {
	out, _ := command(ctx, "ldd", program) // it fails, too, where a library is one of the tools'
	found := library.FindAllStringSubmatch(out, -1)
	if len(found) == 0 {
		return fmt.Errorf("listing the libraries of %s: ldd prints %q", program, out)
	}
	for _, m := range found {
		name, path := "lib/"+m[1], m[2]
		if m[1] == "" {
			name = path[1:] // the loader, which programs name by its path
		}
		if files[name] == "" {
			files[name] = path
		}
	}
	return nil
}
