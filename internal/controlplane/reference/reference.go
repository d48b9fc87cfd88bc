// Package reference is scaler's adapter for its own reference control plane,
// the program in package server below: how it is started as a process, what
// knobs and probes become for it, what its sidecars say and must hold.
//
// It makes the tool run and be tested in seconds without a mesh, it shows that
// adapters are a seam, and it is what the instrument is calibrated against: its
// pushes and certificates cost next to nothing, and it can be configured to be late,
// and to lose some, by a known amount.
package reference

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/reference/server"
	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/kwok"
)

// Name is the name of the control plane, its process and its hidden command.
const Name = "reference"

// DefaultPace limits pushes to 20,000 a second, so that a rollout of many pods does not push
// every one of them to every sidecar by itself. A mesh without a
// cluster has no limit.
const DefaultPace = 50 * time.Microsecond

// ControlPlane is a running reference control plane.
type ControlPlane struct {
	controlplane.Child // started again on the same addresses and with the same root

	// fixed after Start
	opts    controlplane.StartOptions
	program string // scaler's binary
	client  kubernetes.Interface
	size    Size // of a mesh that no cluster holds; zero = the cluster's is served
	ports   ports
	root    []byte
}

type ports struct{ secure, monitoring int }

// Start starts the control plane and returns once it serves what the cluster
// holds and its root certificate is known.
func Start(ctx context.Context, o controlplane.StartOptions) (*ControlPlane, error) {
	c, err := prepare(o, Size{})
	if err != nil {
		return nil, err
	}
	if c.client, err = kubernetes.NewForConfig(o.REST); err != nil {
		return nil, fmt.Errorf("making a client for the reference control plane: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: server.Namespace}}
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); controlplane.Created(err) != nil {
		return nil, fmt.Errorf("creating namespace %s: %w", server.Namespace, err)
	}
	o.Report("starting the reference control plane")
	if err := c.Restart(ctx); err != nil {
		return nil, err
	}
	authority, err := server.KeptAuthority(ctx, c.client)
	if err != nil {
		return nil, errors.Join(err, c.Life().Stop(interrupt.Uncancelled(ctx)))
	}
	c.root = authority.RootPEM()
	return c, nil
}

// prepare returns a control plane of a size, which is not started yet: this program, with free ports.
func prepare(o controlplane.StartOptions, size Size) (*ControlPlane, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding scaler's own program: %w", err)
	}
	free, err := process.FreePorts(2)
	if err != nil {
		return nil, fmt.Errorf("finding ports for the reference control plane: %w", err)
	}
	c := &ControlPlane{opts: o, program: program, size: size, ports: ports{free[0], free[1]}}
	c.Child = controlplane.Child{
		Group: o.Group, Resources: o.Resources, LogDir: o.LogDir,
		Command: c.command, Ready: controlplane.Answers("http://" + address(c.ports.monitoring) + "/ready"),
	}
	return c, nil
}

// Describe states how the reference control plane is set.
func (c *ControlPlane) Describe() controlplane.Description {
	return controlplane.Description{
		Name: Name, Version: c.opts.Scaler, Replicas: 1, MaxProcs: c.opts.Resources.Processors(),
		Settings: c.opts.Resources.Settings(map[string]string{
			"pace":         DefaultPace.String(),
			"verifyTokens": "false", // off, because what it costs is istiod's cost, too
		}),
	}
}

// command returns the command that starts it.
func (c *ControlPlane) command() process.Spec {
	args := []string{Name, "--secure", address(c.ports.secure), "--monitoring", address(c.ports.monitoring)}
	if c.size == (Size{}) {
		args = append(args, "--kubeconfig", c.opts.Kubeconfig, "--selector", kwok.RunLabel, "--pace", DefaultPace.String())
	} else {
		args = append(args, "--static-pods", strconv.Itoa(c.size.Pods), "--static-services", strconv.Itoa(c.size.Services), "--pace", "0s")
	}
	return process.Spec{Name: Name, Path: c.program, Args: args, Env: []string{"HOME=" + c.opts.LogDir, "PATH=/usr/bin:/bin"}}
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
