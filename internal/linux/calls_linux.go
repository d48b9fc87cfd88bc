package linux

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Flags and clocks of system calls that others have, too.
const (
	ClockBoot   = unix.CLOCK_BOOTTIME // of clock_gettime(2)
	CloseOnExec = unix.SOCK_CLOEXEC   // of socket(2)
	NoExec      = unix.ST_NOEXEC      // of statfs(2)
)

// EndWithParent makes the kernel send a signal to a child when the thread that started it ends.
func EndWithParent(child *syscall.SysProcAttr, signal syscall.Signal) { child.Pdeathsig = signal }

// EndSelfWithParent makes the kernel send a signal to this program when its parent ends.
func EndSelfWithParent(signal syscall.Signal) error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(signal), 0, 0, 0)
}

// AdoptOrphans makes processes that outlive their parent, which descends from this program, its children.
func AdoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// GrantReading gives a child the capability to read what its user may not.
func GrantReading(child *syscall.SysProcAttr) {
	child.AmbientCaps = []uintptr{unix.CAP_DAC_READ_SEARCH}
}

// AwaitExit returns when a child has ended, without reaping it.
func AwaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// OpenProcess opens a process, which a signal to the file descriptor then reaches or nothing does.
func OpenProcess(pid int) (fd int, err error) { return unix.PidfdOpen(pid, 0) }

// SignalProcess sends a signal to an open process, or checks with 0 that it is there.
func SignalProcess(fd int, signal syscall.Signal) error {
	return unix.PidfdSendSignal(fd, signal, nil, 0)
}

// ThreadID returns the id of the calling thread.
func ThreadID() int { return unix.Gettid() }

// NewNetwork moves the calling thread into a new network namespace.
func NewNetwork() error { return unix.Unshare(unix.CLONE_NEWNET) }

// EnterNetwork moves the calling thread into the network namespace of a file descriptor.
func EnterNetwork(fd int) error { return unix.Setns(fd, unix.CLONE_NEWNET) }

// RaiseLoopback brings up the loopback interface of the thread's network namespace.
func RaiseLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// NewTimer makes a timer, a file that can be read when it has expired.
func NewTimer() (fd int, err error) {
	return unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
}

// SetTimer makes a timer expire once after d, which is above 0.
func SetTimer(fd int, d time.Duration) error {
	return unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
}

// NewWatcher makes an inotify instance.
func NewWatcher() (fd int, err error) { return unix.InotifyInit1(unix.IN_CLOEXEC) }

// Watch makes an inotify instance watch what is created in a folder.
func Watch(watcher int, folder string) error {
	_, err := unix.InotifyAddWatch(watcher, folder, unix.IN_CREATE)
	return err
}

// Changed returns the device of a file and the time of its last change, which no program can set.
func Changed(file *syscall.Stat_t) (device uint64, at time.Time) {
	return file.Dev, time.Unix(file.Ctim.Unix())
}

// MemoryBytes returns the size of this machine's memory; 0 where it is not known.
func MemoryBytes() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// Processors returns the processors that this program may use; nil where they are not known.
func Processors() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var all []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	return all
}
