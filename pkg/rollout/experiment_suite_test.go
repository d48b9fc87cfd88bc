package rollout

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/controlplane/reference"
	"scaler.mesh/scaler/pkg/dataplane"
	"scaler.mesh/scaler/pkg/sidecar"
)

// TestMain lets the tests' own program be the reference control plane, an echo
// server, and what becomes Envoy, as scaler's is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == reference.Name {
		if err := serveReference(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == sidecar.ExecCommand {
		fmt.Fprintln(os.Stderr, sidecar.Exec(os.Args[2:]))
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == EchoCommand {
		fmt.Fprintln(os.Stderr, serveEcho(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func serveEcho(args []string) error {
	var o dataplane.EchoOptions
	var next string
	f := flag.NewFlagSet(EchoCommand, flag.ContinueOnError)
	f.StringVar(&o.Listen, "listen", "", "")
	f.StringVar(&o.Name, "name", "", "")
	f.DurationVar(&o.Wait, "wait", 0, "")
	f.StringVar(&next, "next", "", "")
	f.StringVar(&o.Next.Host, "next-host", "", "")
	f.IntVar(&o.HTTP, "http", 1, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	if next != "" {
		o.Next.Addresses = strings.Split(next, ",")
	}
	return dataplane.Echo(context.Background(), o)
}

func serveReference(args []string) error {
	var o reference.ServeOptions
	f := flag.NewFlagSet(reference.Name, flag.ContinueOnError)
	f.IntVar(&o.Static.Pods, "static-pods", 0, "")
	f.IntVar(&o.Static.Services, "static-services", 0, "")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "")
	f.StringVar(&o.Selector, "selector", "", "")
	f.StringVar(&o.Secure, "secure", "", "")
	f.StringVar(&o.Plain, "plain", "", "")
	f.StringVar(&o.Monitoring, "monitoring", "", "")
	f.DurationVar(&o.Pace, "pace", 0, "")
	f.BoolVar(&o.VerifyTokens, "verify-tokens", false, "")
	f.DurationVar(&o.Faults.Delay, "delay", 0, "")
	f.Float64Var(&o.Faults.Drop, "drop", 0, "")
	f.Uint64Var(&o.Faults.Seed, "drop-seed", 1, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	return reference.Serve(context.Background(), o)
}

func TestExperiment(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(5 * time.Millisecond)
	RunSpecs(t, "experiment")
}
