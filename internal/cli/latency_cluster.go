package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/latency"
	"scaler.mesh/scaler/pkg/scenario"
)

// checkCluster checks the flags that only a run in an existing cluster has, and those that one
// cannot have. They are in no scenario.
func (o *latencyOptions) checkCluster(cmd *cobra.Command) error {
	if o.spec.Existing == nil {
		return o.cluster.refuse(cmd.Flags())
	}
	for _, name := range []string{"envoy", "bin-dir"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed {
			return usagef("--%s: got %q, want none with place.context, whose cluster has its own", name, flag.Value)
		}
	}
	return nil
}

// prepare looks at the cluster, shows what would be done and asks. goOn is false where nothing is to be done.
func (o *latencyOptions) prepare(cmd *cobra.Command, s streams, d *scenario.Document) (goOn bool, err error) {
	prepared, found, err := latency.Inspect(cmd.Context(), o.spec)
	if _, field := errors.AsType[*scenario.Error](err); field {
		return false, o.named(d, err)
	}
	if err != nil {
		return false, err
	}
	o.spec = prepared
	if err := showLatencyFound(s.err, prepared, found); err != nil {
		return false, err
	}
	return o.cluster.confirm(cmd.Context(), s, found.Objects)
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
