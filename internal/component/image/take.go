package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Names of the entries of a layer that delete what is below them, in the OCI image specification,
// "Whiteouts".
const (
	whiteout       = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// Take writes files of the image to this machine, as executables: by their paths in the image, as
// in usr/local/bin/PROGRAM, where to. Layers are read from the last one down until all are found.
// The names in an image decide only whether an entry is one of these paths. After an error, files
// that were written are not to be used. Its errors name the reference.
func (i *Image) Take(files map[string]string) error {
	if err := i.take(files); err != nil {
		return fmt.Errorf("reading the image %s: %w", i.Reference, err)
	}
	return nil
}

func (i *Image) take(files map[string]string) error {
	layers, err := i.image.Layers()
	if err != nil {
		return err
	}
	if len(layers) > maxLayers {
		return fmt.Errorf("it has %d layers, want %d at most", len(layers), maxLayers)
	}
	missing := maps.Clone(files)
	room := int64(maxImage)
	for _, layer := range slices.Backward(layers) {
		if len(missing) == 0 {
			return nil
		}
		if err := i.takeFrom(layer, missing, &room); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("it has no file %s", strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	return nil
}

// takeFrom takes the missing files that a layer has, and removes them from missing. room is the
// number of bytes that may still be read.
func (i *Image) takeFrom(layer v1.Layer, missing map[string]string, room *int64) (err error) {
	var content io.ReadCloser
	if err := i.guard.watch(func() error {
		content, err = layer.Uncompressed()
		return err
	}); err != nil {
		return err
	}
	defer func() {
		if closeErr := content.Close(); err == nil {
			err = closeErr
		}
	}()
	body := &bounded{i.guard.reader(content), room}
	found, deleted := map[string]bool{}, map[string]bool{}
	archive := tar.NewReader(body)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		entry, ok := entryPath(header.Name)
		if !ok {
			continue
		}
		for file := range missing {
			if deletes(entry, header.Typeflag, file) {
				deleted[file] = true
			}
		}
		if to, ok := missing[entry]; ok {
			// An entry that comes again replaces the earlier one.
			if err := i.write(archive, header, to); err != nil {
				return fmt.Errorf("its %s: %w", entry, err)
			}
			found[entry] = true
		}
	}
	// The digest of a layer is known at its very end only.
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	for file := range found {
		delete(missing, file)
	}
	for file := range deleted {
		if !found[file] {
			return fmt.Errorf("its %s was deleted by a later layer", file)
		}
	}
	return nil
}

// entryPath gives the name of an entry as a path from the root of the image; ok is false for one
// that leads out of it.
func entryPath(name string) (entry string, ok bool) {
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", false
	}
	return strings.TrimPrefix(path.Clean("/"+name), "/"), true
}

// deletes reports whether an entry of a layer hides a file of the layers below it: a whiteout of
// the file or of a folder that it is in, or something in place of such a folder that is none.
func deletes(entry string, kind byte, file string) bool {
	folder, base := path.Split(entry)
	if base == opaqueWhiteout {
		return strings.HasPrefix(file, folder)
	}
	if gone, ok := strings.CutPrefix(base, whiteout); ok {
		return file == folder+gone || strings.HasPrefix(file, folder+gone+"/")
	}
	return kind != tar.TypeDir && strings.HasPrefix(file, entry+"/")
}

func (i *Image) write(content io.Reader, header *tar.Header, to string) (err error) {
	if header.Typeflag != tar.TypeReg {
		return errors.New("is not a regular file")
	}
	if header.Size > i.max {
		return fmt.Errorf("%w: it has %d bytes, want %d at most", errTooLarge, header.Size, i.max)
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// bounded reads as many bytes as there is room for, and fails at one more.
type bounded struct {
	inner io.Reader
	room  *int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if *b.room <= 0 {
		return 0, fmt.Errorf("%w: its layers have more than %d bytes", errTooLarge, int64(maxImage))
	}
	n, err := b.inner.Read(p[:min(int64(len(p)), *b.room)])
	*b.room -= int64(n)
	return n, err
}
