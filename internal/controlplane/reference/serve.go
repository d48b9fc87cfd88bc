package reference

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/internal/controlplane/reference/server"
	"scaler.mesh/scaler/pkg/scenario"
)

// ServeOptions are the options of the program; see server.Options.
type ServeOptions struct {
	Kubeconfig string // file; its current context is the cluster that is served
	Static     Size   // a mesh that is served instead of a cluster's; zero = none
	// Addresses to listen on, host:port; Plain "" = none.
	Secure, Plain, Monitoring string

	Selector     string        // labels of the Services that are served; "" = all
	Pace         time.Duration // what the next changes wait for each push of those before; 0 = none
	VerifyTokens bool          // false = tokens are not looked at
	Faults       server.Faults // at the start; zero = none
}

// Serve is the program itself: it serves until ctx is done.
func Serve(ctx context.Context, o ServeOptions) error {
	options, err := o.source(ctx)
	if err != nil {
		return err
	}
	var opened []net.Listener
	for _, l := range []struct {
		flag, address string
		listener      *net.Listener
	}{{"secure", o.Secure, &options.Secure}, {"plain", o.Plain, &options.Plain}, {"monitoring", o.Monitoring, &options.Monitoring}} {
		if l.address == "" && l.flag == "plain" {
			continue
		}
		*l.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", l.address)
		if err != nil {
			for _, o := range opened {
				err = errors.Join(err, o.Close())
			}
			return fmt.Errorf("listening on --%s %s: %w", l.flag, l.address, err)
		}
		opened = append(opened, *l.listener)
	}
	return server.Run(ctx, options)
}

// source returns the options that state what is served.
func (o ServeOptions) source(ctx context.Context) (server.Options, error) {
	options := server.Options{Selector: o.Selector, Pace: o.Pace, VerifyTokens: o.VerifyTokens, Faults: o.Faults}
	if o.Static != (Size{}) {
		if err := o.Static.Validate(); err != nil {
			return options, err
		}
		if o.VerifyTokens {
			return options, scenario.Refuse("verifyTokens", true, "none with staticPods, which has no API server to ask")
		}
		var err error
		options.Static = o.Static.mesh()
		options.Authority, err = server.NewAuthority()
		return options, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return options, fmt.Errorf("reading the kubeconfig %s: %w", o.Kubeconfig, err)
	}
	config.QPS = -1 // no limit of the client's own
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return options, fmt.Errorf("making a client: %w", err)
	}
	options.Client = client
	options.Authority, err = server.KeptAuthority(ctx, client)
	return options, err
}
