package main

import (
	"crypto"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/pkg/controlplane/authority"
	"scaler.mesh/scaler/pkg/controlplane/drivers"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/worker"
)

// newWorkerCommand runs simulated sidecars for another scaler, which starts it itself.
func newWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    worker.Command,
		Short:  "Run simulated sidecars for the scaler that started this one",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := worker.ParentConn()
			if err != nil {
				return err
			}
			keys, err := experiment.NewKeyPool()
			if err != nil {
				return err
			}
			return worker.Serve(cmd.Context(), conn, worker.HostOptions{
				Build: experiment.Version(), Drivers: drivers.All(),
				Keys:   func() (crypto.Signer, error) { return keys.Key() },
				Tokens: clusterTokens,
			})
		},
	}
}

// clusterTokens requests tokens from the cluster of a kubeconfig file.
func clusterTokens(kubeconfig string) (worker.Tokens, error) {
	config, err := experiment.ClientConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return authority.Tokens(client), nil
}
