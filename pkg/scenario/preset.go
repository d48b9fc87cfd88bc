package scenario

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed presets
var presets embed.FS

// folder returns the folder of a command's presets.
func folder(command string) string {
	if command == Latency {
		return "presets/latency"
	}
	return "presets"
}

// PresetNames returns the names of the scenarios of a command that are part of the program, sorted.
func PresetNames(command string) []string {
	files, err := fs.Glob(presets, folder(command)+"/*.yaml")
	if err != nil {
		return nil // the pattern is a constant
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(path.Base(file), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// PresetSource returns the name of the document of a preset, as in [Source].
func PresetSource(name string) string { return "preset " + name }

// ReadPreset adds a preset of a command as a layer.
func (d *Document) ReadPreset(command, name string) error {
	text, err := preset(command, name)
	if err != nil {
		return err
	}
	if err := d.Read(PresetSource(name), bytes.NewReader(text)); err != nil {
		return err
	}
	for path, source := range d.given {
		source.Preset = source.Preset || source.File == PresetSource(name)
		d.given[path] = source
	}
	return nil
}

// PresetNote returns the purpose of a preset: the comment at the beginning of its file, as one line.
func PresetNote(command, name string) (string, error) {
	text, err := preset(command, name)
	if err != nil {
		return "", err
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		comment, ok := strings.CutPrefix(line, "# ")
		if !ok {
			break
		}
		lines = append(lines, strings.TrimSpace(comment))
	}
	return strings.Join(lines, " "), nil
}

// preset returns the file of a preset.
func preset(command, name string) ([]byte, error) {
	if !slices.Contains(PresetNames(command), name) {
		return nil, fmt.Errorf("preset: got %q, want %s", name, oneOf(PresetNames(command)))
	}
	text, err := presets.ReadFile(folder(command) + "/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("reading preset %s: %w", name, err)
	}
	return text, nil
}
