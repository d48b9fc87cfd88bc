package cli

import (
	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/sidecar"
)

// newExecEnvoyCommand becomes Envoy. Agents of real sidecars start it.
func newExecEnvoyCommand() *cobra.Command {
	return &cobra.Command{
		Use:                sidecar.ExecCommand + " PROGRAM [ARGUMENT...]",
		Short:              "Become an Envoy that ends with its parent",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return sidecar.Exec(args) },
	}
}
