package nightly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"scaler.mesh/scaler/pkg/attach"
	"scaler.mesh/scaler/pkg/capacity"
	"scaler.mesh/scaler/pkg/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/report"
	"scaler.mesh/scaler/pkg/rollout"
)

// Options are what a night consists of.
type Options struct {
	// Ladder are its runs. Its Spec has the cluster, and in Out the folder that takes one for each night.
	Ladder rollout.Ladder
	Plan   capacity.Options // its Pods must be set
	Keep   int              // nights whose folders stay, this one included; 0 = all

	// Remove deletes what a run has left in the cluster, by the value of its label.
	Remove   func(ctx context.Context, run string) error
	Progress rollout.Progress // zero = silent

	Run rollout.Runner   // nil = a rollout in the cluster, which is inspected before
	Now func() time.Time // nil = time.Now
}

// The fewest sizes and repeats that capacity.Make plans from.
const (
	leastSizes   = 3
	leastRepeats = 2
)

// Validate names the first flag whose value cannot be used, the value, and what is wanted. Nothing
// has been started or created before it returns nil.
func (o Options) Validate() error {
	switch {
	case len(o.Ladder.Modes) != 1:
		return errors.New("parsing --mode both: want one mode: a plan is of one")
	case len(o.Ladder.Pods) < leastSizes:
		return fmt.Errorf("parsing --pods: want %d sizes at least, from which a plan is made, not %d", leastSizes, len(o.Ladder.Pods))
	case o.Ladder.Repeats < leastRepeats:
		return fmt.Errorf("parsing --repeats %d: want %d at least: a plan needs to know by how much equal runs differ", o.Ladder.Repeats, leastRepeats)
	case o.Plan.Pods < slices.Min(o.Ladder.Pods) || o.Plan.Pods > capacity.Farthest*slices.Max(o.Ladder.Pods):
		return fmt.Errorf("parsing --plan-pods %d: want %d to %d, from the smallest size of --pods to %d times the largest", o.Plan.Pods, slices.Min(o.Ladder.Pods), capacity.Farthest*slices.Max(o.Ladder.Pods), capacity.Farthest)
	case o.Keep < 0:
		return fmt.Errorf("parsing --keep-nights %d: want 0 or more", o.Keep)
	}
	for _, spec := range o.Ladder.Runs() {
		if err := spec.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Run does the runs of a night, one after the other, until one fails or does not converge: the
// cluster is in use. What was measured until then is planned from and reported.
//
// The night is not nil once it has a folder. The error is that of the run that failed, or of the
// plan; it wraps experiment.ErrUnconverged where nothing worse happened, and ErrInProgress where another
// night has the folder.
func Run(ctx context.Context, o Options) (*Night, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Run == nil {
		o.Run = inCluster
	}
	all := o.Ladder.Spec.Out
	unlock, err := lock(all)
	if err != nil {
		return nil, err
	}
	defer unlock()
	earlier, err := nights(all)
	if err != nil {
		return nil, err
	}
	if err := o.removeLeft(ctx, earlier); err != nil {
		return nil, err
	}
	if err := o.deleteOldest(earlier); err != nil {
		return nil, err
	}
	n := &Night{
		APIVersion: record.APIVersion, Kind: Kind, Status: record.StatusInterrupted, Started: o.Now().UTC(), PlanPods: o.Plan.Pods,
	}
	n.Dir = filepath.Join(all, n.Started.Format(folderLayout))
	if err := os.MkdirAll(n.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("parsing --out: %w", err)
	}
	if err := n.save(); err != nil {
		return nil, err
	}
	runErr := o.runs(ctx, n)
	reportErr := n.report(o.Plan)
	n.Finished = new(o.Now().UTC())
	switch {
	case ctx.Err() != nil:
	case runErr != nil || reportErr != nil:
		n.Status = record.StatusFailed
	default:
		n.Status = record.StatusCompleted
	}
	return n, errors.Join(runErr, reportErr, n.save())
}

// inCluster does a run in the cluster of its specification.
func inCluster(ctx context.Context, spec rollout.Spec, progress rollout.Progress) (record.Run, error) {
	there := *spec.Existing
	spec.Existing = &there
	var err error
	if there.ID, err = attach.NewID(); err != nil {
		return record.Run{}, err
	}
	if _, err := rollout.Inspect(ctx, spec); err != nil {
		return record.Run{}, err
	}
	return rollout.RunOne(ctx, spec, progress)
}

func (o Options) runs(ctx context.Context, n *Night) error {
	specs := o.Ladder.Runs()
	for i, spec := range specs {
		spec.Out = n.Dir
		o.say(fmt.Sprintf("run %d of %d: %s", i+1, len(specs), spec.Name()))
		run, err := o.Run(ctx, spec, o.Progress)
		done := Done{Name: spec.Name(), Status: run.Status}
		if run.Dir != "" {
			n.runs = append(n.runs, run)
		}
		if err != nil {
			done.Error = err.Error()
		}
		n.Runs = append(n.Runs, done)
		if err := errors.Join(err, n.save()); err != nil {
			return fmt.Errorf("run %d of %d, %s: %w", i+1, len(specs), spec.Name(), err)
		}
	}
	return nil
}

func (o Options) say(text string) {
	if o.Progress.Say != nil {
		o.Progress.Say(text)
	}
}

// removeLeft deletes what runs of earlier nights left that were killed, or failed, maybe at deleting it.
func (o Options) removeLeft(ctx context.Context, earlier []string) error {
	for _, dir := range earlier {
		runs, err := record.Read(dir)
		if errors.Is(err, record.ErrNoRuns) {
			continue
		}
		if err != nil {
			o.say("not known whether a run left something in the cluster: " + err.Error())
			continue
		}
		for _, run := range runs {
			there := run.Environment.Existing
			if run.Status == record.StatusCompleted || there == nil {
				continue
			}
			o.say("deleting what run " + output.Plain(there.Run) + " left in the cluster")
			if err := o.Remove(ctx, there.Run); err != nil {
				return fmt.Errorf("deleting what run %s of %s left: %w", there.Run, dir, err)
			}
		}
	}
	return nil
}

// deleteOldest makes room for a night.
func (o Options) deleteOldest(earlier []string) error {
	if o.Keep == 0 {
		return nil
	}
	for _, dir := range earlier[:max(0, len(earlier)-(o.Keep-1))] {
		o.say("deleting " + dir)
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("deleting an old night: %w", err)
		}
	}
	return nil
}

// folderLayout names the folder of a night by its beginning.
const folderLayout = "20060102T150405Z"

// nights are the folders of nights in a folder, the oldest first.
func nights(in string) ([]string, error) {
	entries, err := os.ReadDir(in)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("parsing --out: %w", err)
	}
	var all []string
	for _, e := range entries { // in the order of their names
		_, nameErr := time.Parse(folderLayout, e.Name())
		_, fileErr := os.Lstat(filepath.Join(in, e.Name(), FileName))
		if e.IsDir() && nameErr == nil && fileErr == nil {
			all = append(all, filepath.Join(in, e.Name()))
		}
	}
	return all, nil
}

// report writes the plan and the reports of what was measured.
func (n *Night) report(options capacity.Options) error {
	if len(n.runs) == 0 {
		return nil
	}
	err := errors.Join(
		n.write("report.html", func(w io.Writer) error { return report.HTML(w, n.runs, nil) }),
		n.write("report.md", func(w io.Writer) error { return report.Print(w, "markdown", n.runs) }),
	)
	if n.plan, n.planErr = capacity.Make(n.runs, options); n.planErr != nil {
		n.WithoutPlan = n.planErr.Error()
		return errors.Join(err, n.planErr)
	}
	n.Met = new(n.plan.Request.Met)
	return errors.Join(err,
		n.write("plan.md", func(w io.Writer) error { return capacity.Print(w, "markdown", n.plan) }),
		n.write("plan.json", func(w io.Writer) error { return capacity.Print(w, "json", n.plan) }),
	)
}

func (n *Night) write(name string, content func(io.Writer) error) (err error) {
	f, err := os.Create(filepath.Join(n.Dir, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return content(f)
}
