package cli

import (
	"context"
	"crypto"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/internal/worker"
)

// newWorkerCommand runs simulated sidecars for another scaler, which starts it itself: as a child
// process or as a pod.
func newWorkerCommand(s streams) *cobra.Command {
	var o workerOptions
	cmd := &cobra.Command{
		Use:    worker.Command,
		Short:  "Run simulated sidecars for the scaler that started this one",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			keys, err := svid.NewKeyPool()
			if err != nil {
				return err
			}
			host := worker.HostOptions{
				Build: component.ScalerVersion(), Drivers: drivers.All(),
				Keys:   func() (crypto.Signer, error) { return keys.Key() },
				Tokens: clusterTokens,
			}
			if o.listen != "" {
				return o.serve(cmd.Context(), s.err, host)
			}
			conn, err := worker.ParentConn()
			if err != nil {
				return err
			}
			return worker.Serve(cmd.Context(), conn, host)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "`HOST:PORT` where scaler connects (default the connection of a child process)")
	f.StringVar(&o.metrics, "metrics", ":8080", "with --listen: `HOST:PORT` of the worker's own metrics")
	f.DurationVar(&o.idle, "idle", 2*time.Minute, "with --listen: time without a connection after which it ends")
	return cmd
}

// workerOptions are the options of a worker that others connect to.
type workerOptions struct {
	listen, metrics string
	idle            time.Duration
}

// serve waits for connections, and answers requests for metrics once it does.
func (o workerOptions) serve(ctx context.Context, log io.Writer, host worker.HostOptions) error {
	address, err := net.ResolveTCPAddr("tcp", o.listen)
	if err != nil {
		return usagef("--listen: got %q: %w", o.listen, err)
	}
	listener, err := net.ListenTCP("tcp", address)
	if err != nil {
		return err
	}
	host.Metrics = measure.NewMetrics(measure.Build{Version: host.Build}, nil)
	metrics, err := host.Metrics.ListenOn(o.metrics)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(log, nil))
	ctx, done := context.WithCancel(ctx)
	defer done()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return metrics.Run(ctx) })
	group.Go(func() error {
		defer done()
		return worker.Listen(ctx, listener, o.idle, host, func(err error) { logger.Warn("the connection ended", "err", err) })
	})
	return group.Wait()
}

// clusterTokens requests tokens from the cluster of a kubeconfig file, or from the own one.
func clusterTokens(kubeconfig string) (worker.Tokens, error) {
	read := func() (*rest.Config, error) { return place.ClientConfig(kubeconfig) }
	if kubeconfig == worker.OwnCluster {
		read = rest.InClusterConfig
	}
	config, err := read()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return authority.Tokens(client), nil
}
