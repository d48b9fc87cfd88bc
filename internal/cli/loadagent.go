package cli

import (
	"net"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/loadagent"
)

// newLoadAgentCommand returns the command that `scaler latency --context` starts in its pods.
func newLoadAgentCommand() *cobra.Command {
	listen := ""
	cmd := &cobra.Command{
		Use:    loadagent.Command,
		Short:  "Send requests from a pod, for the scaler that created it",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address, err := net.ResolveTCPAddr("tcp", listen)
			if err != nil {
				return usagef("--listen: got %q: %w", listen, err)
			}
			listener, err := net.ListenTCP("tcp", address)
			if err != nil {
				return err
			}
			return loadagent.Serve(cmd.Context(), listener, component.ScalerVersion())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:15910", "`HOST:PORT` where scaler connects")
	return cmd
}
