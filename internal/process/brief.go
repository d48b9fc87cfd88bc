package process

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/linux"
)

// Run runs a command of [exec.CommandContext] that ends by itself, as one that prints its version, and returns when it has
// ended. It needs no [Group]: the kernel kills the program when this one ends in any way, and its process group is killed
// when the command's context is done. Ctrl-C in a terminal reaches only scaler.
func Run(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	linux.EndWithParent(cmd.SysProcAttr, unix.SIGKILL)
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second // for the output of a descendant that left the process group
	runtime.LockOSThread()      // the signal comes when the thread ends that started the child
	defer runtime.UnlockOSThread()
	return cmd.Run()
}
