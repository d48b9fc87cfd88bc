package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaler.mesh/scaler/internal/analyse/assess"
	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/series/rehearsal"
	"scaler.mesh/scaler/pkg/scenario"
)

type assessOptions struct {
	rolloutOptions
	source    captureOptions // of --context
	nodeSpeed string
	growth    int
}

// grownScales are the numbers of copies that are rolled out for --growth: three sizes, the fewest from which a plan is made.
var grownScales = []int{1, 2, 3}

// capturedFile is the mesh of --context, below --out.
const capturedFile = "mesh.yaml"

func newAssessCommand(s streams) *cobra.Command {
	var o assessOptions
	cmd := &cobra.Command{
		Use:   "assess --to VERSION | assess DIR",
		Short: "Decide whether a captured mesh can be moved to another version of Istio",
		Long: `Assess rehearses the upgrade of a mesh on this machine and answers with one verdict: GO,
GO WITH CHANGES, NO GO or CANNOT TELL, with its reasons and the values to set.

The mesh is that of --mesh, or with --context that of a cluster, which is captured first.
Nothing is created in that cluster. Three runs follow:

  from     the captured state with the version that production runs; its memory is
           compared with production's, if the mesh file has its history
  to       the same with the new version; what every proxy holds is compared with that
           of the first run; then istiod is restarted, and all proxies reconnect at once
  upgrade  the move from one version to the other in waves: ztunnels, waypoints, sidecars

With --growth N the mesh is rolled out six times more, in one, two and three copies, and the answer
has a plan for N copies: the requests of one istiod of the new version, as 'scaler plan' forecasts them.

The highest memory peak of an istiod is compared with its memory limit. The answer has at most 25
lines; -o wide prints all of it, -o html a page, and -o markdown less than 60,000 characters, for a
comment on a pull request. values.yaml in --out has the values to set.

The records of all runs go to --out; 'scaler assess DIR' and 'scaler report DIR' print the
answer again without running anything. The same command with the same --out resumes an
interrupted assessment. The exit code is 0 for GO and GO WITH CHANGES, 3 for NO GO, and 4 for
CANNOT TELL.`,
		Example: `  # a captured mesh
  scaler assess --mesh mesh.yaml --to 1.31.0

  # captured first, with what istiod used in the last days
  scaler assess --context production --prometheus detect --to 1.31.0 --out assessment

  # with another memory limit than the captured one
  scaler assess --mesh mesh.yaml --to 1.31.0 --control-plane-memory 2Gi

  # a sample, of which neither the version nor the memory of istiod is known
  scaler assess --mesh sample:bookinfo --from 1.29.1 --to 1.31.0 --control-plane-memory 1Gi

  # and what istiod needs once the mesh has grown to four times its size
  scaler assess --mesh mesh.yaml --to 1.31.0 --growth 4

  # the answer again
  scaler assess assessment -o markdown`,
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	defaults := scenario.Default()
	defaults.Phases.Baseline, defaults.Phases.Steady, defaults.Load.Probes = seconds(2), seconds(20), 0
	defaults.Instrument.Calibrate = false
	o.addFlags(cmd, s, scenario.Assess, defaults)
	f := cmd.Flags()
	f.StringVar(&o.source.context, "context", "", "context of the kubeconfig whose mesh is captured, read-only, in place of --mesh")
	f.StringVar(&o.source.kubeconfig, "kubeconfig", "", "`FILE` with contexts, for --context (default KUBECONFIG, else ~/.kube/config)")
	o.source.history.addTo(f)
	f.StringVar(&o.nodeSpeed, "node-speed", "", "`FILE` with the output of 'scaler calibrate --speed -o json' on istiod's nodes: istiod's processor time and request are then compared with the rehearsal")
	f.IntVar(&o.growth, "growth", 0, "also plan for this many copies of the mesh, from six further runs of fewer copies")
	group(f, scenario.MeshGroup, false, "node-speed", "growth")
	group(f, scenario.MeshGroup, true, "context")
	group(f, scenario.MeshGroup, false, "kubeconfig", "prometheus", "prometheus-token", "prometheus-ca", "prometheus-tenant", "prometheus-days")
	return cmd
}

// errNoGo marks an upgrade that the rehearsal showed not to work: exit code 3. errCannotTell marks one of which it says nothing: exit code 4.
var (
	errNoGo       = errors.New("NO GO")
	errCannotTell = errors.New("CANNOT TELL")
)

func (o *assessOptions) run(cmd *cobra.Command, s streams, args []string) error {
	if err := parseOutput(o.output, output.PageFormats...); err != nil {
		return err
	}
	if len(args) > 0 {
		return o.again(cmd.Flags(), s, args)
	}
	options, done, err := o.rehearsal(cmd, s)
	if err != nil || done {
		return err
	}
	dir := options.Spec.Out
	err = withProgress(s, func(p run.Progress) error {
		options.Progress = p
		return rehearsal.Run(cmd.Context(), options)
	})
	if err != nil {
		if rehearsal.Is(dir) {
			fmt.Fprintf(s.err, "not complete: the same command with --out %s resumes it\n", dir)
		}
		return misused(err)
	}
	a, err := readAssessment(dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, assess.ValuesFile), []byte(a.Values()), 0o644); err != nil {
		return err
	}
	fmt.Fprintln(s.err, "result:", dir)
	return show(s, o.output, dir, a)
}

// rehearsal makes the runs of the flags; with --context it captures the mesh first. done is true if the scenario was to be printed,
// and was.
func (o *assessOptions) rehearsal(cmd *cobra.Command, s streams) (options rehearsal.Options, done bool, err error) {
	f := cmd.Flags()
	stated := false
	note := func(d *scenario.Document) error {
		stated = d.Stated("controlPlane.version")
		if d.Scenario.ControlPlane.Upgrade.To == "" {
			return scenario.Refuse("controlPlane.upgrade.to", nil, "the version to assess, as in --to 1.31.0")
		}
		return nil
	}
	if o.spec.Out, err = outFolder(cmd, o.spec.Out); err != nil {
		return options, false, err
	}
	changes := []func(*scenario.Document) error{note}
	if f.Changed("context") || f.Changed("kubeconfig") {
		if err := o.capture(cmd, s, note); err != nil {
			return options, false, err
		}
		changes = append(changes, func(d *scenario.Document) error {
			return d.Set("mesh.file", filepath.Join(o.spec.Out, capturedFile), "--context")
		})
	} else if err := o.withoutContext(f); err != nil {
		return options, false, err
	}
	document, err := o.read(f, changes...)
	if err != nil {
		return options, false, err
	}
	spec, err := o.bothVersions(cmd, document)
	if err != nil {
		return options, false, err
	}
	if spec.Captured != nil && !document.Stated("mesh.share") {
		share, resumed := rehearsal.Share(o.spec.Out)
		if !resumed {
			share = spec.FittingShare()
		}
		if share > 0 {
			why := "as fits this machine"
			if resumed {
				why = "as before"
			}
			fmt.Fprintf(s.err, "%s of the pods of each workload are rehearsed, %s (--set mesh.share=%s)\n", share, why, share)
			if err := document.Set("mesh.share", share.String(), ""); err != nil {
				return options, false, err
			}
			if spec, err = o.bothVersions(cmd, document); err != nil {
				return options, false, err
			}
		}
	}
	switch err := checkOne(spec); {
	case spec.Captured == nil:
		return options, false, usageError{scenario.Refuse("mesh.file", "", "the mesh to assess: --mesh FILE, or --context, which captures it")}
	case err != nil:
		return options, false, err
	case spec.ControlPlane.Version == "":
		return options, false, usageError{scenario.Refuse("controlPlane.version", nil, "the version that production runs, which %s does not have, as in --from 1.29.1", spec.Captured.File)}
	}
	if done, err = o.printed(s, f, document); done || err != nil {
		return options, done, err
	}
	options = rehearsal.Options{Spec: spec, Captured: assess.NewCaptured(&spec.Captured.Mesh, stated)}
	if f.Changed("node-speed") {
		if options.Captured.NodeSpeed, err = readSpeed(o.nodeSpeed); err != nil {
			return options, false, err
		}
	}
	if f.Changed("growth") {
		if options.Growth, err = o.grown(cmd, document); err != nil {
			return options, false, err
		}
	}
	if err := options.Validate(); err != nil {
		return options, false, usageError{err}
	}
	return options, false, nil
}

// grown returns the larger mesh to plan for, with the runs for the plan. It changes the scale of the document, which is not read afterwards.
func (o *assessOptions) grown(cmd *cobra.Command, document *scenario.Document) (*rehearsal.Growth, error) {
	mesh := &document.Scenario.Mesh
	if farthest := capacity.Farthest * grownScales[len(grownScales)-1]; o.growth < 2 || o.growth > farthest {
		return nil, usagef("--growth: got %d, want 2 to %d, which is %d times as many copies as are rolled out for it", o.growth, farthest, capacity.Farthest)
	}
	if mesh.Share > 0 {
		return nil, usagef("--growth: got %d, want none where %s of the pods are rehearsed: more pods of the same workloads are no copies", o.growth, mesh.Share)
	}
	copies := max(1, mesh.Scale.First())
	mesh.Scale = nil
	for _, scale := range grownScales {
		mesh.Scale = append(mesh.Scale, copies*scale)
	}
	runs, err := o.withoutUpgrade(cmd, document)
	return &rehearsal.Growth{Scale: copies * o.growth, Runs: runs}, err
}

// bothVersions returns the specification of what is rehearsed. Both versions run as production does, with its replicas, of which an upgrade
// has one.
func (o *assessOptions) bothVersions(cmd *cobra.Command, document *scenario.Document) (run.Spec, error) {
	l, err := o.withoutUpgrade(cmd, document)
	return l.Spec, err
}

// withoutUpgrade makes the runs of a document without its upgrade, and then sets the version to upgrade to in their specification.
func (o *assessOptions) withoutUpgrade(cmd *cobra.Command, document *scenario.Document) (run.Ladder, error) {
	to := &document.Scenario.ControlPlane.Upgrade.To
	asked := *to
	*to = ""
	l, err := o.runs(cmd, document)
	*to = asked
	l.Spec.ControlPlane.Upgrade.To = asked
	return l, err
}

// withoutContext refuses flags that are of a capture.
func (o *assessOptions) withoutContext(f *pflag.FlagSet) (err error) {
	f.Visit(func(flag *pflag.Flag) {
		if strings.HasPrefix(flag.Name, "prometheus") {
			err = usagef("--%s: want it with --context, whose capture has the history; that of --mesh is in its file", flag.Name)
		}
	})
	return err
}

// capture captures the mesh of --context into --out, once everything that the flags say was checked. One that is there, of an assessment that was
// interrupted, is used as it is: the cluster may have changed since.
func (o *assessOptions) capture(cmd *cobra.Command, s streams, note func(*scenario.Document) error) error {
	f := cmd.Flags()
	for _, flag := range []string{"mesh", "print-scenario"} {
		if f.Changed(flag) {
			return usagef("--%s: want none with --context, whose mesh is captured first", flag)
		}
	}
	asked, withHistory, err := o.source.history.options(f, false)
	if err != nil {
		return err
	}
	if _, err := o.read(f, note); err != nil {
		return err
	}
	o.source.out = filepath.Join(o.spec.Out, capturedFile)
	if _, err := os.Stat(o.source.out); err == nil {
		fmt.Fprintln(s.err, "resumed, the mesh was captured before:", o.source.out)
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	mesh, err := o.source.gather(cmd.Context(), nil, asked, withHistory, s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.spec.Out, 0o755); err != nil {
		return err
	}
	if err := o.source.write(&mesh, s); err != nil {
		return err
	}
	return mesh.Summary(s.err)
}

// again answers from the records of an earlier assessment.
func (o *assessOptions) again(f *pflag.FlagSet, s streams, args []string) error {
	if err := checkEarlier(f, args, "assessment", "read", "output"); err != nil {
		return err
	}
	a, err := readAssessment(args[0])
	if err != nil {
		return badFolder(err)
	}
	return show(s, o.output, args[0], a)
}

// readAssessment judges the records of a folder.
func readAssessment(dir string) (*assess.Assessment, error) {
	facts, err := rehearsal.Read(dir)
	if err != nil {
		return nil, err
	}
	a := assess.Judge(facts)
	return &a, nil
}

// show prints an assessment, and gives its verdict an exit code.
func show(s streams, format, dir string, a *assess.Assessment) error {
	if err := assess.Print(s.out, format, dir, a); err != nil {
		return err
	}
	switch a.Verdict {
	case assess.NoGo:
		return fmt.Errorf("%w: %s", errNoGo, a.Reasons[0])
	case assess.CannotTell:
		return fmt.Errorf("%w: %s", errCannotTell, a.Reasons[0])
	}
	return nil
}

// printAssessment prints an assessment for 'scaler report', whose exit code is not of the verdict.
func printAssessment(s streams, format, dir string) error {
	a, err := readAssessment(dir)
	if err != nil {
		return badFolder(err)
	}
	return assess.Print(s.out, format, dir, a)
}
