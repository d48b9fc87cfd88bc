package process

import (
	"context"
	"fmt"
	"os"
	"time"
)

// pauseScript stops the process of its first argument and continues it as many
// seconds later as its second says. It is a program of its own: a process that is
// stopped cannot continue itself.
const pauseScript = `kill -STOP "$1" && sleep "$2"; kill -CONT "$1"`

// PauseSelf stops this program for a while and returns when it goes on. What does
// so is a child of the group, called pause.
func (g *Group) PauseSelf(ctx context.Context, length time.Duration) error {
	helper, err := g.Start(Spec{
		Name: "pause",
		Path: "/bin/sh",
		Args: []string{"-c", pauseScript, "pause", fmt.Sprint(os.Getpid()), fmt.Sprintf("%.3f", length.Seconds())},
	})
	if err != nil {
		return err
	}
	select {
	case <-helper.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
