package cluster

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"scaler.mesh/scaler/internal/process"
)

// Limits of the logs of kept clusters.
const (
	// CapLogsCommand is the hidden command of scaler that enforces them.
	CapLogsCommand = "cap-logs"
	// CapLogsComponent is the name of the log rotation in a cluster's status.
	CapLogsComponent = "log-rotation"
	// LogLimit is the size that a log may have, and its rotated part, in bytes.
	LogLimit = 16 << 20
	// LogInterval is the time between two looks at the logs.
	LogInterval = 10 * time.Second
)

// CapLogs starts a child of the group that limits the logs of the others. It is for a
// group that is about to be kept: nothing else limits its logs then.
func CapLogs(group *process.Group) error {
	logs := group.Logs()
	if len(logs) == 0 {
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("limiting the logs of %s: %w", group.Dir(), err)
	}
	_, err = group.Start(process.Spec{
		Name: CapLogsComponent, Path: program, Priority: process.PriorityLast,
		Args: append([]string{CapLogsCommand, "--limit", strconv.Itoa(LogLimit), "--interval", LogInterval.String(), "--"}, logs...),
	})
	if err != nil {
		return fmt.Errorf("limiting the logs of %s: %w", group.Dir(), err)
	}
	return nil
}
