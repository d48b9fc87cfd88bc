package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
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

// addTargetFlags adds those that name a cluster.
func addTargetFlags(f *pflag.FlagSet, t *existing.Target, use string) {
	f.StringVar(&t.Context, "context", "", "context of the kubeconfig, or "+existing.InCluster+" in a pod: "+use)
	f.StringVar(&t.Kubeconfig, "kubeconfig", "", "with --context: `FILE` with contexts (default KUBECONFIG, else ~/.kube/config)")
}

// addAttachFlags adds those that name a cluster and its control plane.
func addAttachFlags(f *pflag.FlagSet, t *attach.Target, use string) {
	addTargetFlags(f, &t.Target, use)
	addMeshFlags(f, t)
	f.StringVar(&t.Address, "control-plane-address", "", "with --context: `HOST:PORT` where sidecars reach the control plane from here (default its pods, through the API server)")
	f.StringVar(&t.Metrics, "control-plane-metrics", "", "with --control-plane-address: `HOST:PORT` of the metrics of a control plane of one program, from which its cores and memory are (default those of each of its pods, through the API server; unknown where the cluster has none)")
}

// addMeshFlags adds those that name one of several control planes.
func addMeshFlags(f *pflag.FlagSet, t *attach.Target) {
	f.StringVar(&t.Namespace, "istio-namespace", "", "with --context: namespace of istiod, which must be the root namespace of its mesh, too (default istio-system)")
	f.StringVar(&t.Revision, "revision", "", "with --context: revision of the control plane, where the cluster has several")
}

// checkTarget reports whether a cluster is named, and checks what goes with one.
func checkTarget(f *pflag.FlagSet, t *attach.Target) (bool, error) {
	if !f.Changed("context") {
		for _, name := range []string{"kubeconfig", "istio-namespace", "revision", "control-plane-address", "control-plane-metrics", "yes", "dry-run", "abort-if", "refuse-if", "worker-image", "kwok-image"} {
			if flag := f.Lookup(name); flag != nil && flag.Changed {
				return false, usagef("parsing --%s %s: want it with --context", name, flag.Value)
			}
		}
		return false, nil
	}
	if t.Context == "" {
		return false, usagef(`parsing --context "": want a context of the kubeconfig`)
	}
	for _, flag := range []struct{ name, value string }{{"control-plane-address", t.Address}, {"control-plane-metrics", t.Metrics}} {
		if f.Changed(flag.name) && !attach.IsAddress(flag.value) {
			return false, usagef("parsing --%s %q: want HOST:PORT", flag.name, flag.value)
		}
	}
	return true, nil
}

// confirmation is whether objects are created without a question, or only printed.
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

// prepare looks at the cluster, shows what would be done and asks. goOn is false where
// nothing is to be done.
func (c *confirmation) prepare(cmd *cobra.Command, s streams, spec run.Spec) (goOn bool, err error) {
	found, err := run.Inspect(cmd.Context(), spec)
	if err != nil {
		return false, err
	}
	if err := showFound(s.err, found, spec.Existing.Target.Removal(found.Run)); err != nil {
		return false, err
	}
	return c.confirm(cmd.Context(), s, found.Objects)
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
		return false, usagef("parsing --yes false: want --yes without a terminal, or --dry-run")
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

// showFound states what a cluster has, what a run would create there, and the command that deletes it.
func showFound(w io.Writer, f *run.Found, removal string) error {
	var b strings.Builder
	writeFound(&b, f.Found)
	pods, real := 0, 0
	for _, s := range f.Mesh.Services {
		pods, real = pods+s.Pods-s.Real, real+s.Real
	}
	fmt.Fprintf(&b, "to be created:  %s, and %d pods on fake nodes, with addresses of %s\n", countKinds(f.Objects), pods, f.Neighbours.Addresses)
	if real > 0 {
		fmt.Fprintf(&b, "  real nodes:   %s with the sidecars of the cluster, on its own nodes\n", output.Many(real, "pod"))
	}
	fmt.Fprintf(&b, "  label:        scaler.mesh/run=%s\n", f.Run)
	if len(f.Neighbours.DaemonSets) > 0 {
		fmt.Fprintf(&b, "  DaemonSets:   %s tolerate every taint: their pods come onto the fake nodes, too\n", strings.Join(f.Neighbours.DaemonSets, ", "))
	}
	fmt.Fprintf(&b, "to be removed:  at the end, also after an error; after kill -9 by '%s'\n", removal)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFound states a cluster and its control plane.
func writeFound(b *strings.Builder, f attach.Found) {
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
