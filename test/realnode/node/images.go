package main

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/test/realnode/nodeprograms"
)

const (
	// appImage is the image of test/realnode/app: the container that holds a pod's namespaces, and an
	// echo server.
	appImage = "scaler.mesh/app:realnode"
	// appPackage is its program.
	appPackage = "scaler.mesh/scaler/test/realnode/app"
	// scalerImage is the image of scaler itself, for workers.
	scalerImage = "scaler.mesh/scaler:realnode"
	// kwokImage is the image of KWOK's controller.
	kwokImage = "scaler.mesh/kwok:realnode"
	// istioUser is the user of Istio's images, by its number: kubelet must see that it is not root.
	istioUser = "1337:1337"
)

// image is a container image of one layer.
type image struct {
	ref        string
	entrypoint []string
	arguments  []string
	user       string
	files      map[string]string // of this machine, by their paths in the image
}

// images returns the images that each node has.
func (o options) images(ctx context.Context, paths map[string]string) ([]image, error) {
	manifests, err := readManifests(paths)
	if err != nil {
		return nil, err
	}
	istiod, _, err := istiodImage(manifests)
	if err != nil {
		return nil, err
	}
	app := sites[0].file(o, "app")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", app, appPackage)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building %s: %w: %s", appPackage, err, out)
	}
	all := []image{
		{ref: appImage, entrypoint: []string{"/app"}, arguments: []string{"pause"}, user: "65535:65535", files: map[string]string{"app": app}},
		{ref: istiod, entrypoint: []string{"/usr/local/bin/pilot-discovery"}, user: istioUser, files: map[string]string{"usr/local/bin/pilot-discovery": paths[component.Istiod]}},
		{ref: kwokImage, entrypoint: []string{"/usr/local/bin/kwok"}, files: map[string]string{"usr/local/bin/kwok": paths[component.Kwok]}},
	}
	if o.scaler != "" {
		all = append(all, image{ref: scalerImage, entrypoint: []string{"/scaler"}, user: "65532:65532", files: map[string]string{"scaler": o.scaler}})
	}
	return all, nil
}

// importImages makes the images and gives them to containerd.
func importImages(ctx context.Context, o options, paths map[string]string) error {
	images, err := o.images(ctx, paths)
	if err != nil {
		return err
	}
	for _, i := range images {
		if err := importImage(ctx, o, paths, i); err != nil {
			return err
		}
	}
	return nil
}

func importImage(ctx context.Context, o options, paths map[string]string, i image) error {
	progress("importing image " + i.ref)
	archive := sites[0].file(o, "image.tar")
	err := i.write(archive)
	for _, s := range sites[:o.nodes] {
		if err == nil {
			_, err = command(ctx, paths[nodeprograms.Ctr], "--address", s.file(o, "containerd.sock"), "--namespace", "k8s.io", "images", "import", archive)
		}
	}
	if err := errors.Join(err, os.Remove(archive)); err != nil {
		return fmt.Errorf("importing image %s: %w", i.ref, err)
	}
	return nil
}

// write writes the image as `docker save` does.
func (i image) write(archive string) error {
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	layer := archive + ".layer"
	defer os.Remove(layer)
	digest, err := i.writeLayer(layer)
	if err != nil {
		return errors.Join(err, out.Close())
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": runtime.GOOS,
		"config": map[string]any{"Entrypoint": i.entrypoint, "Cmd": i.arguments, "User": i.user, "Env": []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest}},
	})
	if err != nil {
		return errors.Join(err, out.Close())
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{i.ref}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return errors.Join(err, out.Close())
	}
	w := tar.NewWriter(out)
	for _, f := range []struct {
		name string
		text []byte
	}{{"manifest.json", manifest}, {"config.json", config}} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.text))}))
		_, writeErr := w.Write(f.text)
		err = errors.Join(err, writeErr)
	}
	return errors.Join(err, addFile(w, "layer.tar", layer, 0o644), w.Close(), out.Close())
}

// writeLayer writes the image's files, and gives the SHA-256 of the archive.
func (i image) writeLayer(archive string) (digest string, err error) {
	out, err := os.Create(archive)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	w := tar.NewWriter(io.MultiWriter(out, sum))
	var dirs []string
	for name := range i.files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	for _, dir := range append(slices.Compact(dirs), "tmp") {
		mode := int64(0o755)
		if dir == "tmp" {
			mode = 0o1777
		}
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: mode}))
	}
	for _, name := range slices.Sorted(maps.Keys(i.files)) {
		err = errors.Join(err, addFile(w, name, i.files[name], 0o755))
	}
	err = errors.Join(err, w.Close(), out.Close())
	return hex.EncodeToString(sum.Sum(nil)), err
}

// addFile adds a file of this machine to an archive.
func addFile(w *tar.Writer, name, file string, mode int64) error {
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
