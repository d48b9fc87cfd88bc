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
	defer brief(cmd)()
	return cmd.Run()
}

// Output runs a command as Run does, and returns what [exec.Cmd.Output] does.
func Output(cmd *exec.Cmd) ([]byte, error) {
	defer brief(cmd)()
	return cmd.Output()
}

// CombinedOutput runs a command as Run does, and returns what [exec.Cmd.CombinedOutput] does.
func CombinedOutput(cmd *exec.Cmd) ([]byte, error) {
	defer brief(cmd)()
	return cmd.CombinedOutput()
}

// brief prepares a command that ends by itself for its start by the calling goroutine, which calls done when it has ended.
func brief(cmd *exec.Cmd) (done func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	linux.EndWithParent(cmd.SysProcAttr, unix.SIGKILL)
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second // for the output of a descendant that left the process group
	runtime.LockOSThread()      // the signal comes when the thread ends that started the child
	return runtime.UnlockOSThread
}
