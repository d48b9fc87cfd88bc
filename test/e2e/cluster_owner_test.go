//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/kwok"
)

// ownerVariable makes the test binary a program that starts a cluster instead:
// its value is root, name and mode.
const ownerVariable = "SCALER_TEST_OWNER"

// clusterPrograms finds the programs, and builds what is missing.
func clusterPrograms(ctx context.Context) (cluster.Programs, error) {
	paths, err := component.Paths(ctx, component.Options{BinDir: os.Getenv("SCALER_BIN_DIR"), CacheDir: os.Getenv("SCALER_CACHE_DIR")},
		component.Etcd, component.KubeAPIServer, component.KubeControllerManager, component.KubeScheduler, component.Kwok)
	return cluster.Programs{
		Etcd: paths[component.Etcd], APIServer: paths[component.KubeAPIServer],
		ControllerManager: paths[component.KubeControllerManager], Scheduler: paths[component.KubeScheduler],
		Kwok: paths[component.Kwok],
	}, err
}

// clusterOptions returns the options of a cluster with the embedded Stages, in a group of its own
// that ends with the spec.
func clusterOptions(ctx context.Context, root, name string) cluster.Options {
	GinkgoHelper()
	p, err := clusterPrograms(ctx)
	Expect(err).NotTo(HaveOccurred())
	group, err := process.OpenGroup(filepath.Join(root, name), process.GroupOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(group.Remove(ctx)).To(Succeed()) })
	return cluster.Options{Group: group, Programs: p, KwokConfig: kwok.Stages()}
}

// ownCluster starts a cluster and either waits to be killed or, released, ends.
func ownCluster(args []string) error {
	ctx := context.Background()
	root, name, mode := args[0], args[1], args[2]
	p, err := clusterPrograms(ctx)
	if err != nil {
		return err
	}
	announce := func(msg string) { fmt.Println(msg) }
	group, err := process.OpenGroup(filepath.Join(root, name), process.GroupOptions{Keep: mode != ""})
	if err != nil {
		return err
	}
	if _, err := cluster.Up(ctx, cluster.Options{Group: group, Programs: p, KwokConfig: kwok.Stages(), Progress: announce}); err != nil {
		return err
	}
	if mode == "release" {
		return group.MarkKept()
	}
	fmt.Println("ready")
	select {}
}
