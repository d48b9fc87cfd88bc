package nightly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/record"
)

// Options are what a night consists of.
type Options struct {
	// Ladder are its runs. Its Spec has the cluster, and in Out the folder that takes one for each night.
	Ladder run.Ladder
	Plan   capacity.Options // its Pods must be set
	// Keep is how many nights' folders stay, this one included; 0 = all. The newest one that completed stays in any
	// case, and so do those of runs that may have left something in the cluster.
	Keep int

	// Server is the URL of the cluster's API server. Nights of another one in the folder are not touched.
	Server string
	// Remove deletes what a run has left in the cluster, by the value of its label.
	Remove   func(ctx context.Context, run string) error
	Progress run.Progress // zero = silent

	Run run.Runner       // nil = a rollout in the cluster, which is inspected before
	Now func() time.Time // nil = time.Now
}

// The fewest sizes and repeats that capacity.Make plans from.
const (
	leastSizes   = 3
	leastRepeats = 2
)

// removeTime bounds the deletion of what one run left. A run has less for its own.
const removeTime = 2 * time.Minute

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
// The night is not nil once it has a folder. The error is that of the run that failed, of the plan,
// or of what a run of an earlier night left and could not be deleted, which does not end a night; see
// Night.Missed. It wraps ErrInProgress where another night has the folder.
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
	earlier, err := o.nights(all)
	if err != nil {
		return nil, err
	}
	left, leftErr := o.removeLeft(ctx, earlier)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	n, err := o.begin(all, left)
	if err != nil {
		return nil, errors.Join(leftErr, err)
	}
	runErr, saveErr := o.runs(ctx, n)
	writeErr := n.report(o.Plan)
	n.Finished = new(o.Now().UTC())
	switch {
	case ctx.Err() != nil:
	case runErr != nil || saveErr != nil || n.planErr != nil || writeErr != nil:
		n.Status = record.StatusFailed
	default:
		n.Status = record.StatusCompleted
	}
	worse := errors.Join(leftErr, saveErr, writeErr, n.save(), o.deleteOldest(append(earlier, n)))
	_, unclean := errors.AsType[*experiment.TeardownError](runErr)
	n.missed = errors.Is(runErr, experiment.ErrUnconverged) && !unclean && worse == nil
	return n, errors.Join(runErr, n.planErr, worse)
}

// begin makes the folder of a night.
func (o Options) begin(all string, left []Left) (*Night, error) {
	n := &Night{
		APIVersion: record.APIVersion, Kind: Kind, Server: o.Server, Status: record.StatusInterrupted, Started: o.Now().UTC(),
		PlanPods: o.Plan.Pods, Left: left,
	}
	n.Dir = filepath.Join(all, n.Started.Format(folderLayout))
	if err := os.Mkdir(n.Dir, 0o755); err != nil { // never that of another night
		return nil, fmt.Errorf("parsing --out: %w", err)
	}
	return n, n.save()
}

// inCluster does a run in the cluster of its specification.
func inCluster(ctx context.Context, spec run.Spec, progress run.Progress) (record.Run, error) {
	there := *spec.Existing
	spec.Existing = &there
	var err error
	if there.ID, err = attach.NewID(); err != nil {
		return record.Run{}, err
	}
	found, err := run.Inspect(ctx, spec)
	if err != nil {
		return record.Run{}, err
	}
	if progress.Say != nil {
		progress.Say(announce(there.Target, found.Run))
	}
	return run.RunOne(ctx, spec, progress)
}

// announce states the label of a run, which only it has.
func announce(target attach.Target, label string) string {
	return "its objects have the label scaler.mesh/run=" + label + "; after kill -9, '" + target.Removal(label) + "' deletes them, and so does the next night"
}

// runs does the runs of a night. saveErr is of nightly.json, and ends them, too.
func (o Options) runs(ctx context.Context, n *Night) (runErr, saveErr error) {
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
		saveErr = n.save()
		if err != nil {
			return fmt.Errorf("run %d of %d, %s: %w", i+1, len(specs), spec.Name(), err), saveErr
		}
		if saveErr != nil {
			return nil, saveErr
		}
	}
	return nil, nil
}

func (o Options) say(text string) {
	if o.Progress.Say != nil {
		o.Progress.Say(text)
	}
}

// removeLeft deletes what runs of earlier nights left that were killed, or failed, maybe at deleting it.
// It returns those where that failed again, and their errors as one.
func (o Options) removeLeft(ctx context.Context, earlier []*Night) (left []Left, err error) {
	for _, n := range earlier {
		runs, readErr := record.Read(n.Dir)
		if errors.Is(readErr, record.ErrNoRuns) {
			continue
		}
		if readErr != nil {
			o.say("not known whether a run left something in the cluster: " + readErr.Error())
			continue
		}
		for _, run := range runs {
			there := run.Environment.Existing
			if run.Status == record.StatusCompleted || there == nil || slices.Contains(n.Removed, there.Run) {
				continue
			}
			if ctx.Err() != nil {
				return left, err
			}
			o.say("deleting what run " + output.Plain(there.Run) + " left in the cluster")
			if removeErr := o.removeRun(ctx, there.Run); removeErr != nil {
				left = append(left, Left{Run: there.Run, Night: filepath.Base(n.Dir), Error: removeErr.Error()})
				err = errors.Join(err, fmt.Errorf("deleting what run %s of %s left: %w", there.Run, n.Dir, removeErr))
				continue
			}
			n.Removed = append(n.Removed, there.Run)
			if saveErr := n.save(); saveErr != nil { // the next night looks again
				o.say(saveErr.Error())
			}
		}
	}
	return left, err
}

func (o Options) removeRun(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, removeTime, fmt.Errorf("not done after %v", removeTime))
	defer cancel()
	return o.Remove(ctx, run)
}

// deleteOldest deletes the oldest nights, of which the last one has just ended. The newest that
// completed stays, however many have failed since, and so do those whose runs may have left something.
func (o Options) deleteOldest(all []*Night) (err error) {
	if o.Keep == 0 {
		return nil
	}
	completed := ""
	for _, n := range all {
		if n.Status == record.StatusCompleted {
			completed = n.Dir
		}
	}
	for _, n := range all[:max(0, len(all)-o.Keep)] {
		if n.Dir == completed || slices.ContainsFunc(all[len(all)-1].Left, func(l Left) bool { return l.Night == filepath.Base(n.Dir) }) {
			continue
		}
		o.say("deleting " + n.Dir)
		if removeErr := os.RemoveAll(n.Dir); removeErr != nil {
			err = errors.Join(err, fmt.Errorf("deleting an old night: %w", removeErr))
		}
	}
	return err
}

// folderLayout names the folder of a night by its beginning.
const folderLayout = "20060102T150405Z"

// nights are those of the cluster in a folder, the oldest first. One that cannot be read is left out: it
// is not known of which cluster it is.
func (o Options) nights(in string) ([]*Night, error) {
	entries, err := os.ReadDir(in)
	if err != nil {
		return nil, fmt.Errorf("parsing --out: %w", err)
	}
	var all []*Night
	for _, e := range entries { // in the order of their names
		if _, err := time.Parse(folderLayout, e.Name()); err != nil || !e.IsDir() {
			continue
		}
		n, err := read(filepath.Join(in, e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // not of a night
		case err != nil:
			o.say("not known of which cluster a night is: " + err.Error())
		case n.Server == o.Server:
			all = append(all, n)
		}
	}
	return all, nil
}

// report writes the plan and the reports of what was measured. The error is of writing; why there is no
// plan is in the night.
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
		return err
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
