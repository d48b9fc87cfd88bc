package speed

import (
	"fmt"

	"github.com/prometheus/procfs"
)

// Times are the times of all processors of this machine together since it was started, in seconds.
type Times struct {
	steal, all float64
}

// ReadTimes reads the kernel's counters.
func ReadTimes() (Times, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return Times{}, fmt.Errorf("opening /proc: %w", err)
	}
	stat, err := fs.Stat()
	if err != nil {
		return Times{}, fmt.Errorf("reading /proc/stat: %w", err)
	}
	c := stat.CPUTotal // guests are in User and Nice
	return Times{c.Steal, c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal}, nil
}

// Steal returns the share of the time of all processors from one reading to another that the
// hypervisor gave to others while this machine wanted it.
func Steal(from, to Times) float64 {
	if all := to.all - from.all; all > 0 {
		return max(0, min(1, (to.steal-from.steal)/all))
	}
	return 0
}
