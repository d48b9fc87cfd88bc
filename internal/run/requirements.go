package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place/embedded"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/scenario"
)

// Room on disk, as measured with all programs built.
const (
	programsBytes  = 1 << 30  // the built programs together
	goCachesBytes  = 13 << 30 // Go's module and build caches, once all was built from nothing
	runBytes       = 100 << 20
	stateBytes     = 300 << 20 // the cluster's data while it runs
	runBytesPerPod = 50 << 10  // metrics and logs of a run of some minutes
)

// Requirements returns the requirements to this machine of a rollout of so many pods against a control plane,
// recorded in the folder out. state is the folder of the running programs.
func Requirements(ctx context.Context, programs component.Options, d controlplane.Driver, pods int, out, state string) (doctor.Requirements, error) {
	req := doctor.Requirements{
		Pods: pods,
		Dirs: []doctor.Dir{{Name: "--out", Path: out, Bytes: recordBytes(pods)}},
	}
	return req, requirePrograms(ctx, &req, programs, embeddedPlace{}.programs(d), state)
}

// requirePrograms adds what starting programs needs: where they are, what building
// those needs that are not there, and room for their data.
func requirePrograms(ctx context.Context, req *doctor.Requirements, programs component.Options, names []string, state string) error {
	all, err := component.List(ctx, programs)
	if err != nil {
		return err
	}
	req.Dirs = append(req.Dirs, doctor.Dir{Name: "state (SCALER_STATE_DIR)", Path: state, Bytes: stateBytes})
	toBuild := 0
	for _, p := range all {
		if !slices.Contains(names, p.Name) {
			continue
		}
		req.Programs = append(req.Programs, doctor.Program{Name: p.Name, Path: p.Path, Problem: p.Problem})
		if p.Source == component.SourceBuild {
			toBuild++
		}
	}
	if toBuild > 0 {
		cache, err := component.CacheDir(programs)
		if err != nil {
			return err
		}
		share, of := uint64(toBuild), uint64(len(req.Programs))
		req.Dirs = append(req.Dirs,
			doctor.Dir{Name: "program cache", Path: cache, Bytes: programsBytes * share / of},
			doctor.Dir{Name: "Go's caches", Path: goCache(), Bytes: goCachesBytes * share / of})
	}
	return nil
}

// CheckForCluster fails when this machine lacks what an embedded cluster without pods
// needs, naming the fix, and raises the limit of open files where that is allowed. say
// takes the checks that only warn. state is the folder for what runs.
func CheckForCluster(ctx context.Context, programs component.Options, state string, say func(string)) error {
	var req doctor.Requirements
	if err := requirePrograms(ctx, &req, programs, embedded.Components(), state); err != nil {
		return err
	}
	return check(ctx, req, say)
}

// goCache returns the folder of Go's build cache. Its downloads are mostly on the same disk.
func goCache() string {
	if dir := os.Getenv("GOCACHE"); dir != "" {
		return dir
	}
	if base, err := os.UserCacheDir(); err == nil {
		return filepath.Join(base, "go-build")
	}
	return os.TempDir()
}

// checkMachine fails when this machine lacks what the runs need, naming the
// fix, and raises the limit of open files where that is allowed. It shows what only
// warns, and states what the runs need. An error of type *[scenario.Error] is of a mesh that does not fit.
func checkMachine(ctx context.Context, runs []Spec, progress Progress) error {
	largest, records := runs[0], uint64(0)
	for _, run := range runs {
		if run.requirements().Memory() > largest.requirements().Memory() {
			largest = run
		}
		records += recordBytes(run.Pods())
	}
	req := largest.requirements()
	req.Dirs = []doctor.Dir{{Name: "--out", Path: largest.Out, Bytes: records}}
	if err := largest.Fits(); err != nil {
		return err
	}
	driver, err := largest.Driver()
	if err != nil {
		return err
	}
	if err := requirePrograms(ctx, &req, largest.Programs, largest.place().programs(driver), largest.State); err != nil {
		return err
	}
	if req.RealSidecars > 0 {
		if req.SidecarPrograms, err = SidecarPrograms(ctx, largest.Programs, driver); err != nil {
			return err
		}
	}
	room := uint64(0)
	for _, dir := range req.Dirs {
		room += dir.Bytes
	}
	progress.say(fmt.Sprintf("about %s of memory and up to %s on disk are needed", output.Bytes(float64(req.Memory())), output.Bytes(float64(room))))
	return check(ctx, req, progress.say)
}

// requirements returns what a single run needs by its size.
func (s Spec) requirements() doctor.Requirements {
	req := doctor.Requirements{Pods: s.Pods(), OtherPods: topology.Value(s.Profile().OutsidePods), RealSidecars: s.sidecarProcesses(), Elsewhere: s.Existing != nil}
	if m := s.Captured; m != nil {
		_, req.OtherPods = m.Mesh.Members()
		req.Objects = len(m.Mesh.Services) + len(m.Mesh.Slices) + len(m.Mesh.Objects)
	}
	return req
}

// Fits returns an error of type *[scenario.Error] if this machine has not what a single run needs, with the size that fits. It raises the limit of
// open files where that is allowed.
func (s Spec) Fits() error { return s.checkSize(s.resources()) }

// resource is something of which a run needs more the larger it is.
type resource struct {
	need  func(doctor.Requirements) uint64
	have  uint64
	short func(doctor.Requirements) bool // not even a run that is expected to take less than the estimate can be done; nil = as soon as the need is not met
	lack  func(need uint64) string
}

// resources returns what this machine has for a single run. What is not known is left out, and a check of the machine says so.
func (s Spec) resources() (all []resource) {
	if free, err := doctor.FreeMemory(); err == nil {
		all = append(all, memory(free))
	}
	if allowed, err := doctor.AllowFiles(s.requirements().OpenFiles()); err == nil {
		all = append(all, files(allowed))
	}
	if free, err := doctor.FreeRoom(s.Out); err == nil && s.Out != "" {
		all = append(all, disk(free, s.Out))
	}
	return all
}

func memory(free uint64) resource {
	return resource{
		need: doctor.Requirements.Memory, have: free, short: func(r doctor.Requirements) bool { return r.LacksMemory(free) },
		lack: func(need uint64) string {
			return fmt.Sprintf("about %s of memory are needed, and this machine has %s free", output.Bytes(float64(need)), output.Bytes(float64(free)))
		},
	}
}

func files(allowed uint64) resource {
	return resource{
		need: doctor.Requirements.OpenFiles, have: allowed,
		lack: func(need uint64) string {
			return fmt.Sprintf("%d open files are needed, and the hard limit is %d (ulimit -Hn)", need, allowed)
		},
	}
}

func disk(free uint64, folder string) resource {
	return resource{
		need: func(r doctor.Requirements) uint64 { return recordBytes(r.Pods) }, have: free,
		lack: func(need uint64) string {
			return fmt.Sprintf("about %s of disk are needed for the record, and %s has %s free", output.Bytes(float64(need)), folder, output.Bytes(float64(free)))
		},
	}
}

// fits reports whether there is enough of everything.
func fits(req doctor.Requirements, have []resource) bool {
	return !slices.ContainsFunc(have, func(r resource) bool { return r.need(req) > r.have })
}

// lacks returns the first resource that a run cannot do without; nil = there is none.
func lacks(req doctor.Requirements, have []resource) *resource {
	for i, r := range have {
		if r.need(req) > r.have && (r.short == nil || r.short(req)) {
			return &have[i]
		}
	}
	return nil
}

// shareSteps is the number of steps in which a mesh is made smaller until it fits.
const shareSteps = 20

// FittingShare returns the largest share of the pods of a captured mesh for which this machine has what is needed, in steps of a twentieth;
// 0 = all of them fit, or no share does, or that is not known.
func (s Spec) FittingShare() scenario.Share { return s.fittingShare(s.resources()) }

func (s Spec) fittingShare(have []resource) scenario.Share {
	if s.Captured == nil || lacks(s.requirements(), have) == nil {
		return 0
	}
	for step := shareSteps - 1; step > 0; step-- {
		share := float64(step) / shareSteps
		part, m := s, *s.Captured
		m.Mesh = m.Mesh.Share(share)
		part.UseMesh(&m)
		if fits(part.requirements(), have) {
			return scenario.Share(share)
		}
	}
	return 0
}

// checkSize returns an error of the field that decides the size of a single run, with the largest one that fits, if
// there is not enough of something for it; nil where no size would fit.
func (s Spec) checkSize(have []resource) error {
	req := s.requirements()
	short := lacks(req, have)
	if short == nil || !fits(doctor.Requirements{Elsewhere: req.Elsewhere, RealSidecars: req.RealSidecars}, have) {
		return nil
	}
	lack := short.lack(short.need(req))
	if m := s.Captured; m != nil {
		one := func(n int) int { return n / m.Scale }
		for scale := m.Scale - 1; scale > 0; scale-- {
			part := req
			part.Pods, part.OtherPods, part.Objects = scale*one(req.Pods), scale*one(req.OtherPods), scale*one(req.Objects)
			if fits(part, have) {
				return scenario.Refuse("mesh.scale", m.Scale, "%d at most: %s", scale, lack)
			}
		}
		if share := s.fittingShare(have); share > 0 && s.Mesh.Share == 0 && m.Scale == 1 {
			return scenario.Refuse("mesh.share", s.Mesh.Share, "%s at most: %s", share, lack)
		}
		return scenario.Refuse("mesh.file", m.File, "a smaller mesh: %s", lack)
	}
	most := sort.Search(req.Pods, func(pods int) bool {
		part := req
		part.Pods = pods + 1
		return !fits(part, have)
	})
	if most == 0 {
		return nil
	}
	return scenario.Refuse("mesh.pods", req.Pods, "%d at most: %s", most, lack)
}

// check fails when this machine lacks what is required. It shows what only warns.
func check(ctx context.Context, req doctor.Requirements, say func(string)) error {
	results := doctor.Check(ctx, req)
	for _, result := range results {
		if result.Status == doctor.Warning {
			say("warning: " + result.Name + ": " + result.Detail + "; " + result.Fix)
		}
	}
	return doctor.Error(results)
}

// recordBytes returns the room that the record of a run of so many pods may take.
func recordBytes(pods int) uint64 { return runBytes + runBytesPerPod*uint64(pods) }
