// Package hidden lets the program of a package's tests be the programs that scaler
// starts of itself: its hidden commands. It imports nothing above the control
// planes, so that the tests of every package above can use it.
package hidden

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/controlplane/reference"
	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/sidecar"
)

// Main runs the hidden command that the arguments name: the reference control
// plane, an echo server, or what becomes Envoy. Without one it runs the tests. It
// returns the program's exit status.
func Main(m *testing.M) int {
	if len(os.Args) < 2 {
		return m.Run()
	}
	var err error
	switch args := os.Args[2:]; os.Args[1] {
	case reference.Name:
		err = serveReference(args)
	case dataplane.EchoCommand:
		err = serveEcho(args)
	case sidecar.ExecCommand:
		err = sidecar.Exec(args)
	default:
		return m.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveEcho(args []string) error {
	var o dataplane.EchoOptions
	var next string
	f := flag.NewFlagSet(dataplane.EchoCommand, flag.ContinueOnError)
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
