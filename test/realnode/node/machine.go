package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hierarchies are the hierarchies of control groups, of version 1, that kubelet and runc need.
var hierarchies = []string{"blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids"}

// lackingError states what a machine lacks that a real node needs.
type lackingError struct{ what string }

func (e *lackingError) Error() string { return "a real node cannot run here: want " + e.what }

// check states what this machine lacks, as a lackingError.
func check(ctx context.Context, o options) error {
	if os.Geteuid() != 0 {
		return &lackingError{"root"}
	}
	for _, program := range []string{"sh", "ip", "mount", "nsenter", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			return &lackingError{program + " in PATH (packages iproute2, mount and util-linux)"}
		}
	}
	mounted, err := groupMounts()
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		if mounted[h] == "" {
			return &lackingError{fmt.Sprintf("hierarchy %s of control groups of version 1; those of version 2 have not been tried", h)}
		}
	}
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err != nil || !strings.Contains(string(filesystems), "\toverlay\n") {
		return &lackingError{"file system overlay in /proc/filesystems"}
	}
	for _, hidden := range hiddenDirs {
		if strings.HasPrefix(o.state+"/", hidden+"/") {
			return &lackingError{fmt.Sprintf("--state-dir outside of %s, not %s", hidden, o.state)}
		}
	}
	if out, err := command(ctx, "unshare", "--net", "--mount", "--propagation", "private", "sh", "-c",
		"mount -t tmpfs realnode /run && ip link add probe type veth peer name probe2"); err != nil {
		return &lackingError{"network and mount namespaces, and interfaces of type veth: " + out}
	}
	tools, err := findTools(ctx, o)
	if err != nil {
		return err
	}
	rules := "-t nat -A PREROUTING -m comment --comment probe -m addrtype --dst-type LOCAL -m statistic --mode random --probability 0.5 -j MARK --set-mark 1"
	if out, err := command(ctx, "unshare", append([]string{"--net", tools.wrapper("iptables")}, strings.Fields(rules)...)...); err != nil {
		return &lackingError{"iptables with the matches that kube-proxy uses: " + out}
	}
	return nil
}

// command runs a program that ends by itself; out is what it prints.
func command(ctx context.Context, program string, args ...string) (out string, err error) {
	text, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	out = strings.TrimSpace(string(text))
	if err != nil {
		err = fmt.Errorf("running %s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return out, err
}

// hiddenDirs are folders that the node has for itself: kubelet, containerd and CNI write there,
// whatever their configuration is.
var hiddenDirs = []string{"/run", "/var/lib", "/var/log"}

// makeLink connects the network namespace of a process, which is the node's, with the machine's.
func (s site) makeLink(ctx context.Context, pid int) error {
	ranges := []string{s.links, s.pods}
	if s.name == name {
		ranges = append(ranges, serviceRange)
	}
	for _, taken := range ranges {
		if routes, err := command(ctx, "ip", "route", "show", "table", "all", "root", taken); err != nil || routes != "" {
			return errors.Join(fmt.Errorf("connecting the node: want no route to addresses of %s, and there is: %s", taken, routes), err)
		}
	}
	steps := [][]string{
		{"ip", "link", "add", s.link, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(pid)},
		{"ip", "address", "add", s.machine + "/30", "dev", s.link},
		{"ip", "link", "set", s.link, "up"},
		inside(pid, "link", "set", "lo", "up"),
		inside(pid, "address", "add", s.linked+"/30", "dev", "eth0"),
		inside(pid, "link", "set", "eth0", "up"),
		inside(pid, "route", "add", "default", "via", s.machine),
	}
	for _, to := range ranges[1:] {
		steps = append(steps, []string{"ip", "route", "add", to, "via", s.linked})
	}
	return connect(ctx, steps)
}

// joinNodes connects the network namespaces of two nodes, because the machine forwards no packets.
func joinNodes(ctx context.Context, a, b site, pidA, pidB int) error {
	steps := [][]string{inside(pidA, "link", "add", "nodes", "type", "veth", "peer", "name", "nodes", "netns", strconv.Itoa(pidB))}
	for _, end := range []struct {
		pid      int
		here, to site
	}{{pidA, a, b}, {pidB, b, a}} {
		steps = append(steps,
			inside(end.pid, "address", "add", end.here.between+"/30", "dev", "nodes"),
			inside(end.pid, "link", "set", "nodes", "up"),
			inside(end.pid, "route", "add", end.to.pods, "via", end.to.between),
		)
	}
	return connect(ctx, steps)
}

// inside returns a command of ip(8) in the network namespace of a process.
func inside(pid int, args ...string) []string {
	return append([]string{"nsenter", "--target", strconv.Itoa(pid), "--net", "ip"}, args...)
}

func connect(ctx context.Context, steps [][]string) error {
	for _, args := range steps {
		if _, err := command(ctx, args[0], args[1:]...); err != nil {
			return fmt.Errorf("connecting the node: %w", err)
		}
	}
	return nil
}

// removeLink removes the pair of interfaces between machine and node, and with it the routes.
func (s site) removeLink(ctx context.Context) error {
	if _, err := os.Stat("/sys/class/net/" + s.link); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, err := command(ctx, "ip", "link", "delete", s.link)
	if _, gone := os.Stat("/sys/class/net/" + s.link); errors.Is(gone, fs.ErrNotExist) {
		return nil // the kernel was faster: its namespace has ended
	}
	return err
}

// groupMounts returns the folders of the hierarchies: of version 1 by controller, and that of version 2.
func groupMounts() (map[string]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		left, right, _ := strings.Cut(lines.Text(), " - ")
		mount, about := strings.Fields(left), strings.Fields(right)
		if len(mount) < 5 || len(about) < 3 {
			continue
		}
		if about[0] == "cgroup2" { // runc makes groups in this one, too
			all[about[0]] = mount[4]
		}
		if about[0] != "cgroup" {
			continue
		}
		for option := range strings.SplitSeq(about[2], ",") {
			if option = strings.TrimPrefix(option, "name="); option != "rw" && option != "ro" {
				all[option] = mount[4]
			}
		}
	}
	return all, nil
}

// groupDirs returns the node's control groups, one for each hierarchy.
func (s site) groupDirs() ([]string, error) {
	mounted, err := groupMounts()
	var dirs []string
	for _, dir := range mounted {
		if dir = filepath.Join(dir, s.group); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs, err
}

// makeGroups makes the node's control groups, with the processors and memory of the machine.
// daemons is the one that its processes are to join.
func (s site) makeGroups() (daemons string, err error) {
	dirs, err := s.groupDirs()
	if err != nil {
		return "", err
	}
	for _, dir := range dirs {
		err := os.MkdirAll(dir, 0o755)
		for _, setting := range []string{"cpuset.cpus", "cpuset.mems"} {
			all, readErr := os.ReadFile(filepath.Join(filepath.Dir(dir), setting))
			if err == nil && readErr == nil {
				err = os.WriteFile(filepath.Join(dir, setting), all, 0o644)
			}
		}
		if err != nil {
			return "", fmt.Errorf("making control groups: %w", err)
		}
	}
	mounted, err := groupMounts()
	if err != nil {
		return "", err
	}
	daemons = filepath.Join(mounted["pids"], s.group, "daemons")
	return daemons, os.MkdirAll(daemons, 0o755)
}

// walkGroups calls do for each of the node's control groups, those inside others first.
func (s site) walkGroups(do func(dir string) error) error {
	dirs, err := s.groupDirs()
	if err != nil {
		return err
	}
	var all []string
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && d.IsDir() {
				all = append(all, path)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, dir := range slices.Backward(all) {
		if err := do(dir); err != nil {
			return err
		}
	}
	return nil
}

// until calls done every 50 ms until it is true.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx)), err)
		}
	}
}

// killGroups ends all processes in the node's control groups.
func (s site) killGroups(ctx context.Context) error {
	return until(ctx, "all processes of the node have ended", func() (bool, error) {
		left := false
		err := s.walkGroups(func(dir string) error {
			text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
				return nil
			}
			for line := range strings.Lines(string(text)) {
				// Of a process that cannot be seen from here it is 0, which kill takes for the caller's group.
				if pid, _ := strconv.Atoi(strings.TrimSpace(line)); pid > 1 {
					left = true
					if killErr := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(killErr, syscall.ESRCH) {
						err = errors.Join(err, killErr)
					}
				}
			}
			return err
		})
		return err != nil || !left, err
	})
}

// removeGroups removes the node's control groups, which no process is in any more.
func (s site) removeGroups(ctx context.Context) error {
	return until(ctx, "the control groups of the node are removed", func() (bool, error) {
		busy := false
		err := s.walkGroups(func(dir string) error {
			err := syscall.Rmdir(dir)
			if errors.Is(err, syscall.EBUSY) { // the last process ends
				busy, err = true, nil
			}
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return err
		})
		return err != nil || !busy, err
	})
}

// settings are the settings of the kernel that kubelets set for the whole machine.
var settings = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// settingsFile has the settings that the machine had when the node was started.
func (s site) settingsFile(o options) string { return s.file(o, "settings.json") }

// saveSettings saves the settings of the kernel that kubelet changes.
func (s site) saveSettings(o options) error {
	values := map[string]string{}
	for _, setting := range settings {
		value, err := os.ReadFile("/proc/sys/" + setting)
		if err != nil {
			return err
		}
		values[setting] = strings.TrimSpace(string(value))
	}
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	return os.WriteFile(s.settingsFile(o), text, 0o644)
}

// restoreSettings sets them as they were.
func (s site) restoreSettings(o options) error {
	text, err := os.ReadFile(s.settingsFile(o))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	values := map[string]string{}
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	for setting, value := range values {
		err = errors.Join(err, os.WriteFile("/proc/sys/"+setting, []byte(value), 0o644))
	}
	return err
}
