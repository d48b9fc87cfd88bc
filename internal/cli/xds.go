package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/xdsload"
)

type xdsOptions struct {
	spec   xdsload.Spec
	output string
}

func newXDSCommand(s streams) *cobra.Command {
	o := xdsOptions{spec: xdsload.DefaultSpec()}
	cmd := &cobra.Command{
		Use:   "xds",
		Short: "Run simulated sidecars against any ADS server",
		Long: `Xds connects simulated sidecars to a running ADS server, without Kubernetes. Each
sidecar dials its own connection, subscribes like a proxy to everything that its
configuration names, acknowledges responses, and reconnects with a proxy's backoff
when it is refused or loses its stream. It waits for a server that is not
reachable yet in the same way.

The command runs for --duration or, without it, until it is interrupted (Ctrl-C),
which is then a normal end. The figures go to stdout in both cases. A sidecar is
complete when everything that it requested was answered and acknowledged. The
exit code is 3 if a sidecar was never complete.

--node-id, --node-cluster and --metadata are Go templates: {{.Index}} counts from
0, {{.IP}} is an address unique to the sidecar, and {{.Namespace}} is the value of
--namespace. istiod accepts the defaults; its plaintext port is 15010.`,
		Example: `  # 1000 sidecars against istiod's plaintext port, until Ctrl-C
  scaler xds --address 127.0.0.1:15010 --clients 1000 --plaintext

  # over TLS with a token, 50 a second, for five minutes, figures as JSON
  scaler xds --address localhost:15012 --clients 1000 --rate 50 --duration 5m \
    --tls-ca root-cert.pem --token-file token --server-name istiod.istio-system.svc -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	f := cmd.Flags()
	f.StringVar(&o.spec.Address, "address", "", "`HOST:PORT` of the ADS server")
	f.IntVar(&o.spec.Clients, "clients", o.spec.Clients, "number of simulated sidecars")
	f.StringVar(&o.spec.XDS, "xds", o.spec.XDS, "xDS variant: delta or sotw")
	f.DurationVar(&o.spec.Duration, "duration", 0, "length of the run (default until interrupted)")
	f.Float64Var(&o.spec.Rate, "rate", 0, "sidecars started per second (default all at once)")
	f.BoolVar(&o.spec.Plaintext, "plaintext", false, "connect without TLS and without a token")
	f.StringVar(&o.spec.TLSCA, "tls-ca", "", "`FILE` with the root certificates for the server, in PEM")
	f.StringVar(&o.spec.TokenFile, "token-file", "", "`FILE` with the bearer token of all sidecars; read again when it may have changed")
	f.StringVar(&o.spec.ServerName, "server-name", "", "`NAME` that the server's certificate must contain (default the host of --address)")
	f.StringToStringVar(&o.spec.Headers, "header", nil, "gRPC metadata of every stream, as in ClusterID=Kubernetes, repeatable")
	f.StringVar(&o.spec.NodeID, "node-id", o.spec.NodeID, "`TEMPLATE` of node.id")
	f.StringVar(&o.spec.NodeCluster, "node-cluster", o.spec.NodeCluster, "`TEMPLATE` of node.cluster")
	f.StringVar(&o.spec.Metadata, "metadata", o.spec.Metadata, "`TEMPLATE` of node.metadata, a JSON object")
	f.StringVar(&o.spec.Namespace, "namespace", o.spec.Namespace, "value of {{.Namespace}} in the templates")
	f.StringVar(&o.spec.MetricsAddress, "metrics-address", "", "`HOST:PORT` for scaler's own metrics under /metrics; port 0 selects a free one (default none)")
	f.StringVarP(&o.output, "output", "o", "table", "format of the figures: table, wide, json, yaml or markdown")
	complete(cmd, "xds", []string{"delta", "sotw"})
	complete(cmd, "output", output.Formats)
	return cmd
}

func (o *xdsOptions) run(cmd *cobra.Command, s streams) error {
	if err := parseOutput(o.output, output.Formats...); err != nil {
		return err
	}
	if err := o.spec.Validate(); err != nil {
		return usagef("%w", err)
	}
	collectOften()
	shown := newProgress(s.err)
	defer shown.close()
	run, err := xdsload.Run(cmd.Context(), o.spec, xdsload.Progress{
		Log:    shown.say,
		Status: func(st xdsload.Status) { shown.show("", xdsStatusLine(st)) },
	})
	shown.close()
	if run.Status == "" { // it did not come to live
		return err
	}
	if printErr := report.PrintXDS(s.out, o.output, &run); printErr != nil {
		return printErr
	}
	if errors.Is(err, xdsload.ErrIncomplete) {
		return fmt.Errorf("%w: %w", errMissed, err)
	}
	return err
}

// xdsStatusLine is plain ASCII, so that its length is its width.
func xdsStatusLine(s xdsload.Status) string {
	elapsed := s.Elapsed.Round(time.Second).String()
	if s.Length > 0 {
		elapsed += "/" + s.Length.String()
	}
	return fmt.Sprintf("%s | sidecars %d connected, %d complete of %d | %d responses, %s | %d refused, %d failed",
		elapsed, s.Open, s.Complete, s.Clients, s.Responses, output.Bytes(float64(s.Bytes)), s.Refusals, s.Failures)
}
