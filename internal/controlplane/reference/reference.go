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
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/reference/server"
	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/kwok"
)

// Name is that of the control plane, its process and its hidden command.
const Name = "reference"

// DefaultPace keeps a rollout of many pods from pushing every one of them to
// every sidecar by itself: no more than 20,000 pushes a second.
const DefaultPace = 50 * time.Microsecond

// Options state where and how the reference control plane runs.
type Options struct {
	Program    string         // scaler's binary; "" = this very program
	Version    string         // that it is described with
	Kubeconfig string         // file that it reads
	REST       *rest.Config   // the same cluster, for scaler's own requests
	Group      *process.Group // the children that it joins
	LogDir     string         // reference.log is written there

	Resources controlplane.Resources // what it is given of this machine

	Pace         time.Duration // see server.Options; 0 = DefaultPace, negative = none
	VerifyTokens bool          // see server.Options; what it costs is istiod's cost too, so off for calibration
	Faults       server.Faults // from the start; SetFaults sets others later
	Progress     func(string)  // nil = silent
}

// ControlPlane is a running reference control plane.
type ControlPlane struct {
	controlplane.Child // started again on the same addresses and with the same root

	// fixed after Start
	opts   Options
	client kubernetes.Interface
	size   Size // of a mesh that no cluster holds; zero = the cluster's is served
	ports  ports
	root   []byte

	mu     sync.Mutex
	faults server.Faults
}

type ports struct{ secure, plain, monitoring int }

// Start starts the control plane and returns once it serves what the cluster
// holds and its root certificate is known.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	if c.client, err = kubernetes.NewForConfig(opts.REST); err != nil {
		return nil, fmt.Errorf("making a client for the reference control plane: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: server.Namespace}}
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); controlplane.Created(err) != nil {
		return nil, fmt.Errorf("creating namespace %s: %w", server.Namespace, err)
	}
	c.opts.Progress("starting the reference control plane")
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

// prepare fills in the options and finds ports.
func prepare(opts Options) (*ControlPlane, error) {
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	if opts.Pace == 0 {
		opts.Pace = DefaultPace
	}
	var err error
	if opts.Program == "" {
		if opts.Program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("finding scaler's own program: %w", err)
		}
	}
	if err := opts.Faults.Validate(); err != nil {
		return nil, err
	}
	free, err := process.FreePorts(3)
	if err != nil {
		return nil, fmt.Errorf("finding ports for the reference control plane: %w", err)
	}
	c := &ControlPlane{opts: opts, ports: ports{free[0], free[1], free[2]}, faults: opts.Faults}
	c.Child = controlplane.Child{
		Group: opts.Group, Resources: opts.Resources, LogDir: opts.LogDir,
		Command: c.command, Ready: controlplane.Answers("http://" + address(c.ports.monitoring) + "/ready"),
	}
	return c, nil
}

// Describe states how the reference control plane is set.
func (c *ControlPlane) Describe() controlplane.Description {
	c.mu.Lock()
	defer c.mu.Unlock()
	settings := map[string]string{
		"pace":         max(0, c.opts.Pace).String(),
		"verifyTokens": strconv.FormatBool(c.opts.VerifyTokens),
	}
	if c.faults.Delay > 0 {
		settings["delay"] = c.faults.Delay.String()
	}
	if c.faults.Drop > 0 {
		settings["drop"] = strconv.FormatFloat(c.faults.Drop, 'g', -1, 64)
		settings["dropSeed"] = strconv.FormatUint(c.faults.Seed, 10)
	}
	return controlplane.Description{Name: Name, Version: c.opts.Version, Replicas: 1, MaxProcs: c.opts.Resources.Processors(), Settings: c.opts.Resources.Settings(settings)}
}

// SetFaults makes it late, and lose pushes, from now on: a mesh must have
// converged before its updates are lost.
func (c *ControlPlane) SetFaults(ctx context.Context, f server.Faults) error {
	body, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("setting the faults of the reference control plane: %w", err)
	}
	if err := call(ctx, http.MethodPut, "http://"+address(c.ports.monitoring)+"/faults", body); err != nil {
		return fmt.Errorf("setting the faults of the reference control plane: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = f // for a restart too
	return nil
}

// command is what it is started with.
func (c *ControlPlane) command() process.Spec {
	c.mu.Lock()
	defer c.mu.Unlock()
	return process.Spec{Name: Name, Path: c.opts.Program, Args: c.args(c.faults), Env: []string{"HOME=" + c.opts.LogDir, "PATH=/usr/bin:/bin"}}
}

// args are the program's arguments.
func (c *ControlPlane) args(faults server.Faults) []string {
	source := []string{Name, "--kubeconfig", c.opts.Kubeconfig, "--selector", kwok.RunLabel}
	if c.size != (Size{}) {
		source = []string{Name, "--static-pods", strconv.Itoa(c.size.Pods), "--static-services", strconv.Itoa(c.size.Services)}
	}
	return append(source,
		"--secure", address(c.ports.secure),
		"--plain", address(c.ports.plain),
		"--monitoring", address(c.ports.monitoring),
		"--pace", max(0, c.opts.Pace).String(),
		"--verify-tokens="+strconv.FormatBool(c.opts.VerifyTokens),
		"--delay", faults.Delay.String(),
		"--drop", strconv.FormatFloat(faults.Drop, 'g', -1, 64),
		"--drop-seed", strconv.FormatUint(faults.Seed, 10),
	)
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// call fails unless the answer is 200.
func call(ctx context.Context, method, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	_, err = httpget.Do(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, request)
	return err
}
