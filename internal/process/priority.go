package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Priority says whether a child has precedence over others of its group when they compete
// for processors. It has an effect in a group with [GroupOptions.Prioritize].
type Priority int

// The priorities of children.
const (
	PriorityOwn   Priority = iota // as scaler itself
	PriorityFirst                 // before scaler
	PriorityLast                  // after scaler
)

// How a group's priorities are enforced.
const (
	MechanismShares = "cpu.shares" // control groups, version 1
	MechanismWeight = "cpu.weight" // control groups, version 2
	MechanismNice   = "nice"       // scheduling priorities of processes
)

// Priorities state how the children of a group are prioritized when they compete for
// processors, in the unit of the mechanism: a share or weight of processor time relative
// to the others, where more is first, or a niceness, where less is first.
type Priorities struct {
	Mechanism        string // "" = none
	First, Own, Last int
	Detail           string // why it is not a better mechanism; "" = there is none
}

// Weights of control groups, in the unit of version 2, and the niceness of children
// relative to scaler's. By weight, each level gets 16 times the processor time of the
// next if both want all of it. By niceness, a program gets 1.25 times the time of one
// that is one step nicer, which is 9 times for the first level and 28 times for the last.
const (
	weightFirst = 2560
	weightOwn   = 160
	weightLast  = 10

	niceFirst = -10
	niceLast  = 15
)

// placement says how a child's priority is enforced.
type placement struct {
	dir  string // control group; "" = scaler's own
	nice int    // 0 = as scaler's
}

// levels enforces the priorities of a group.
type levels struct {
	Priorities
	groups *weightGroups // nil without control groups
}

// newLevels uses the best mechanism that is permitted: control groups, then niceness.
// limitsMemory means that a child will have a MemoryLimit: a process is in only one
// control group of version 2, so its weight cannot be set by another one. planned is
// called with the control groups before they are made.
func newLevels(name string, limitsMemory bool, planned func(dirs []string) error) (*levels, error) {
	groups, err := newWeightGroups(name, limitsMemory, planned)
	if err == nil {
		return &levels{groups.priorities(), groups}, nil
	}
	var saving *plannedError
	if errors.As(err, &saving) {
		return nil, err
	}
	l := &levels{Priorities: nicePriorities()}
	l.Detail = err.Error()
	return l, nil
}

// placement returns the placement of a child with this priority.
func (l *levels) placement(p Priority) placement {
	if l == nil || p == PriorityOwn {
		return placement{}
	}
	if l.groups != nil {
		return placement{dir: l.groups.dir(p)}
	}
	if p == PriorityFirst {
		return placement{nice: l.First - l.Own}
	}
	return placement{nice: l.Last - l.Own}
}

// nicePriorities returns the niceness values that this user may set. Only a privileged
// user may give a process precedence over scaler.
func nicePriorities() Priorities {
	own := ownNice()
	p := Priorities{Mechanism: MechanismNice, First: own, Own: own, Last: min(own+niceLast, 19)}
	if first := max(own+niceFirst, -20); mayNice(first) {
		p.First = first
	}
	return p
}

// ownNice returns the niceness of the calling thread; 0 if it is not known.
func ownNice() int {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 less the niceness
	if err != nil {
		return 0
	}
	return 20 - raw
}

// mayNice reports whether this user may set that niceness. It tries this on a thread that
// ends afterwards.
func mayNice(nice int) bool {
	may := make(chan bool)
	go ownThread(func() { may <- unix.Setpriority(unix.PRIO_PROCESS, 0, nice) == nil })
	return <-may
}

// setNice changes the niceness of the calling thread, and of what it starts, relative to
// its current one.
func setNice(relative int) error {
	if relative == 0 {
		return nil
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, ownNice()+relative); err != nil {
		return fmt.Errorf("setting its niceness: %w", err)
	}
	return nil
}

// leave moves scaler back to its original control group and removes the group's own,
// which must contain no process but scaler.
func (l *levels) leave() error {
	if l == nil || l.groups == nil {
		return nil
	}
	return l.groups.remove()
}

// abandon moves scaler back and leaves the control groups of children that live on.
func (l *levels) abandon() error {
	if l == nil || l.groups == nil {
		return nil
	}
	if err := l.groups.moveBack(); err != nil {
		return err
	}
	_ = os.Remove(l.groups.own) // that of scaler, unless a child is in it
	return nil
}
