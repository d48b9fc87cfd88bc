package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"scaler.mesh/scaler/internal/component"
)

// debianPackages hold runc and iptables with their libraries. Both are programs in C, or partly:
// runc without libseccomp refuses the profile that kubelet gives every pod.
var debianPackages = []string{
	"runc", "libseccomp2",
	"iptables", "libip4tc2", "libip6tc2", "libmnl0", "libnetfilter-conntrack3", "libnfnetlink0", "libnftnl11", "libxtables12",
}

// tools are runc and iptables, taken out of Debian's packages, which are not installed.
type tools struct {
	dir string // where the packages are unpacked, and the folder wrappers
}

// wrapped are the programs in the folder wrappers, and what they are in the packages.
var wrapped = map[string]string{
	"runc":     "usr/sbin/runc",
	"iptables": "usr/sbin/xtables-nft-multi", "iptables-save": "usr/sbin/xtables-nft-multi", "iptables-restore": "usr/sbin/xtables-nft-multi",
	"ip6tables": "usr/sbin/xtables-nft-multi", "ip6tables-save": "usr/sbin/xtables-nft-multi", "ip6tables-restore": "usr/sbin/xtables-nft-multi",
}

// wrapper returns the path of a program that finds its libraries by itself.
func (t tools) wrapper(program string) string { return filepath.Join(t.dir, "wrappers", program) }

// path is PATH with the wrappers first.
func (t tools) path() string { return filepath.Join(t.dir, "wrappers") + ":" + os.Getenv("PATH") }

// findTools gives the tools of the cache, having put them there with apt-get where they are not.
func findTools(ctx context.Context, o options) (tools, error) {
	cache, err := component.CacheDir(o.programs)
	if err != nil {
		return tools{}, err
	}
	t := tools{filepath.Join(cache, "realnode-tools")}
	if _, err := os.Stat(t.dir); err == nil {
		return t, nil
	}
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return tools{}, &lackingError{program + " in PATH: runc and iptables are taken out of Debian's packages"}
		}
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return tools{}, err
	}
	dir, err := os.MkdirTemp(cache, ".build-realnode-tools-")
	if err != nil {
		return tools{}, err
	}
	defer os.RemoveAll(dir)
	progress("taking runc and iptables out of Debian's packages (apt-get download)")
	if err := unpack(ctx, dir); err != nil {
		return tools{}, &lackingError{fmt.Sprintf("runc and iptables of Debian's packages; is `apt-get update` to be run first? %v", err)}
	}
	if err := os.Rename(dir, t.dir); err != nil {
		if _, there := os.Stat(t.dir); there != nil {
			return tools{}, err
		}
	}
	if out, err := command(ctx, t.wrapper("runc"), "--version"); err != nil || !strings.Contains(out, "libseccomp") {
		return tools{}, errors.Join(&lackingError{"a runc with libseccomp, not " + out}, err, os.RemoveAll(t.dir))
	}
	return t, nil
}

// unpack downloads the packages and unpacks them into dir.
func unpack(ctx context.Context, dir string) error {
	get := exec.CommandContext(ctx, "apt-get", append([]string{"download"}, debianPackages...)...)
	get.Dir = dir
	if out, err := get.CombinedOutput(); err != nil {
		return fmt.Errorf("running apt-get download: %w: %s", err, out)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return err
	}
	for _, p := range packages {
		if _, err := command(ctx, "dpkg-deb", "-x", p, dir); err != nil {
			return err
		}
		if err := os.Remove(p); err != nil {
			return err
		}
	}
	for _, folder := range []string{"wrappers", "programs"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			return err
		}
	}
	for program, file := range wrapped {
		// iptables knows by its own name what it is to do.
		if err := os.Symlink(filepath.Join("..", file), filepath.Join(dir, "programs", program)); err != nil {
			return err
		}
		text := fmt.Sprintf(`#!/bin/sh
tools=$(dirname "$(dirname "$(readlink -f "$0")")")
for dir in "$tools"/lib/*-linux-gnu "$tools"/usr/lib/*-linux-gnu; do
	LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$dir
	[ ! -d "$dir/xtables" ] || export XTABLES_LIBDIR="$dir/xtables"
done
export LD_LIBRARY_PATH
exec "$tools/programs/%s" "$@"
`, program)
		if err := os.WriteFile(filepath.Join(dir, "wrappers", program), []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}
