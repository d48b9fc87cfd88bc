package cli

import (
	"time"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/process"
)

// newCapLogsCommand keeps the logs of a kept cluster short. scaler starts it itself.
func newCapLogsCommand() *cobra.Command {
	var (
		limit    int64
		interval time.Duration
	)
	cmd := &cobra.Command{
		Use:    cluster.CapLogsCommand + " LOG...",
		Short:  "Shorten logs that other programs append to, until interrupted",
		Hidden: true,
		RunE: func(cmd *cobra.Command, logs []string) error {
			if limit <= 0 || interval <= 0 {
				return usagef("--limit, --interval: got %d, %s, want more than 0", limit, interval)
			}
			return process.CapLogs(cmd.Context(), logs, limit, interval)
		},
	}
	cmd.Flags().Int64Var(&limit, "limit", cluster.LogLimit, "`bytes` that a log may have")
	cmd.Flags().DurationVar(&interval, "interval", cluster.LogInterval, "time between two looks")
	return cmd
}
