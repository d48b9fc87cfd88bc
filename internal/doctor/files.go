package doctor

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/linux"
)

// inotifyNeeded is the number of inotify instances of a run's programs: the API server,
// the controller-manager and the control plane watch some files. Each has a few watches.
const inotifyNeeded = 16

// inotifyPatience is the time for which a check that failed is repeated. The kernel frees closed instances some milliseconds later, and counts
// them until then.
const inotifyPatience = 500 * time.Millisecond

// checkInotify takes as many inotify instances as a run needs, with a watch each, and
// releases them.
func checkInotify(instances int) Result {
	next := time.NewTicker(inotifyPatience / 10)
	defer next.Stop()
	for begin := time.Now(); ; <-next.C {
		if r := takeInotify(instances); r.Status == OK || time.Since(begin) >= inotifyPatience {
			return r
		}
	}
}

func takeInotify(instances int) Result {
	r := Result{Name: "inotify", Status: OK}
	for n := range instances {
		fd, err := linux.NewWatcher()
		if err != nil {
			r.Status = Failed
			r.Detail = fmt.Sprintf("%d of %d instances can be had: %v", n, instances, err)
			r.Fix = "end programs that watch many files, or as root: sysctl fs.inotify.max_user_instances=512"
			return r
		}
		defer unix.Close(fd)
		if err := linux.Watch(fd, os.TempDir()); err != nil {
			r.Status = Failed
			r.Detail = fmt.Sprintf("%d of %d watches can be had: %v", n, instances, err)
			r.Fix = "end programs that watch many files, or as root: sysctl fs.inotify.max_user_watches=65536"
			return r
		}
	}
	r.Detail = fmt.Sprintf("%d instances and watches can be had, as many as needed", instances)
	return r
}

// noexec reports whether a file is on a file system from which nothing can be executed.
func noexec(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&linux.NoExec != 0
}
