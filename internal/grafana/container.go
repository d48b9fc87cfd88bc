package grafana

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// containerFile, in the folder of a process group, has the name of the container that its
// Grafana runs in. A container is not a process of the group, and continues if Docker's
// client and this program are killed: the file is written before the client starts, so
// that a cleanup finds it.
const containerFile = "grafana.container"

// containerPattern matches the names of scaler's containers and no others.
var containerPattern = regexp.MustCompile(`^scaler-grafana-[a-z2-7]{26}$`)

// nameContainer makes a unique name for a container, and writes it into dir.
func nameContainer(dir string) (string, error) {
	name := "scaler-grafana-" + strings.ToLower(rand.Text())
	if err := os.WriteFile(filepath.Join(dir, containerFile), []byte(name+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("naming a container: %w", err)
	}
	return name, nil
}

// Container returns the name of the Docker container that a Grafana of the process group
// in dir was given, and which may still run; "" if there was none.
func Container(dir string) (string, error) {
	path := filepath.Join(dir, containerFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking for a container: %w", err)
	}
	name := strings.TrimSpace(string(data))
	if name == "" { // killed while it was written, and so before there was a container
		return "", nil
	}
	if !containerPattern.MatchString(name) {
		return "", fmt.Errorf("reading %s: %q is no container of scaler's", path, name)
	}
	return name, nil
}

// RemoveContainer removes the container that Container names, if there is one. It must be
// called before the group's folder, which contains the name, is deleted.
func RemoveContainer(ctx context.Context, dir string) error {
	name, err := Container(dir)
	if err != nil || name == "" {
		return err
	}
	docker, err := exec.LookPath("docker")
	if err != nil {
		return fmt.Errorf("removing container %s: %w", name, err)
	}
	return removeContainer(ctx, docker, name)
}

func removeContainer(ctx context.Context, docker, name string) error {
	out, err := exec.CommandContext(ctx, docker, "rm", "--force", name).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "No such container") { // deleted already, as intended
		return fmt.Errorf("removing container %s: %s", name, lastLine(out, err))
	}
	return nil
}
