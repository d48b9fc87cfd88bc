package place

import (
	"context"
	"errors"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// cleared is an environment of which only the deletion is called.
type cleared struct {
	Environment
	err error
	run string // that was deleted
}

func (c *cleared) Delete(ctx context.Context, run string) (Deleted, error) {
	c.run = run
	if _, limited := ctx.Deadline(); !limited {
		return nil, errors.New("no deadline")
	}
	return Deleted{"pods": 2, "services": 1}, c.err
}

func TestDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		kept   bool
		err    error
		run    string
		events []record.ObjectsDeleted // seconds left out
	}{
		"all":           {run: "a", events: []record.ObjectsDeleted{{Deleted: 3}}},
		"kept":          {kept: true},
		"no API server": {err: ErrNoAPIServer, run: "a"},
		"not all":       {err: errors.New("too late"), run: "a", events: []record.ObjectsDeleted{{Deleted: 3, Error: "too late"}}},
	} {
		t.Run(name, func(t *testing.T) {
			env := &cleared{err: c.err}
			var events []record.ObjectsDeleted
			var said string
			d := Deletion{
				Env: env, Run: "a", Kept: func() bool { return c.kept }, Say: func(line string) { said = line },
				Event: func(e record.Event) {
					deleted := e.(record.ObjectsDeleted)
					deleted.Seconds = 0
					events = append(events, deleted)
				},
			}
			if err := d.Undo(t.Context()); err != nil {
				t.Error(err)
			}
			if env.run != c.run {
				t.Errorf("deleted the objects of %q, want %q", env.run, c.run)
			}
			if len(events) != len(c.events) || len(events) == 1 && events[0] != c.events[0] {
				t.Errorf("events %v, want %v", events, c.events)
			}
			if len(events) == 1 && !strings.HasPrefix(said, events[0].Error) {
				t.Errorf("reported %q", said)
			}
		})
	}
	if err := (Deletion{Env: &cleared{err: errors.New("too late")}, Run: "a"}).Undo(t.Context()); err != nil {
		t.Error(err)
	}
}
