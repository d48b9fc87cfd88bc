package cli

import (
	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/dataplane"
)

// newEchoCommand returns the echo server as a program. scaler starts it itself.
func newEchoCommand() *cobra.Command {
	var o dataplane.EchoOptions
	cmd := &cobra.Command{
		Use:    dataplane.EchoCommand,
		Short:  "Answer HTTP requests, after an optional wait, or forward them",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Wait < 0 {
				return usagef("--wait: got %s, want 0 or more", o.Wait)
			}
			if o.HTTP != 1 && o.HTTP != 2 {
				return usagef("--http: got %d, want 1 or 2", o.HTTP)
			}
			return dataplane.Echo(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8080", "`HOST:PORT` to serve on, HTTP/1.1 and HTTP/2")
	f.StringVar(&o.Name, "name", "echo", "the response")
	f.DurationVar(&o.Wait, "wait", 0, "time before it answers or forwards")
	f.StringSliceVar(&o.Next.Addresses, "next", nil, "`HOST:PORT` that it forwards requests to, several in turn (default none)")
	f.StringVar(&o.Next.Host, "next-host", "", "Host of those requests (default the address)")
	f.IntVar(&o.HTTP, "http", 1, "version of those requests, 1 or 2")
	return cmd
}
