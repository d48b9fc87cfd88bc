package component

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/process"
)

// answerTimeout is the time limit of a program's version command. They take 0.1 to 0.5 s;
// more on a busy machine.
const answerTimeout = 10 * time.Second

// pathsIn gives the programs of a folder that the user named. The error names everything that is wrong.
func (s *store) pathsIn(ctx context.Context, binDir string, names []string) (map[string]string, error) {
	states := make([]Status, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		_, p := s.graphs.find(name)
		wg.Go(func() { states[i] = p.inBinDir(ctx, binDir) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found := map[string]string{}
	var wrong []error
	for _, st := range states {
		if st.Problem != "" {
			wrong = append(wrong, fmt.Errorf("using --bin-dir %q: %s %s; put a working %s there, or leave --bin-dir and SCALER_BIN_DIR unset and scaler builds it", binDir, st.Name, st.Problem, st.Name))
			continue
		}
		found[st.Name] = st.Path
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return found, nil
}

// inBinDir looks for p in the folder, under its own name or upstream's, and has it answer.
func (p Program) inBinDir(ctx context.Context, binDir string) Status {
	st := Status{Name: p.Name, Source: SourceBinDir}
	dir, err := filepath.Abs(binDir)
	if err != nil {
		st.Problem = "cannot be looked for: " + err.Error()
		return st
	}
	path := filepath.Join(dir, p.Name)
	if other := filepath.Join(dir, p.Output); Executable(path) != nil && Executable(other) == nil {
		path = other
	}
	if err := Executable(path); err != nil {
		st.Problem = "is " + err.Error()
		return st
	}
	version, err := answer(ctx, path, p.Ask)
	if err != nil {
		st.Problem = "is broken: " + err.Error()
		return st
	}
	if strings.HasPrefix(p.Version, "v") && !strings.HasPrefix(version, "v") && version != "unknown" {
		version = "v" + version // etcd answers without: written as the pinned one, to compare
	}
	st.Path, st.Version = path, version
	return st
}

// versionText finds the version in what a program prints for its version command. All programs
// here either name it "version" in some spelling, or are Kubernetes; the Go version that some
// print with it starts with "go" and so does not match. Envoy puts its commit in front. Linkerd
// prints nothing else, with its channel in front.
var versionText = regexp.MustCompile(`(?i)(?:version[:= "]+(?:[0-9a-f]{40}/)?|kubernetes |^)((?:(?:edge|stable)-|v?)\d+\.\d+[\w.+-]*)`)

// answer runs a program's version command and returns the version it prints, "unknown" when it
// succeeds but prints none.
func answer(ctx context.Context, path string, ask []string) (string, error) {
	out, err := Ask(ctx, path, ask...)
	if err != nil {
		return "", err
	}
	if m := versionText.FindStringSubmatch(out); m != nil {
		return m[1], nil
	}
	return "unknown", nil
}

// Ask runs a program that ends by itself, and returns what it prints. One that fails, or takes
// longer than a version command may, is an error.
func Ask(ctx context.Context, path string, ask ...string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	cmd := exec.CommandContext(limited, path, ask...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := process.Run(cmd); err != nil {
		if ctx.Err() != nil { // it is not the program's fault
			err = context.Cause(ctx)
		} else if limited.Err() != nil {
			err = fmt.Errorf("no answer within %v", answerTimeout)
		}
		if text := lastLines(out.String()+log.String(), 3); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return "", fmt.Errorf("running %s %s: %w", path, strings.Join(ask, " "), err)
	}
	return out.String(), nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
