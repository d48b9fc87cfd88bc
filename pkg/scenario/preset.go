package scenario

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed presets
var presets embed.FS

// PresetNames are the names of the scenarios that are part of the program, sorted.
func PresetNames() []string {
	files, err := fs.Glob(presets, "presets/*.yaml")
	if err != nil {
		return nil // the pattern is a constant
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(file, "presets/"), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// ReadPreset adds a preset as a layer.
func (d *Document) ReadPreset(name string) error {
	if !slices.Contains(PresetNames(), name) {
		return fmt.Errorf("preset: got %q, want %s", name, oneOf(PresetNames()))
	}
	f, err := presets.Open("presets/" + name + ".yaml")
	if err != nil {
		return fmt.Errorf("reading preset %s: %w", name, err)
	}
	defer f.Close()
	return d.Read("preset "+name, f)
}
