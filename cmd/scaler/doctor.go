package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/pkg/component"
)

// Room on disk, as measured with all programs built.
const (
	programsBytes   = 1e9  // the built programs together
	goCachesBytes   = 14e9 // Go's module and build caches, once all was built from nothing
	runBytes        = 100e6
	runBytesPerPod  = 50e3 // metrics and logs of a run of some minutes
	doctorPodsLimit = 100000
)

func newDoctorCommand(s streams) *cobra.Command {
	var (
		o      component.Options
		pods   int
		out    string
		output string
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what this machine lacks for a run, and how to mend it",
		Example: `  # for a run of 1600 pods
  scaler doctor --pods 1600`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := parseOutput(output, "table", "json", "yaml"); err != nil {
				return err
			}
			if pods < 1 || pods > doctorPodsLimit {
				return usagef("--pods %d: want 1 to %d", pods, doctorPodsLimit)
			}
			req, err := requirements(cmd.Context(), o, pods, out)
			if err != nil {
				return err
			}
			results := doctor.Check(cmd.Context(), req)
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			err = printList(s.out, output, "CheckList", results, []string{"CHECK", "STATUS", "DETAIL", "FIX"}, func(r doctor.Result) []string {
				return []string{r.Name, string(r.Status), r.Detail, r.Fix}
			})
			if err != nil {
				return err
			}
			if doctor.Error(results) != nil {
				return errors.New("this machine lacks something for such a run: see the checks that failed")
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&pods, "pods", 200, "number of pods of the run to prepare for")
	cmd.Flags().StringVar(&out, "out", "scaler-runs", "folder that the run is to be recorded in")
	addComponentFlags(cmd.Flags(), &o)
	addListOutputFlag(cmd.Flags(), &output)
	return cmd
}

// requirements are those of a rollout on the embedded cluster.
func requirements(ctx context.Context, o component.Options, pods int, out string) (doctor.Requirements, error) {
	programs, err := component.List(ctx, o)
	if err != nil {
		return doctor.Requirements{}, err
	}
	req := doctor.Requirements{
		Pods: pods,
		Dirs: []doctor.Dir{{Name: "--out", Path: out, Bytes: runBytes + runBytesPerPod*uint64(pods)}},
	}
	toBuild := 0
	for _, p := range programs {
		if !neededByRollout(p.Name) {
			continue
		}
		req.Programs = append(req.Programs, doctor.Program{Name: p.Name, Path: p.Path, Problem: p.Problem})
		if p.Source == component.SourceBuild {
			toBuild++
		}
	}
	if toBuild > 0 {
		cache, err := component.CacheDir(o)
		if err != nil {
			return doctor.Requirements{}, err
		}
		share := uint64(toBuild)
		all := uint64(len(req.Programs))
		req.Dirs = append(req.Dirs,
			doctor.Dir{Name: "program cache", Path: cache, Bytes: programsBytes * share / all},
			doctor.Dir{Name: "Go's caches", Path: goCache(), Bytes: goCachesBytes * share / all})
	}
	return req, nil
}

// neededByRollout leaves out the programs that only serve developing and other commands.
func neededByRollout(name string) bool {
	switch name {
	case component.Istioctl, component.PilotAgent, component.Promtool:
		return false
	}
	return true
}

// goCache is where Go keeps what it compiles; what it downloads is mostly on the same disk.
func goCache() string {
	if dir := os.Getenv("GOCACHE"); dir != "" {
		return dir
	}
	if base, err := os.UserCacheDir(); err == nil {
		return filepath.Join(base, "go-build")
	}
	return os.TempDir()
}
