package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"scaler.mesh/scaler/internal/component"
)

func TestMain(m *testing.M) {
	scaler := func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
	testscript.Main(m, map[string]func(){"scaler": scaler, kubectlPlugin: scaler})
}

// TestScripts runs scaler as a user does, as far as it goes without the
// programs it runs. Each script has folders of its own for programs, state and
// home. In addition to testscript's own commands there are
//
//	usage TEXT ARG...   scaler ARG... ends with exit code 2, nothing on stdout
//	                    and one line on stderr, which begins with TEXT; no file
//	                    is made, changed or removed
//	fails TEXT ARG...   the same for exit code 1, TEXT being somewhere in what
//	                    is on stderr, which may be several lines
//	programs DIR        makes stand-ins of all programs in DIR, which answer
//	                    their version commands and do nothing else
//	sample NAME DIR     makes DIR a run's folder, with the sample record NAME
//	                    of package report ($SAMPLES)
//
// and the conditions root, and limits: a limit of open files holds. $SCHEMA is the committed schema
// of scenarios.
func TestScripts(t *testing.T) {
	samples, err := filepath.Abs("../../internal/analyse/report/testdata")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := filepath.Abs("../../docs/reference/scenario.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			for name, folder := range map[string]string{
				"HOME": "home", "SCALER_CACHE_DIR": "cache", "SCALER_STATE_DIR": "state",
			} {
				env.Setenv(name, filepath.Join(env.WorkDir, folder))
			}
			env.Setenv("SCALER_BIN_DIR", "")
			env.Setenv("SCALER_IMAGE_REGISTRY", "none") // tests contact no registry
			env.Setenv("SAMPLES", samples)
			env.Setenv("SCHEMA", schema)
			return os.Mkdir(filepath.Join(env.WorkDir, "home"), 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"usage":    usageCommand,
			"fails":    failsCommand,
			"programs": programsCommand,
			"sample":   sampleCommand,
		},
		Condition: func(condition string) (bool, error) {
			switch condition {
			case "root":
				return os.Geteuid() == 0, nil
			case "limits":
				return exec.Command("sh", "-c", "ulimit -n 100 && ! ulimit -Hn 200").Run() == nil, nil
			default:
				return false, fmt.Errorf("no condition %q", condition)
			}
		},
	})
}

func usageCommand(ts *testscript.TestScript, neg bool, args []string) {
	text, stderr := refused(ts, neg, args, exitUsage)
	if !strings.HasPrefix(stderr, "scaler: "+text) || strings.Count(stderr, "\n") != 1 {
		ts.Fatalf("stderr is %q: want one line that begins with %q", stderr, "scaler: "+text)
	}
}

func failsCommand(ts *testscript.TestScript, neg bool, args []string) {
	text, stderr := refused(ts, neg, args, exitFailed)
	if !strings.Contains(stderr, text) {
		ts.Fatalf("stderr is %q: want %q in it", stderr, text)
	}
}

// refused runs scaler, which is to end with the given exit code, to print
// nothing on stdout and to leave all files as they are.
func refused(ts *testscript.TestScript, neg bool, args []string, code int) (text, stderr string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: usage|fails TEXT ARG...")
	}
	work := ts.Getenv("WORK")
	before := tree(ts, work)
	err := ts.Exec("scaler", args[1:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code {
		ts.Fatalf("scaler ended with %v: want exit code %d", err, code)
	}
	if stdout := ts.ReadFile("stdout"); stdout != "" {
		ts.Fatalf("stdout is %q: want nothing", stdout)
	}
	if after := tree(ts, work); !slices.Equal(before, after) {
		ts.Fatalf("files before:\n%s\nand after:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	return args[0], ts.ReadFile("stderr")
}

// tree lists all files below dir, with what shows that one was written.
func tree(ts *testscript.TestScript, dir string) []string {
	var all []string
	ts.Check(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == filepath.Join(dir, "home", ".config") {
			return filepath.SkipDir // where the go command counts its own use
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		line := path + " " + info.Mode().String()
		if info.Mode().IsRegular() {
			line += fmt.Sprintf(" %d bytes %s inode %d", info.Size(), info.ModTime(), info.Sys().(*syscall.Stat_t).Ino)
		}
		all = append(all, line)
		return nil
	}))
	return all
}

func programsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: programs DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	for _, name := range component.Names() {
		ts.Check(os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho version v1.2.3\n"), 0o755))
	}
}

func sampleCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sample NAME DIR")
	}
	data, err := os.ReadFile(filepath.Join(ts.Getenv("SAMPLES"), args[0]+".json"))
	ts.Check(err)
	var list struct{ Items []json.RawMessage }
	ts.Check(json.Unmarshal(data, &list))
	if len(list.Items) != 1 {
		ts.Fatalf("sample %s holds %d runs: want one", args[0], len(list.Items))
	}
	dir := ts.MkAbs(args[1])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(os.WriteFile(filepath.Join(dir, "run.json"), list.Items[0], 0o644))
}
