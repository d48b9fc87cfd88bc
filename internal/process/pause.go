package process

import (
	"context"
	"fmt"
	"os"
	"time"
)

// pauseScript stops the process given by its first argument and continues it after the
// number of seconds given by its second. It is a separate program because a stopped
// process cannot continue itself.
const pauseScript = `kill -STOP "$1" && sleep "$2"; kill -CONT "$1"`

// PauseSelf stops this program for a time and returns when it continues. The group's
// child pause does that.
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
