package grafana

import (
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

// Image is the image that Docker runs by default.
const Image = "grafana/grafana:12.2.0"

// dockerTimeout limits the check whether Docker's server answers.
const dockerTimeout = 5 * time.Second

// ErrNone is in the error of Find when this machine has no Grafana, nor a
// Docker to run one.
var ErrNone = errors.New("no Grafana here")

// FindOptions state where to look for a Grafana.
type FindOptions struct {
	// Program is the path of grafana or grafana-server; "" means that PATH is searched,
	// and then Docker tried.
	Program string
	// Home is the folder with its conf and public; "" means that it is looked for above
	// the program, and where packages install it.
	Home string
	// Image is the image that Docker runs; "" means the constant Image.
	Image string
}

// Launcher is a way to start a Grafana on this machine.
type Launcher struct {
	path string
	// Of a program of this machine; "" of Docker.
	home string
	// Of Docker; "" of a program.
	image string
}

// String states what would be started.
func (l Launcher) String() string {
	if l.image != "" {
		return l.image + " with " + l.path
	}
	return l.path
}

// homes are the folders in which packages install the files that Grafana needs.
var homes = []string{"/usr/share/grafana", "/usr/local/share/grafana", "/opt/grafana"}

// Find finds a Grafana. If a program is named it must exist; otherwise the error wraps
// ErrNone and lists what was looked for, or is that of ctx.
func Find(ctx context.Context, opts FindOptions) (Launcher, error) {
	if opts.Program != "" {
		path, err := exec.LookPath(opts.Program)
		if err != nil {
			return Launcher{}, fmt.Errorf("looking for Grafana: %w", err)
		}
		return program(path, opts.Home)
	}
	for _, name := range []string{"grafana", "grafana-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return program(path, opts.Home)
		}
	}
	docker, err := exec.LookPath("docker")
	if err != nil {
		return Launcher{}, fmt.Errorf("%w: neither grafana nor docker is in PATH", ErrNone)
	}
	limited, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	if out, err := process.CombinedOutput(exec.CommandContext(limited, docker, "info", "--format", "{{.ServerVersion}}")); err != nil {
		if ctx.Err() != nil {
			return Launcher{}, context.Cause(ctx)
		}
		return Launcher{}, fmt.Errorf("%w: grafana is not in PATH, and docker info reports: %s", ErrNone, lastLine(out, err))
	}
	if opts.Image == "" {
		opts.Image = Image
	}
	return Launcher{path: docker, image: opts.Image}, nil
}

// program finds the home of a program.
func program(path, home string) (Launcher, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Launcher{}, fmt.Errorf("looking for Grafana: %w", err)
	}
	if home != "" {
		if !IsHome(home) {
			return Launcher{}, fmt.Errorf("looking for Grafana's home: %s holds no conf/defaults.ini", home)
		}
		home, err = filepath.Abs(home)
		return Launcher{path: path, home: home}, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Launcher{}, fmt.Errorf("looking for Grafana: %w", err)
	}
	for _, dir := range append([]string{filepath.Dir(filepath.Dir(real)), filepath.Dir(real)}, homes...) {
		if IsHome(dir) {
			return Launcher{path: path, home: dir}, nil
		}
	}
	return Launcher{}, fmt.Errorf("looking for the home of %s: want the folder that holds conf/defaults.ini", path)
}

// IsHome reports whether a folder is a Grafana's home.
func IsHome(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "conf", "defaults.ini"))
	return err == nil
}

// lastLine returns the last line of a failed program's output, or the error if there was
// no output.
func lastLine(out []byte, err error) string {
	text := strings.TrimSpace(string(out))
	if text == "" {
		return err.Error()
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}
