package cli

import (
	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/controlplane/reference"
	"scaler.mesh/scaler/internal/controlplane/reference/server"
)

// newReferenceCommand returns the reference control plane as a program. scaler
// starts it itself.
func newReferenceCommand() *cobra.Command {
	var (
		o    reference.ServeOptions
		drop string
	)
	cmd := &cobra.Command{
		Use:    reference.Name,
		Short:  "Serve ADS and certificates for a cluster's services: the reference control plane",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Faults.Drop, err = server.ParseShare(drop); err != nil {
				return usagef("--drop: got %s, want 0%% to 100%%, or 0 to 1", drop)
			}
			if err := o.Faults.Validate(); err != nil {
				return usagef("%w", err)
			}
			return reference.Serve(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "file that names the cluster to serve")
	f.IntVar(&o.Static.Pods, "static-pods", 0, "serve a mesh of this many pods without a cluster")
	f.IntVar(&o.Static.Services, "static-services", 0, "services of that mesh")
	f.StringVar(&o.Secure, "secure", "127.0.0.1:18012", "address of ADS and the certificate API, over TLS")
	f.StringVar(&o.Plain, "plain", "", "address of ADS without TLS (default none)")
	f.StringVar(&o.Monitoring, "monitoring", "127.0.0.1:18014", "address of /metrics, /ready and /faults")
	f.StringVar(&o.Selector, "selector", "", "labels of the services to serve (default all)")
	f.DurationVar(&o.Pace, "pace", reference.DefaultPace, "time that the next changes wait for each push caused by the previous ones")
	f.BoolVar(&o.VerifyTokens, "verify-tokens", false, "have the API server review the token of every certificate request and stream")
	f.DurationVar(&o.Faults.Delay, "delay", 0, "delay of every push; responses to a sidecar's own request are not delayed")
	f.StringVar(&drop, "drop", "0%", "share of the pushes that is dropped; responses to a sidecar's own request are always sent")
	f.Uint64Var(&o.Faults.Seed, "drop-seed", 1, "seed that decides which pushes are dropped")
	return cmd
}
