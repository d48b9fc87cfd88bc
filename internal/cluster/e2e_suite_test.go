//go:build e2e

package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

func TestMain(m *testing.M) {
	if v := os.Getenv(ownerVariable); v != "" {
		if err := own(strings.Split(v, "|")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestCluster(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Cluster", Label("e2e"))
}

// programs finds the programs, and builds what is missing.
func programs(ctx context.Context) (cluster.Programs, error) {
	paths, err := component.Paths(ctx, component.Options{BinDir: os.Getenv("SCALER_BIN_DIR"), CacheDir: os.Getenv("SCALER_CACHE_DIR")},
		component.Etcd, component.KubeAPIServer, component.KubeControllerManager, component.KubeScheduler, component.Kwok)
	return cluster.Programs{
		Etcd: paths[component.Etcd], APIServer: paths[component.KubeAPIServer],
		ControllerManager: paths[component.KubeControllerManager], Scheduler: paths[component.KubeScheduler],
		Kwok: paths[component.Kwok],
	}, err
}

// options are those of a cluster with the embedded Stages, in a group of its own
// that ends with the spec.
func options(ctx context.Context, root, name string) cluster.Options {
	GinkgoHelper()
	p, err := programs(ctx)
	Expect(err).NotTo(HaveOccurred())
	group, err := process.OpenGroup(filepath.Join(root, name), process.GroupOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(group.Remove(ctx)).To(Succeed()) })
	return cluster.Options{Group: group, Programs: p, KwokConfig: kwok.Stages()}
}

// own starts a cluster and either waits to be killed or, released, ends.
func own(args []string) error {
	ctx := context.Background()
	root, name, mode := args[0], args[1], args[2]
	p, err := programs(ctx)
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
