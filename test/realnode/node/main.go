// Node adds a real node, or two, to an embedded cluster of this machine, with istiod as a pod on it:
//
//	hack/realnode up      # starts what is missing, and prints the path of the kubeconfig
//	hack/realnode down    # stops and removes all of it
//	hack/realnode check   # states what this machine lacks
//
// A node is a network namespace and a mount namespace of its own, in which containerd, kubelet
// and kube-proxy run as processes of this machine. A pair of interfaces connects it with the
// machine, and another one two nodes with each other. Its interfaces, iptables rules and mounts end with the namespaces; its control groups
// are below one of its own in each hierarchy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/test/realnode/nodeprograms"
)

// Exit statuses.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitLacking = 3 // this machine cannot have a real node
)

// options are the options of the command line.
type options struct {
	state    string // folder of clusters and nodes
	nodes    int    // number of sites
	replicas int    // of istiod
	sidecars bool   // injected pods can run: see proxyImage
	scaler   string // program of scaler, without libraries, of which an image is made; "" = none is
	// housekeeping is the time between two readings of a container by the kubelet's cAdvisor, up to twice that, and between two
	// searches for containers whose start it missed; 0 = the kubelet's defaults, 10 s and 1 min.
	housekeeping time.Duration
	// manifests is a folder like component.IstioManifests; "" = that of the default release.
	manifests string
	programs  component.Options
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	var lacking *lackingError
	switch {
	case err == nil:
	case errors.As(err, &lacking):
		fmt.Fprintln(os.Stderr, "realnode:", err)
		os.Exit(exitLacking)
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "realnode:", err)
		os.Exit(exitUsage)
	default:
		fmt.Fprintln(os.Stderr, "realnode:", err)
		os.Exit(exitFailed)
	}
}

var errUsage = errors.New("want realnode up, down or check")

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	var o options
	flags := flag.NewFlagSet("realnode "+args[0], flag.ContinueOnError)
	flags.StringVar(&o.state, "state-dir", defaultState(), "folder that holds what runs")
	flags.StringVar(&o.programs.CacheDir, "cache-dir", os.Getenv("SCALER_CACHE_DIR"), "folder of the built programs; what is missing is built into it")
	flags.IntVar(&o.nodes, "nodes", 1, "real nodes, 1 or 2")
	flags.IntVar(&o.replicas, "istiod-replicas", 1, "replicas of istiod")
	flags.BoolVar(&o.sidecars, "sidecars", false, "injected pods can run: the node has the image of a proxy with upstream's Envoy, and istiod sends only what that understands")
	flags.StringVar(&o.scaler, "scaler", "", "statically linked program of scaler: the node has an image of it, "+scalerImage+", for --worker-image")
	flags.DurationVar(&o.housekeeping, "housekeeping-interval", 0, "time between two readings of a container by the kubelet's cAdvisor, up to twice that, and between two searches for containers whose start it missed (default those of the kubelet, 10s and 1m)")
	flags.StringVar(&o.manifests, "manifests", "", "folder with another installation of istiod, as istioctl renders it ("+component.IstioManifestsFile+"), and Envoy's bootstrap template (default that of scaler's release)")
	to := flags.String("to", "", "of serve and reach: address of the API server")
	kubeconfig := flags.String("kubeconfig", "", "of serve: that of the cluster")
	if err := flags.Parse(args[1:]); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() > 0 || o.replicas < 1 || o.nodes < 1 || o.nodes > len(sites) {
		return fmt.Errorf("%w, with flags only, one replica at least and 1 to %d nodes", errUsage, len(sites))
	}
	o.programs.ImageRegistry = []string{"none"} // what the node runs is built here
	o.programs.Graphs = nodeprograms.Graphs()
	o.programs.Progress = progress
	switch args[0] {
	case "up":
		path, err := up(ctx, o)
		if err == nil {
			fmt.Println(path)
		}
		return err
	case "down":
		ctx, cancel := context.WithTimeout(ctx, downTimeout)
		defer cancel()
		return down(ctx, o)
	case "check":
		return check(ctx, o)
	case "serve":
		return serve(ctx, *to, *kubeconfig)
	case "reach":
		return reach(ctx, *to)
	}
	return fmt.Errorf("%w, not %q", errUsage, args[0])
}

func progress(msg string) { fmt.Fprintln(os.Stderr, time.Now().Format("15:04:05"), msg) }

// defaultState is scaler's own: its clusters are there, too.
func defaultState() string {
	if dir := os.Getenv("SCALER_STATE_DIR"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "scaler")
	}
	return filepath.Join(os.Getenv("HOME"), ".local", "state", "scaler")
}
