package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaler.mesh/scaler/internal/latency"
	"scaler.mesh/scaler/internal/place/attach"
)

// latencyCluster are the flags of a latency run in a cluster that is there already.
type latencyCluster struct {
	confirmation
	use latency.Existing
}

// forCluster are the flags that need --context.
var forCluster = []string{"kubeconfig", "istio-namespace", "revision", "image", "placement", "nodes", "yes", "dry-run"}

// forMachine are the flags of programs of this machine, none of which runs with --context.
var forMachine = []string{"istio-version", "envoy", "bin-dir"}

func (c *latencyCluster) addFlags(f *pflag.FlagSet, spec *latency.Spec) {
	addTargetFlags(f, &c.use.Target.Target, "client and servers are pods of that cluster, with the sidecars that it injects, in place of processes of this machine")
	addMeshFlags(f, &c.use.Target)
	f.StringVar(&c.use.Image, "image", "", "with --context: container image `REF` of this scaler, which all pods run")
	f.StringSliceVar(&spec.Placements, "placement", nil, "with --context: where the servers are: one-node (the client's), two-nodes (another one) (default both, where the cluster has two nodes that take pods)")
	f.StringSliceVar(&c.use.Nodes, "nodes", nil, "with --context: `NAMES` of the nodes, the client's first (default the first two by name)")
	c.confirmation.addFlags(f)
}

// complete checks the flags and, if a cluster is named, makes the run one in it.
func (c *latencyCluster) complete(f *pflag.FlagSet, spec *latency.Spec) (err error) {
	asked := f.Changed("context")
	wanted, text := forCluster, "want it with --context"
	if asked {
		wanted, text = forMachine, "want none with --context, whose cluster has its own"
	}
	for _, name := range wanted {
		if flag := f.Lookup(name); flag != nil && flag.Changed {
			return usagef("parsing --%s %s: %s", name, flag.Value, text)
		}
	}
	if !asked {
		return nil
	}
	if c.use.Target.Context == "" {
		return usagef(`parsing --context "": want a context of the kubeconfig`)
	}
	spec.Existing = &c.use
	c.use.ID, err = attach.NewID()
	return err
}

// prepare looks at the cluster, shows what would be done and asks. goOn is false where nothing is to be done.
func (c *latencyCluster) prepare(cmd *cobra.Command, s streams, spec *latency.Spec) (goOn bool, err error) {
	prepared, found, err := latency.Inspect(cmd.Context(), *spec)
	if err != nil {
		return false, err
	}
	*spec = prepared
	if err := showLatencyFound(s.err, prepared, found); err != nil {
		return false, err
	}
	return c.confirm(cmd.Context(), s, found.Objects)
}

// showLatencyFound states what a cluster has and what a run would create there.
func showLatencyFound(w io.Writer, spec latency.Spec, f *latency.Found) error {
	var b strings.Builder
	writeFound(&b, f.Found)
	for i, n := range f.Nodes {
		of := "client, servers of " + latency.OneNode
		if i > 0 {
			of = "servers of " + latency.TwoNodes
		}
		fmt.Fprintf(&b, "node:           %s (%s)\n", n.Name, of)
	}
	fmt.Fprintf(&b, "to be created:  %s\n", countKinds(f.Objects))
	fmt.Fprintf(&b, "  label:        scaler.mesh/run=%s\n", f.Run)
	fmt.Fprintf(&b, "to be removed:  at the end, also after an error; after kill -9 by '%s'\n", spec.Existing.Target.Removal(f.Run))
	_, err := io.WriteString(w, b.String())
	return err
}
