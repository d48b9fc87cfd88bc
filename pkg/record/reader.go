package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"scaler.mesh/scaler/internal/boundedfile"
)

// ErrNoRuns is in the error of Read when a folder holds no run.
var ErrNoRuns = errors.New("no run in it")

// ErrSchema is in the error of Read when a record is of another version or schema.
var ErrSchema = errors.New("which this scaler does not read")

// Read reads the runs that paths name, in that order: each path is a run's
// folder, or a folder that holds runs at any depth, which come in the order of
// their folders' names. A run that is named twice is read once. Any record that
// cannot be read is an error, naming its file: a summary that silently lacks a
// run is worse than none. A path that does not exist has fs.ErrNotExist in its
// error, a folder without runs ErrNoRuns. Latency runs are passed over, and a
// path that holds nothing else has ErrNoRuns too.
func Read(paths ...string) ([]Run, error) {
	runs, _, err := read(paths, true)
	return runs, err
}

// ReadAll reads what Read reads, and the latency runs among it.
func ReadAll(paths ...string) ([]Run, []LatencyRun, error) { return read(paths, false) }

// read reads what ReadAll reads; with runsAlone each path must hold a Run.
func read(paths []string, runsAlone bool) (runs []Run, latencies []LatencyRun, err error) {
	isRun := map[string]bool{} // by folder, of those that were read
	for _, path := range paths {
		dirs, err := runDirs(path)
		if err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if len(dirs) == 0 {
			return nil, nil, fmt.Errorf("reading %s: %w: want a run's folder, which holds %s, or a folder with runs below it", path, ErrNoRuns, runFile)
		}
		found := false
		for _, dir := range dirs {
			if _, seen := isRun[dir]; !seen {
				run, latency, err := readRun(dir)
				if err != nil {
					return nil, nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, runFile), err)
				}
				if isRun[dir] = latency == nil; latency != nil {
					latencies = append(latencies, *latency)
				} else {
					runs = append(runs, run)
				}
			}
			found = found || isRun[dir]
		}
		if runsAlone && !found {
			return nil, nil, fmt.Errorf("reading %s: %w of scaler rollout, but %d of scaler latency, which 'scaler report' prints", path, ErrNoRuns, len(dirs))
		}
	}
	return runs, latencies, nil
}

// runDirs returns the folders at or below path that hold a run.json, as
// absolute paths without symbolic links. It does not look into runs: their
// time series are many files, and none of them a run.
func runDirs(path string) ([]string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, boundedfile.Cause(err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, boundedfile.Cause(err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%w: it is a file", ErrNoRuns)
	}
	var dirs []string
	err = filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return nil
		}
		switch info, err := os.Stat(filepath.Join(dir, runFile)); {
		case err == nil && info.Mode().IsRegular():
			dirs = append(dirs, dir)
			return fs.SkipDir
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		default:
			return nil
		}
	})
	return dirs, err
}

// readRun reads a folder's run; the LatencyRun is nil where it is a Run.
func readRun(dir string) (Run, *LatencyRun, error) {
	data, err := readDocument(dir, runFile)
	if err != nil {
		return Run{}, nil, err
	}
	run, latency, err := decode(data)
	run.Dir = dir
	if latency != nil {
		latency.Dir = dir
	}
	return run, latency, err
}

// decode reads a run.json: the LatencyRun is nil where it is a Run. Fields it
// does not know are passed over: there are none but what others added.
func decode(data []byte) (run Run, latency *LatencyRun, err error) {
	// The header first: of another schema the rest may not even fit the types.
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Schema     int    `json:"schema"`
	}
	if err := json.Unmarshal(data, &header); err != nil {
		return Run{}, nil, damaged(data, err)
	}
	if err := checkVersion(header.APIVersion, header.Schema); err != nil {
		return Run{}, nil, err
	}
	switch header.Kind {
	case Kind:
		err = json.Unmarshal(data, &run)
	case LatencyKind:
		latency = &LatencyRun{}
		err = json.Unmarshal(data, latency)
	default:
		return Run{}, nil, fmt.Errorf("kind %q: want %q or %q", header.Kind, Kind, LatencyKind)
	}
	if err != nil {
		return Run{}, nil, damaged(data, err)
	}
	name := run.Name
	if latency != nil {
		name = latency.Name
	}
	if name != "" {
		if err := checkName(name); err != nil {
			return Run{}, nil, err // it might be taken for a path
		}
	}
	return run, latency, nil
}

func damaged(data []byte, err error) error {
	const fix = "the file is cut off or damaged; restore it, or move the run's folder away to read the others"
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d, byte %d of %d: %w: %s", lineOf(data, syntax.Offset), syntax.Offset, len(data), err, fix)
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("line %d, byte %d of %d: %w: %s", lineOf(data, kind.Offset), kind.Offset, len(data), err, fix)
	}
	return fmt.Errorf("%w: %s", err, fix)
}

var versionPattern = regexp.MustCompile(`^scaler\.mesh/v[1-9][0-9]*$`)

// checkVersion refuses every schema but this scaler's: a definition of another one may differ.
func checkVersion(apiVersion string, schema int) error {
	if !versionPattern.MatchString(apiVersion) {
		return fmt.Errorf("apiVersion %q, schema %d: want a scaler's record, with apiVersion %q", apiVersion, schema, APIVersion)
	}
	if apiVersion != APIVersion || schema != Schema {
		return fmt.Errorf("written as %s, schema %d, %w: want %s, schema %d; use the scaler that wrote it", apiVersion, schema, ErrSchema, APIVersion, Schema)
	}
	return nil
}
