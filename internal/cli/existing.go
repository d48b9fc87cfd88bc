package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/scenario"
)

// addTargetFlags adds the flags that name a cluster.
func addTargetFlags(f *pflag.FlagSet, context, kubeconfig *string, use string) {
	f.StringVar(context, "context", "", "context of the kubeconfig, or "+existing.InCluster+" in a pod: "+use)
	addField(f, kubeconfig, "place.kubeconfig", "with --context: ")
}

// addPlaceFlags adds the flags that name a cluster and its control plane, to a command that reads no
// scenario.
func addPlaceFlags(f *pflag.FlagSet, p *scenario.Place, use string) {
	addTargetFlags(f, &p.Context, &p.Kubeconfig, use)
	addField(f, &p.Namespace, "place.namespace", "with --context: ")
	addField(f, &p.Revision, "place.revision", "with --context: ")
	addField(f, &p.Address, "place.address", "with --context: ")
	addField(f, &p.Metrics, "place.metrics", "with --control-plane-address: ")
}

// addField adds the flag of a parameter to a command that reads no scenario. when is what its help begins with.
func addField(f *pflag.FlagSet, value *string, path, when string) {
	p, _ := scenario.Of(path)
	usage := when + p.Usage("")
	if p.Default != "" {
		usage += " (default " + p.Default + ")"
	}
	f.Var(&field{value, p.Type()}, p.Flag, usage)
}

// field is the value of a flag of addField.
type field struct {
	value *string
	kind  string
}

// Set is part of pflag.Value.
func (v *field) Set(text string) error {
	*v.value = text
	return nil
}

// String is part of pflag.Value.
func (v *field) String() string {
	if v.value == nil { // of a zero value, which pflag makes
		return ""
	}
	return *v.value
}

// Type is part of pflag.Value.
func (v *field) Type() string { return v.kind }

// checkPlace makes the place of the flags of addPlaceFlags; nil = no cluster is named.
func checkPlace(f *pflag.FlagSet, p scenario.Place) (*attach.Place, error) {
	if !f.Changed("context") {
		return nil, refuseFlags(f, "it with --context", "kubeconfig", "istio-namespace", "revision", "control-plane-address", "control-plane-metrics")
	}
	if p.Context == "" {
		return nil, usagef(`--context: got "", want a context of the kubeconfig`)
	}
	place, err := attach.NewPlace(p)
	if err != nil {
		return nil, usageError{err}
	}
	return &place, nil
}

// confirmation has the flags --yes and --dry-run of commands that create objects in a cluster.
type confirmation struct{ yes, dryRun bool }

func (c *confirmation) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&c.yes, "yes", false, "with --context: do not ask before objects are created")
	f.BoolVar(&c.dryRun, "dry-run", false, "with --context: print the objects that would be created, as YAML, and create nothing")
	group(f, scenario.OutputGroup, false, "yes", "dry-run")
}

// refuse is the check of a run that creates no objects in an existing cluster.
func (c *confirmation) refuse(f *pflag.FlagSet) error {
	for _, name := range []string{"yes", "dry-run"} {
		if f.Changed(name) {
			return usagef("--%s: want it with place.context", name)
		}
	}
	return nil
}

// prepare shows what a cluster has and what a run would make there, and asks. details follow the kinds
// of objects on their line. goOn is false where nothing is to be done.
func (c *confirmation) prepare(ctx context.Context, s streams, f *attach.Found, details string) (goOn bool, err error) {
	var b strings.Builder
	writeFound(&b, f)
	fmt.Fprintf(&b, "to be created:  %s%s\n", countKinds(f.Objects), details)
	fmt.Fprintf(&b, "  label:        scaler.mesh/run=%s\n", f.Run)
	fmt.Fprintf(&b, "to be removed:  at the end, also after an error; after kill -9 by '%s'\n", f.Removal)
	if _, err := io.WriteString(s.err, b.String()); err != nil {
		return false, err
	}
	return c.confirm(ctx, s, f.Objects)
}

// confirm prints the objects, or asks whether to create them. goOn is false where nothing is to be done.
func (c *confirmation) confirm(ctx context.Context, s streams, objects []runtime.Object) (goOn bool, err error) {
	if c.dryRun {
		return false, printObjects(s.out, objects)
	}
	if c.yes {
		return true, nil
	}
	if in, ok := s.in.(*os.File); !ok || !term.IsTerminal(int(in.Fd())) {
		return false, usagef("cannot ask for confirmation without a terminal: want --yes to create these objects, or --dry-run to print them")
	}
	fmt.Fprint(s.err, "Create these objects? [y/N] ")
	if yes, err := answer(ctx, s.in); err != nil || !yes {
		fmt.Fprintln(s.err, "nothing was created")
		return false, err
	}
	return true, nil
}

// answer reads a line, and reports whether it says yes.
func answer(ctx context.Context, in io.Reader) (bool, error) {
	line := make(chan string, 1)
	go func() { // ends with its line, or the program
		text, _ := bufio.NewReader(in).ReadString('\n') // an end without one is no
		line <- text
	}()
	select {
	case text := <-line:
		text = strings.ToLower(strings.TrimSpace(text))
		return text == "y" || text == "yes", nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// meshDetails describes what a run makes in a cluster in addition to its objects.
func meshDetails(f *run.Found) string {
	var b strings.Builder
	pods, real := 0, 0
	for _, s := range f.Mesh.Services {
		pods, real = pods+s.Pods-s.Real, real+s.Real
	}
	fmt.Fprintf(&b, ", and %d pods on fake nodes, with addresses of %s", pods, f.Neighbours.Addresses)
	if real > 0 {
		fmt.Fprintf(&b, "\n  real nodes:   %s with the sidecars of the cluster, on its own nodes", output.Many(real, "pod"))
	}
	if len(f.Lacks) > 0 {
		var names []string
		for _, l := range f.Lacks {
			names = append(names, l.What)
		}
		fmt.Fprintf(&b, "\n  not created:  %s of the mesh file (mesh.notReproduced of the record has the reasons): %s", output.Many(len(names), "part"), output.FirstOf(names, 3))
	}
	if len(f.Neighbours.DaemonSets) > 0 {
		fmt.Fprintf(&b, "\n  DaemonSets:   %s tolerate every taint: their pods come onto the fake nodes, too", strings.Join(f.Neighbours.DaemonSets, ", "))
	}
	return b.String()
}

// writeFound states a cluster and its control plane.
func writeFound(b *strings.Builder, f *attach.Found) {
	i := f.Installation
	fmt.Fprintf(b, "cluster:        %s, context %s, Kubernetes %s\n", f.Cluster.Server, f.Cluster.Context, f.Kubernetes)
	fmt.Fprintf(b, "control plane:  %s\n", i.Describe())
	for _, line := range []struct {
		name   string
		values map[string]string
	}{{"requests:", i.Requests}, {"limits:", i.Limits}, {"settings:", i.Settings}} {
		if len(line.values) > 0 {
			fmt.Fprintf(b, "  %-13s %s\n", line.name, output.Pairs(line.values, ", "))
		}
	}
}

// countKinds says how many objects there are of each kind.
func countKinds(objects []runtime.Object) string {
	counts := map[string]int{}
	for _, o := range objects {
		counts[o.GetObjectKind().GroupVersionKind().Kind]++
	}
	return output.Counts(counts)
}

// printObjects prints what a run would create, as documents of YAML.
func printObjects(w io.Writer, objects []runtime.Object) error {
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}
