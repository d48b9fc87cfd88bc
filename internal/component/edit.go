package component

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// edit replaces a text in a file of a module, where it must be exactly once; "" = the file is new.
type edit struct{ module, file, old, new string }

// edited copies the modules that a graph edits into a build folder, edits them, and gives what
// the module file needs in addition for them to take the place of the modules, whose hashes were
// compared before. The module cache stays as it is: Go refuses other sources for what is there.
func (g *Graph) edited(ctx context.Context, tc toolchain, dir string) (replaced string, err error) {
	folders := map[string]string{}
	for _, e := range g.edits {
		if folders[e.module] == "" {
			if folders[e.module], err = g.copyModule(ctx, e.module, tc, dir); err != nil {
				return "", err
			}
			replaced += fmt.Sprintf("\nreplace %s => ./%s\n", e.module, filepath.Base(folders[e.module]))
		}
		path := filepath.Join(folders[e.module], filepath.FromSlash(e.file))
		if err := e.write(path); err != nil {
			return "", err
		}
	}
	return replaced, nil
}

// write makes the edit in the file at path.
func (e edit) write(path string) error {
	var text []byte
	if e.old != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return fmt.Errorf("reading a source of %s: %w", e.module, err)
		}
	}
	changed, err := e.apply(string(text))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		return hinted(fmt.Errorf("writing a source of %s: %w", e.module, err), "")
	}
	return nil
}

// copyModule copies a module of the graph into a folder in dir.
func (g *Graph) copyModule(ctx context.Context, module string, tc toolchain, dir string) (string, error) {
	from, err := g.moduleFolder(ctx, module, tc, dir)
	if err != nil {
		return "", err
	}
	to, err := os.MkdirTemp(dir, "edited-")
	if err == nil {
		err = os.CopyFS(to, os.DirFS(from))
	}
	if err != nil {
		return "", hinted(fmt.Errorf("copying module %s: %w", module, err), "")
	}
	return to, nil
}

// apply makes the edit in the text of its file.
func (e edit) apply(text string) (string, error) {
	if e.old == "" {
		return e.new, nil
	}
	if n := strings.Count(text, e.old); n != 1 {
		return "", fmt.Errorf("editing %s of %s: %q is in it %d times: want once", e.file, e.module, e.old, n)
	}
	return strings.Replace(text, e.old, e.new, 1), nil
}
