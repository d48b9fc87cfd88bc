package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/component"
)

// newVersionCommand prints what records name as the version of scaler.
func newVersionCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print scaler's version",
		Long: `Version prints the version of this program, as records name it: a release, the commit
of a build, or "devel-" with a digest of the build ID of a program that was built without either.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.out, "scaler", component.ScalerVersion())
			return err
		},
	}
}
