package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

type compareOptions struct {
	force     bool
	across    bool
	figures   []string
	failOn    []string
	junit     string
	published string
	output    string

	equalWithin string
}

func newCompareCommand(s streams) *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare the runs of two control planes, with statistical tests",
		Long: `Compare reads the runs in the folders A and B and prints every figure with the
difference of B from A, a 95% interval and a test, corrected for the number of
figures. A figure without an established difference prints "~". Each folder
contains repeats of the same runs, of one or several sizes and modes, against one
control plane. At least 4 repeats per side are needed; 5 or more are better.

Runs are compared with those of the same size, knobs and machine. Sides that
differ in more than the control plane, its version, settings and resources are
refused; --force compares them nevertheless.

Runs of two control planes are compared with --across-control-planes. Figures that
mean the same with both are tested; allPrograms is the usage of all programs of a
control plane together. The others, such as the latency of certificates, are listed
without a verdict, with their meaning on each side. The meanings of modes are listed, too.

--fail-on makes it a gate. Each bound has a test of its own, whose result is inside,
beyond or undecided. The exit code is 3 if a bound is established to be exceeded, or could
not be tested: a figure that was lost or not measured, or more incomplete runs in
B than in A. Otherwise it is 4 if a bound is undecided; the number of runs that
would decide it is printed. Of the bounds that B keeps, one is wrongly reported as
exceeded in at most one of 20 comparisons; of those that it exceeds, one is
wrongly reported as kept in at most one of 20. A bound is undecided if the runs
of the sides were not interleaved, as in A B B A: a drift of the machine, such as of its
speed, then looks like a difference.

"No significant difference" does not mean that a figure is equal. --equal-within 10%
decides that by an equivalence test: a figure is equal if the 95% interval of the
ratio of both sides lies within 10 %, different if it lies outside, and otherwise
undecided. The exit code is 3 if a figure is different, 4 if one is undecided;
--figures chooses those that matter.`,
		Example: `  # one mesh before and after
  scaler compare before after

  # a gate in continuous integration
  scaler compare main branch --fail-on 'rollout.cores>+10%' \
    --fail-on 'push.route.p99>+50ms' --junit compare.xml -o markdown

  # Istio and Linkerd, by the figures that mean the same with both
  scaler compare --across-control-planes istio linkerd

  # our runs next to published figures
  scaler compare --published osm-scalability results`,
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.force, "force", false, "compare runs that are not comparable, and skip runs without a counterpart")
	f.BoolVar(&o.across, "across-control-planes", false, "compare runs of two control planes: test the figures that mean the same with both, and list the others with their meanings, as in --across-control-planes istio linkerd")
	o.addGateFlags(f)
	f.StringVar(&o.published, "published", "", "show published figures with this `NAME` next to those of one or two folders, without tests")
	f.StringVarP(&o.output, "output", "o", "table", "`format`: table (the answer), wide (all tables), json, yaml or markdown")
	complete(cmd, "output", output.Formats)
	if names, err := compare.Published(); err == nil {
		complete(cmd, "published", names)
	}
	return cmd
}

// addGateFlags adds the flags of a comparison that is a gate.
func (o *compareOptions) addGateFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.figures, "figures", nil, "compare only figures with this `NAME` or below it, repeatable: with fewer tests, chosen in advance, smaller differences can be established")
	f.StringArrayVar(&o.failOn, "fail-on", nil, "`BOUND` on B, as in 'rollout.cores>+10%' or 'push.route.p99>+50ms', repeatable: exit code 3 if it is exceeded or could not be tested, 4 if undecided")
	f.StringVar(&o.equalWithin, "equal-within", "", "decide for each figure whether both sides are equal within this `SHARE`, as in 10%: exit code 3 if one is different by more, 4 if one is undecided")
	f.StringVar(&o.junit, "junit", "", "write the outcome of the bounds to `FILE`, as JUnit XML")
}

// errBound marks a comparison in which a bound was missed or could not be tested:
// exit code 3.
var errBound = errors.New("bounds missed")

// errUndecided marks a comparison with too few runs to decide a bound: exit code 4.
var errUndecided = errors.New("bounds undecided")

func (o *compareOptions) run(cmd *cobra.Command, s streams, args []string) error {
	if err := parseOutput(o.output, output.Formats...); err != nil {
		return err
	}
	if cmd.Flags().Changed("published") {
		return o.comparePublished(s, args)
	}
	options, err := o.options(cmd.Flags())
	if err != nil {
		return err
	}
	if len(args) != 2 {
		return usagef("want two folders with runs, A and B, as in 'scaler compare before after'")
	}
	options.A, options.B = args[0], args[1]
	return o.compare(s, options, o.output)
}

// options parses what the comparison's flags hold as text.
func (o *compareOptions) options(f *pflag.FlagSet) (compare.Options, error) {
	options := compare.Options{Force: o.force, Figures: o.figures}
	if o.across {
		options.Planes = planes()
	}
	for _, text := range o.failOn {
		bound, err := compare.ParseBound(text)
		if err != nil {
			return options, usageError{err}
		}
		options.Bounds = append(options.Bounds, bound)
	}
	if f.Changed("equal-within") {
		share, ok := parseShare(o.equalWithin)
		if !ok || share <= 0 || share > 1 {
			return options, usagef("--equal-within: got %q, want a share above 0%% to 100%%, as in 10%%", o.equalWithin)
		}
		options.EqualWithin = share
	}
	if f.Changed("junit") && (o.junit == "" || len(o.failOn) == 0) {
		return options, usagef("--junit: got %q, want a file, and --fail-on for what to write into it", o.junit)
	}
	return options, nil
}

// planes returns the properties of each control plane that a comparison needs.
func planes() []compare.Plane {
	var all []compare.Plane
	for _, d := range drivers.All() {
		all = append(all, compare.Plane{Name: d.Name, Work: d.Figures.Work, Helpers: d.Programs.Helpers, Meanings: d.Figures.Meanings})
	}
	return all
}

// compare compares the runs of the folders A and B of the options, prints the result and
// judges it.
func (o *compareOptions) compare(s streams, options compare.Options, format string) error {
	a, err := readRecords(options.A)
	if err != nil {
		return err
	}
	b, err := readRecords(options.B)
	if err != nil {
		return err
	}
	result, err := compare.Compare(a, b, options)
	switch {
	case errors.Is(err, compare.ErrNotComparable) && !o.force:
		return usagef("comparing %s with %s: %w; --force compares what there is", options.A, options.B, err)
	case err != nil:
		if _, ok := errors.AsType[*scenario.Error](err); ok {
			return usageError{err} // it is of a flag alone
		}
		return usagef("comparing %s with %s: %w", options.A, options.B, err)
	}
	if err := compare.Print(s.out, format, result); err != nil {
		return err
	}
	if o.junit != "" {
		if err := writeJUnit(o.junit, result); err != nil {
			return err
		}
	}
	return judge(result)
}

// judge returns errBound if a bound is exceeded or could not be tested, or a figure is
// different by more than a margin, and otherwise errUndecided if one is undecided, with all
// that is not known to be kept.
func judge(result *compare.Result) error {
	var open []string
	for _, j := range result.Bounds {
		if j.Outcome != compare.Inside {
			open = append(open, fmt.Sprintf("%s, %s: %s, %s", j.Bound, j.Group, j.Outcome, j.Why))
		}
	}
	open = append(open, result.NotEqual()...)
	switch {
	case result.Fails():
		return fmt.Errorf("%w: %s", errBound, strings.Join(open, "; "))
	case result.Undecided():
		return fmt.Errorf("%w: %s", errUndecided, strings.Join(open, "; "))
	}
	return nil
}

// comparePublished compares published figures with the runs of one folder, or of two.
func (o *compareOptions) comparePublished(s streams, args []string) error {
	if o.force || o.across || len(o.failOn)+len(o.figures) > 0 || o.junit+o.equalWithin != "" {
		return usagef("--published: got %q, want it without --force, --across-control-planes, --figures, --fail-on, --equal-within and --junit: published figures cannot be tested", o.published)
	}
	names, err := compare.Published()
	if err != nil {
		return err
	}
	if err := parseOneOf("published", o.published, names); err != nil {
		return err
	}
	if len(args) < 1 || len(args) > 2 {
		return usagef("want one or two folders with runs after --published, as in 'scaler compare --published %s results'", o.published)
	}
	var folders [][]record.Run
	for _, dir := range args {
		runs, err := readRecords(dir)
		if err != nil {
			return err
		}
		folders = append(folders, runs)
	}
	published, err := compare.ComparePublished(o.published, folders...)
	if err != nil {
		return usagef("%w", err)
	}
	return compare.Print(s.out, o.output, published)
}

func writeJUnit(path string, result *compare.Result) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing --junit: %w: want a file that can be written", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return result.JUnit(file)
}
