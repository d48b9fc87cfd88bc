package snapshot

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ofRuns are the control groups of scaler's runs, which other tests may start meanwhile.
var ofRuns = regexp.MustCompile(`/scaler-\d+-`)

// Machine lists what programs that run as root may leave on a machine: mounts, interfaces with their
// addresses and routes, rules of iptables, control groups, and settings of the kernel. Each line
// begins with its subject. iptablesSave are the programs that print rules.
func Machine(ctx context.Context, settings []string, iptablesSave ...string) ([]string, error) {
	var all []string
	add := func(about string, lines ...string) {
		for _, line := range lines {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				all = append(all, about+": "+line)
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			add("mount", strings.Join(fields[2:5], " "))
		}
	}
	for _, command := range [][]string{{"ip", "-oneline", "link"}, {"ip", "-oneline", "address"}, {"ip", "route", "show", "table", "all"}} {
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
		if err != nil {
			return nil, fmt.Errorf("running %s: %w", strings.Join(command, " "), err)
		}
		add("interface", strings.Split(string(out), "\n")...)
	}
	for _, program := range iptablesSave {
		out, err := exec.CommandContext(ctx, program).Output()
		if err != nil {
			return nil, fmt.Errorf("running %s: %w", program, err)
		}
		for line := range strings.Lines(string(out)) {
			if rule, _, counters := strings.Cut(line, " ["); counters {
				line = rule // of packets and bytes
			}
			add("rule", line)
		}
	}
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && !ofRuns.MatchString(path) {
			add("control group", path)
		}
		if os.IsNotExist(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, s := range settings {
		value, err := os.ReadFile("/proc/sys/" + s)
		if err != nil {
			return nil, err
		}
		add("setting", s+" "+string(value))
	}
	for _, pattern := range []string{"/run/*", "/var/lib/*", "/var/log/*", "/opt/*", "/etc/cni*", "/usr/libexec/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		add("file", files...)
	}
	slices.Sort(all)
	return all, nil
}
