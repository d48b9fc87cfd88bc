// Package doctor checks whether this machine has what a run needs, and how to provide
// what it lacks. It starts nothing and changes nothing, except that it raises the limit
// of open files where that is allowed.
//
// What a run needs is passed in as plain data (Requirements): finding programs is left to
// package component, and a whole command's needs to its caller.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Status is the outcome of one check.
type Status string

// The outcomes, from good to bad.
const (
	OK      Status = "ok"
	Warning Status = "warning" // a run works, but slowly or with warnings about its figures
	Failed  Status = "failed"  // a run would fail
)

// Result is the result of one check.
type Result struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	// Detail states what was found and what is needed.
	Detail string `json:"detail"`
	// Fix states what to do; empty when Status is OK.
	Fix string `json:"fix,omitempty"`
}

// Requirements are the needs of a run. The zero value describes an empty embedded
// cluster.
type Requirements struct {
	// Pods is the number of simulated sidecars that run at once; 0 = none.
	Pods int
	// OtherPods is the number of pods without a sidecar, and Objects that of Services and of objects that configure the mesh.
	OtherPods, Objects int
	// Ports is the number of free local ports needed at once; 0 = DefaultPorts.
	Ports int
	// Dirs are folders to be written; they need not exist yet.
	Dirs []Dir
	// Programs are the programs that will be started; none = not checked.
	Programs []Program
	// SidecarPrograms are the programs of real sidecars; none = not checked.
	SidecarPrograms []Program
	// RealSidecars is the number of real sidecars. If it is 0, a missing part of them is
	// only a warning.
	RealSidecars int
	// Elsewhere states that the cluster and the control plane run on other machines.
	Elsewhere bool
}

// Dir is a folder and the free space that is needed in it.
type Dir struct {
	Name  string // for people, as "cache" or "--out"
	Path  string
	Bytes uint64 // 0 = it only has to be writable
}

// Program is one program that will be started.
type Program struct {
	Name string
	// Path is the path of the program; empty if it does not exist and must be built.
	Path string
	// Problem states why it can neither be used nor built; empty if there is no problem.
	Problem string
	// Pip is set if pip installs it: no Go is needed to build it.
	Pip bool
}

// needsGo reports whether Go has to build the program.
func (p Program) needsGo() bool { return p.Path == "" && p.Problem == "" && !p.Pip }

// DefaultPorts is the number of ports that one run listens on: those of the cluster's
// programs, the control plane and the recorder, and a few more.
const DefaultPorts = 24

// Check runs all checks, in a fixed order. It takes well under a second.
func Check(ctx context.Context, req Requirements) []Result {
	results := []Result{
		checkOpenFiles(req.Pods, filesPerSidecar),
		checkPorts(req.Ports),
		checkOutgoingPorts(req.Pods),
		checkMemory(req),
		checkProcessors(),
		checkInotify(inotifyNeeded),
	}
	for _, d := range req.Dirs {
		results = append(results, checkDir(d))
	}
	built := req.Programs
	if req.RealSidecars > 0 {
		built = slices.Concat(built, req.SidecarPrograms)
	}
	goResult := checkGo(ctx)
	haveGo := goResult.Status == OK
	if haveGo || slices.ContainsFunc(built, Program.needsGo) { // existing programs need none
		results = append(results, goResult)
	}
	if len(req.Programs) > 0 {
		results = append(results, checkPrograms(req.Programs, haveGo))
	}
	if len(req.SidecarPrograms) > 0 {
		results = append(results, checkSidecarPrograms(req.SidecarPrograms, req.RealSidecars > 0, haveGo))
	}
	return results
}

// Error returns nil if nothing failed, and otherwise an error that names every failed
// check with its fix. Warnings are no errors.
func Error(results []Result) error {
	var failed []error
	for _, r := range results {
		if r.Status == Failed {
			failed = append(failed, fmt.Errorf("checking %s: %s; %s", r.Name, r.Detail, r.Fix))
		}
	}
	return errors.Join(failed...)
}

func checkPrograms(programs []Program, haveGo bool) Result {
	r := Result{Name: "programs", Status: OK}
	unusable, missing := lacking(programs)
	switch {
	case len(unusable) > 0:
		r.Status = Failed
		r.Detail = strings.Join(unusable, "; ")
		r.Fix = "put working programs there, or leave --bin-dir and SCALER_BIN_DIR unset and scaler builds them"
		if strings.Contains(r.Detail, "noexec") {
			r.Fix = "name a folder on another file system by --cache-dir or --bin-dir, or mount that one with exec"
		}
	case len(missing) > 0:
		r.Status = Warning
		r.Detail = "not there yet: " + strings.Join(missing, ", ")
		r.Fix = "the first run takes them from images or builds them, which takes minutes; or do it now: scaler components get, or build"
		if !haveGo {
			r.Status = Failed
			r.Fix = "install Go to build them, take released ones (scaler components get), or name a folder with ready programs (--bin-dir)"
		}
	default:
		r.Detail = fmt.Sprintf("all %d are there", len(programs))
	}
	return r
}

// lacking returns the programs that cannot be used, and the names of those that do not
// exist yet.
func lacking(programs []Program) (unusable, missing []string) {
	for _, p := range programs {
		switch {
		case p.Problem != "":
			unusable = append(unusable, p.Name+" "+p.Problem)
		case p.Path == "":
			missing = append(missing, p.Name)
		case noexec(p.Path):
			unusable = append(unusable, p.Name+" cannot be executed: "+p.Path+" is on a file system that is mounted noexec")
		}
	}
	return unusable, missing
}
