package component

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"scaler.mesh/scaler/internal/process"
)

// toolchain is the installed Go.
type toolchain struct {
	path    string
	version string // as `go env GOVERSION`; "" = there is none
	flags   string // the user's GOFLAGS, as far as they cannot change what is built
	// settings are other variables of go that change what is built, as NAME=VALUE with
	// spaces between, without those that have their defaults. CGO_ENABLED, GOOS, GOARCH and
	// the rest of GOFLAGS are set for each build.
	settings string
}

// defaults are the variables of `go env` that change what is built, and their default
// values.
var defaults = []struct{ name, value string }{
	{"GO386", "sse2"},
	{"GOAMD64", "v1"},
	{"GOARM", "7"},
	{"GOARM64", "v8.0"},
	{"GOEXPERIMENT", ""},
	{"GOFIPS140", "off"},
	{"GOMIPS", "hardfloat"},
	{"GOMIPS64", "hardfloat"},
	{"GOPPC64", "power8"},
	{"GORISCV64", "rva20u64"},
}

// settingsOf gives the variables of env that have not their default values.
func settingsOf(env map[string]string) string {
	var set []string
	for _, d := range defaults {
		if value := env[d.name]; value != "" && value != d.value {
			set = append(set, d.name+"="+value)
		}
	}
	return strings.Join(set, " ")
}

// probeToolchain asks the `go` in PATH about itself, from a folder that is no module. The error
// states what to do.
func (s *store) probeToolchain(ctx context.Context) (toolchain, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return toolchain{}, errors.New(`no Go toolchain found ("go" is not in PATH); install Go 1.26 or later, or name a folder with ready programs (--bin-dir)`)
	}
	names := []string{"env", "-json", "GOVERSION", "GOFLAGS"}
	for _, d := range defaults {
		names = append(names, d.name)
	}
	cmd := exec.CommandContext(ctx, path, names...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if info, err := os.Stat(s.dir); err == nil && info.IsDir() {
		cmd.Dir = s.dir
	}
	out, err := process.Output(cmd)
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, lastLines(string(exit.Stderr), 3))
		}
		return toolchain{}, fmt.Errorf("asking %s env GOVERSION: %w; repair the Go installation, or name a folder with ready programs (--bin-dir)", path, err)
	}
	var env map[string]string
	if err := json.Unmarshal(out, &env); err != nil {
		return toolchain{}, fmt.Errorf("reading the answer of %s env: %w", path, err)
	}
	return toolchain{
		path: path, version: env["GOVERSION"], flags: harmlessFlags(env["GOFLAGS"]), settings: settingsOf(env),
	}, nil
}

// harmlessFlags keeps of GOFLAGS only what cannot change the programs that come out.
func harmlessFlags(goflags string) string {
	var kept []string
	for f := range strings.FieldsSeq(goflags) {
		switch name, _, _ := strings.Cut(strings.TrimLeft(f, "-"), "="); name {
		case "p", "modcacherw":
			kept = append(kept, f)
		}
	}
	return strings.Join(kept, " ")
}
