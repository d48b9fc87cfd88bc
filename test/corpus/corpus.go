// Package corpus finds files that others wrote, with objects of Kubernetes and Istio: the cases of package capture and, in the module of the
// pinned release of Istio, its samples, its charts, and what it is tested with. Files without objects, such as templates, are among them.
package corpus

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// required is the variable of the environment by which a test fails, and is not skipped, where the module of Istio is not in the module cache.
// hack/test.sh sets it, and has the module downloaded.
const required = "SCALER_CORPUS_REQUIRED"

// Folder is a folder of files.
type Folder struct {
	Path  string
	Files []string // below Path, sorted
}

// Below returns the files of f that are below one of its folders.
func (f Folder) Below(name string) Folder {
	f.Files = slices.DeleteFunc(slices.Clone(f.Files), func(file string) bool { return !strings.HasPrefix(file, name+string(filepath.Separator)) })
	return f
}

// Cases returns the cases of package capture.
func Cases(t testing.TB) Folder {
	t.Helper()
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	return folder(t, filepath.Join(root, "internal", "capture", "testdata", "cases"))
}

// Istio returns the module of the pinned release of Istio. Without the module in the cache the test is skipped: nothing is downloaded.
func Istio(t testing.TB) Folder {
	t.Helper()
	path, err := module()
	switch {
	case err == nil:
		return folder(t, path)
	case os.Getenv(required) == "":
		t.Skipf("%v: hack/test.sh has it", err)
	default:
		t.Fatalf("%v, and %s is set", err, required)
	}
	return Folder{}
}

// root returns the folder of scaler's module.
func root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	return filepath.Dir(strings.TrimSpace(string(out))), err
}

// module returns the folder of Istio's module in the module cache.
func module() (string, error) {
	root, err := root()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "mod", "download", "-json", "-modfile=internal/component/modules/istio.mod", "istio.io/istio")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "PWD="+root, "GOPROXY=off")
	out, err := cmd.Output() // which has the error, too
	var found struct{ Dir, Error string }
	if wrong := json.Unmarshal(out, &found); wrong != nil || found.Dir == "" {
		return "", errors.Join(errors.New("the module of Istio is not in the module cache"), err, wrong, errors.New(found.Error))
	}
	return found.Dir, nil
}

// folder returns the files of a folder that may have objects. The notes of releases have none.
func folder(t testing.TB, path string) Folder {
	t.Helper()
	f := Folder{Path: path}
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file == filepath.Join(path, "releasenotes"):
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains(extensions, filepath.Ext(file)):
			name, err := filepath.Rel(path, file)
			f.Files = append(f.Files, name)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// extensions are those of files in YAML and JSON. Tests of Istio compare their results with the last two.
var extensions = []string{".yaml", ".yml", ".json", ".jsonl", ".golden", ".injected"}
