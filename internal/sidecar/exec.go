package sidecar

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/internal/process"
)

// ExecCommand is the first argument of the program that calls Exec with the
// others.
const ExecCommand = "exec-envoy"

const (
	wrapperName = "envoy"
	pidName     = "envoy.pid"
)

// EnvoyIn returns the path of the program to start as Envoy in a sidecar's folder.
func EnvoyIn(dir string) string { return filepath.Join(dir, wrapperName) }

// Exec replaces the process by Envoy: args are the path of the program and its own
// arguments. It first asks the kernel to kill the process when its parent ends, which
// stays in force after the replacement; otherwise a killed agent would leave its Envoy
// behind. It writes the process id into the working folder. It returns only errors.
func Exec(args []string) error {
	if len(args) == 0 {
		return errors.New("starting Envoy: no program named")
	}
	if err := linux.EndSelfWithParent(unix.SIGKILL); err != nil {
		return fmt.Errorf("starting Envoy: asking to be ended with its agent: %w", err)
	}
	// If the agent ended before that, the new parent is init or scaler, which are not in
	// the group.
	if !process.SameGroup(os.Getppid()) {
		return errors.New("starting Envoy: its agent has ended")
	}
	if err := replaceFile(pidName, []byte(strconv.Itoa(os.Getpid())), 0o644, 0); err != nil {
		return fmt.Errorf("starting Envoy: %w", err)
	}
	if err := unix.Exec(args[0], args, os.Environ()); err != nil {
		return fmt.Errorf("starting Envoy %s: %w", args[0], err)
	}
	return nil
}

// wrapEnvoy writes the program that an agent starts as Envoy.
func wrapEnvoy(dir, scaler, envoy string) error {
	text := fmt.Sprintf("#!/bin/sh\nexec %s %s %s \"$@\"\n", quoted(scaler), ExecCommand, quoted(envoy))
	return writeFile(EnvoyIn(dir), []byte(text), 0o755)
}

// quoted quotes a word for sh.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func removePID(dir string) error {
	err := os.Remove(filepath.Join(dir, pidName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// findEnvoy finds the process that Exec has replaced by Envoy.
func findEnvoy(dir string) (process.Handle, error) {
	text, err := os.ReadFile(filepath.Join(dir, pidName))
	if err != nil {
		return process.Handle{}, err // usually since it is not written yet
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return process.Handle{}, err
	}
	return process.Find(pid), nil
}
