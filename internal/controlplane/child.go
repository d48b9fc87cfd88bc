package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/process"
)

// startTimeout bounds how long a program may take until it serves.
const startTimeout = time.Minute

// Child is a Program that is a child process of scaler. It does not run before the first Restart, and
// must not be copied.
type Child struct {
	// fixed before the first Restart
	Group     *process.Group // the children that it joins
	Resources Resources      // that it is given; zero = all of the machine
	LogDir    string         // that it runs in, and where the log of its name is written
	// Command states name, path, arguments and environment of each start. Those of Resources are added.
	Command func() process.Spec
	Ready   func(context.Context) error // fails unless it serves

	mu      sync.Mutex
	process *process.Process // nil = it was not started
}

// Life is part of Program.
func (c *Child) Life() Life {
	c.mu.Lock()
	defer c.mu.Unlock()
	return life{c.process}
}

// Restart is part of Program. It also starts one that was not started before. One that does not serve
// within a minute is ended.
func (c *Child) Restart(ctx context.Context) error {
	spec := c.Resources.Apply(c.Command())
	spec.Args = slices.Concat(spec.Args, c.Resources.Args)
	spec.Env = c.Resources.Environment(spec.Env...)
	spec.Dir, spec.Log = c.LogDir, filepath.Join(c.LogDir, spec.Name+".log")
	started, err := c.Group.Start(spec)
	if err != nil {
		return fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	c.mu.Lock()
	c.process = started
	c.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := started.WaitReady(limited, c.Ready); err != nil {
		return errors.Join(fmt.Errorf("waiting for %s: %w", spec.Name, err), started.Stop(interrupt.Uncancelled(ctx)))
	}
	return nil
}

// Stop ends it if it runs.
func (c *Child) Stop(ctx context.Context) error {
	c.mu.Lock()
	running := c.process
	c.mu.Unlock()
	if running == nil {
		return nil
	}
	return running.Stop(ctx)
}

// Answers returns a Child.Ready: it fails unless the answer to a GET of the URL is 200.
func Answers(url string) func(context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return func(ctx context.Context) error {
		_, err := httpget.Get(ctx, client, url)
		return err
	}
}
