package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/latency"
)

// checkCluster checks the flags that only a run in an existing cluster has, and those that one
// cannot have. They are in no scenario.
func (o *latencyOptions) checkCluster(cmd *cobra.Command) error {
	if o.spec.Existing == nil {
		return o.cluster.refuse(cmd.Flags())
	}
	return refuseFlags(cmd.Flags(), "none with place.context, whose cluster has its own", "envoy", "bin-dir")
}

// prepare looks at the cluster, shows what would be done and asks. goOn is false where nothing is to be done.
func (o *latencyOptions) prepare(cmd *cobra.Command, s streams) (goOn bool, err error) {
	prepared, found, err := latency.Inspect(cmd.Context(), o.spec)
	if err != nil {
		return false, misused(err)
	}
	o.spec = prepared
	return o.cluster.prepare(cmd.Context(), s, found.Found, nodeDetails(found))
}

// nodeDetails returns the nodes that the pods of a run are on.
func nodeDetails(f *latency.Found) string {
	var b strings.Builder
	for i, n := range f.Nodes {
		of := "client, servers of " + latency.OneNode
		if i > 0 {
			of = "servers of " + latency.TwoNodes
		}
		fmt.Fprintf(&b, "\n  node:         %s (%s)", n.Name, of)
	}
	return b.String()
}
