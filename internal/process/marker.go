package process

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/boundedfile"
)

const (
	// stateName is the file in a group's folder that identifies its owner.
	stateName = "processes.json"
	// stateMagic cannot be in a file of this name by accident.
	stateMagic = "scaler process group 8f0b6f6e-2d5c-4f0e-9a53-61c1f6a6b7de"
	// stateVersion changes when a program that knows only another version could do harm.
	stateVersion = 1
	// maxState limits the bytes read: enough for some 100,000 children.
	maxState = 16 << 20
)

func statePath(dir string) string { return filepath.Join(dir, stateName) }

// stateFile is the content of the file stateName.
type stateFile struct {
	Magic   string `json:"magic"`
	Version int    `json:"version"`
	// ID is random. All the group's processes have it in their environment.
	ID  string `json:"id"`
	UID int    `json:"uid"` // the owner's effective user id
	// Lock is the inode of ownerLock: a copy of the folder has another.
	Lock uint64 `json:"lock"`
	location
	Owner    identity     `json:"owner"`
	Kept     bool         `json:"kept"`
	Children []childState `json:"children"`
	// ControlGroups are the folders of the control groups that enforce priorities,
	// parents before children. They may not exist yet.
	ControlGroups []string `json:"controlGroups,omitempty"`
}

// location says where the process ids are valid.
type location struct {
	Host    string `json:"host"`    // name
	Machine string `json:"machine"` // machine-id(5), "" where there is none
	Boot    string `json:"boot"`    // of its kernel; containers have their host's
	// Namespace is the process id namespace, as /proc/self/ns/pid names it.
	Namespace string `json:"pidNamespace"`
}

// initialNamespace is the namespace that sees the processes of all others
// (PROC_PID_INIT_INO).
const initialNamespace = "pid:[4026531836]"

func here() (location, error) {
	boot, err := bootID()
	if err != nil {
		return location{}, err
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return location{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		return location{}, err
	}
	machine, _ := os.ReadFile("/etc/machine-id") // not in every container
	return location{host, strings.TrimSpace(string(machine)), boot, namespace}, nil
}

// sameIDs reports whether the process ids of both locations refer to the same processes.
func (p location) sameIDs(other location) bool {
	return p.Boot == other.Boot && p.Namespace == other.Namespace
}

// sees reports whether a process at p can know the fate of processes at there: they are
// among those visible at p, or their machine has been restarted since.
func (p location) sees(there location) bool {
	if p.Boot == there.Boot {
		return p.Namespace == there.Namespace || p.Namespace == initialNamespace
	}
	return p.Host == there.Host && p.Machine == there.Machine && p.Machine != ""
}

// identity distinguishes a process from a later one with the same id.
type identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // see startTime
}

type childState struct {
	Name string `json:"name"`
	identity
	// MemoryGroup and QuotaGroup are the folders of its control groups, "" where it has none.
	MemoryGroup string `json:"memoryGroup,omitempty"`
	QuotaGroup  string `json:"quotaGroup,omitempty"`
}

// newStateFile returns the state of a group that this process owns and locks.
func newStateFile(owner *lock) (stateFile, error) {
	at, err := here()
	if err != nil {
		return stateFile{}, err
	}
	start, err := startTime(os.Getpid())
	if err != nil {
		return stateFile{}, err
	}
	inode, err := owner.inode()
	if err != nil {
		return stateFile{}, err
	}
	id := make([]byte, 16)
	rand.Read(id) // never fails
	return stateFile{
		Magic: stateMagic, Version: stateVersion, ID: hex.EncodeToString(id), UID: os.Geteuid(), Lock: inode,
		location: at, Owner: identity{PID: os.Getpid(), Start: start},
	}, nil
}

// save creates or replaces the group's file atomically.
func (g *Group) save() error {
	data, err := json.MarshalIndent(g.state, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(g.dir, stateName+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), statePath(g.dir))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// ForeignError reports that a folder is not a process group of this user and this
// version. Nothing in it is changed.
type ForeignError struct {
	Dir    string
	Reason string
}

// Error returns one line.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s: %s; left alone", e.Dir, e.Reason)
}

// readState reads and checks the state of the group in dir. The error is fs.ErrNotExist
// if there is none, and a [ForeignError] if it is not one of this user and version.
func readState(dir string) (stateFile, error) {
	foreign := func(format string, args ...any) (stateFile, error) {
		return stateFile{}, &ForeignError{dir, fmt.Sprintf(format, args...)}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return stateFile{}, err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if _, err := os.Stat(statePath(dir)); err != nil {
			return stateFile{}, fs.ErrNotExist
		}
		return foreign("it is a symbolic link")
	case !info.IsDir():
		return stateFile{}, fs.ErrNotExist
	}
	f, err := os.OpenFile(statePath(dir), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, unix.ELOOP):
		return foreign("its %s is a symbolic link", stateName)
	case errors.Is(err, fs.ErrPermission):
		return foreign("its %s is not this user's", stateName)
	case err != nil:
		return stateFile{}, err
	}
	defer f.Close()
	for _, of := range []struct {
		what string
		fd   func(*unix.Stat_t) error
	}{
		{"it", func(s *unix.Stat_t) error { return unix.Lstat(dir, s) }},
		{"its " + stateName, func(s *unix.Stat_t) error { return unix.Fstat(int(f.Fd()), s) }},
	} {
		var stat unix.Stat_t
		if err := of.fd(&stat); err != nil {
			return stateFile{}, err
		}
		if int(stat.Uid) != os.Geteuid() {
			return foreign("%s belongs to user %d", of.what, stat.Uid)
		}
	}
	data, err := boundedfile.ReadOpen(f, maxState)
	switch {
	case errors.Is(err, boundedfile.ErrIrregular):
		return foreign("its %s is no regular file", stateName)
	case errors.Is(err, boundedfile.ErrTooLarge):
		return foreign("its %s is larger than %d MiB", stateName, maxState>>20)
	case err != nil:
		return stateFile{}, err
	}
	var s stateFile
	switch err := json.Unmarshal(data, &s); {
	case err != nil:
		return foreign("its %s is no process group's: %v", stateName, err)
	case s.Magic != stateMagic:
		return foreign("its %s is no process group's, or that of a scaler before version 1 of the file", stateName)
	case s.Version != stateVersion:
		return foreign("its %s has version %d, and this scaler knows version %d", stateName, s.Version, stateVersion)
	case s.UID != os.Geteuid():
		return foreign("its processes are those of user %d", s.UID)
	case len(s.ID) != 32:
		return foreign("its %s has no group id", stateName)
	}
	if dir := s.foreignGroup(); dir != "" {
		return foreign("its %s names %q as a control group, which is none of scaler's", stateName, dir)
	}
	return s, nil
}

// foreignGroup returns a control group in the state file that is not one of scaler's; ""
// if there is none.
func (s stateFile) foreignGroup() string {
	for _, dir := range s.ControlGroups {
		if !isOwnGroup(dir) {
			return dir
		}
	}
	for _, c := range s.Children {
		for _, dir := range []string{c.MemoryGroup, c.QuotaGroup} {
			if dir != "" && !isOwnGroup(dir) {
				return dir
			}
		}
	}
	return ""
}
