package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/output"
)

const (
	// A simulated sidecar has its stream and, briefly, its connection for the certificate.
	filesPerSidecar = 2
	// scaler's own files, connections to the API server and logs of children.
	filesBesides = 500

	// Resident memory of a run, the peaks of all programs together: 1.1 GiB without pods, 1.3 with 12 and 1.7 to 1.9 with 200
	// (docs/results/first-run.md, at a rate and at once). Of what a pod adds, 1 MiB is istiod's, from 200 to 1600
	// pods (docs/results/ladder.md), 2 are the cluster's, which are those of a pod without a sidecar, and 0.2 scaler's. 1000 Services,
	// VirtualServices and ServiceEntries each made 0.7 GiB more in a mesh of 6 pods, mostly of the API server.
	memoryFixed     = 1.1 * (1 << 30)
	memoryPerPod    = 3.2 * (1 << 20)
	memoryPerOther  = 2.0 * (1 << 20)
	memoryPerObject = 250 << 10
	// The same for scaler, KWOK and the recorder only, with all sidecars in scaler.
	memoryFixedElsewhere  = float64(512 << 20)
	memoryPerPodElsewhere = float64(300 << 10)
	// An Envoy and its agent, at 400 pods that are all configured everywhere.
	memoryPerRealSidecar = float64(120 << 20)

	// Refused sidecars connect again, and their old connections linger (TIME_WAIT, a
	// minute).
	outgoingPerSidecar = 8
)

// checkOpenFiles raises the limit of open files as far as sidecars with so many open files each
// need and as it is allowed. Children inherit it.
func checkOpenFiles(pods, each int) Result {
	r := Result{Name: "open files", Status: OK}
	need := openFiles(pods, each)
	allowed, err := AllowFiles(need)
	switch {
	case err != nil:
		return unknown(r, err)
	case allowed >= need:
		r.Detail = fmt.Sprintf("%d allowed, %d needed", allowed, need)
		return r
	}
	r.Status = Failed
	r.Detail = fmt.Sprintf("%d allowed, %d needed for %d sidecars", allowed, need, pods)
	r.Fix = fmt.Sprintf("raise the hard limit, as root: ulimit -Hn %d, or nofile in /etc/security/limits.conf; or run fewer pods", need)
	return r
}

func openFiles(pods, each int) uint64 { return uint64(filesBesides + each*pods) }

// OpenFiles returns how many files a run has open at once.
func (r Requirements) OpenFiles() uint64 { return openFiles(r.Pods, filesPerSidecar) }

// AllowFiles raises the limit of open files to so many, or to what is allowed if that is more or less, and returns it.
func AllowFiles(need uint64) (allowed uint64, err error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	// Deliberately through package syscall: then Go passes the raised limit on to
	// children, instead of the one scaler was started with. It is always raised, because
	// children need files as well.
	wanted := syscall.Rlimit{Cur: limit.Max, Max: limit.Max}
	if limit.Max < need {
		wanted = syscall.Rlimit{Cur: need, Max: need} // for the privileged
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &wanted); err == nil {
		limit = wanted
	}
	return limit.Cur, nil
}

// checkPorts takes the wanted number of ports at once and releases them.
func checkPorts(ports int) Result {
	if ports == 0 {
		ports = DefaultPorts
	}
	r := Result{Name: "ports", Status: OK, Detail: fmt.Sprintf("%d free on 127.0.0.1", ports)}
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.Status = Failed
			r.Detail = fmt.Sprintf("%d free on 127.0.0.1, %d needed: %v", i, ports, err)
			r.Fix = "stop what listens on so many ports, or widen net.ipv4.ip_local_port_range (sysctl)"
			return r
		}
		defer l.Close()
	}
	return r
}

// checkOutgoingPorts checks the range of ports for outgoing connections: all sidecars
// connect to the same address, so the range limits their number.
func checkOutgoingPorts(pods int) Result {
	r := Result{Name: "outgoing ports", Status: OK}
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return unknown(r, err)
	}
	have, err := parsePortRange(string(text))
	if err != nil {
		return unknown(r, err)
	}
	need := outgoingPerSidecar * pods
	r.Detail = fmt.Sprintf("%d in net.ipv4.ip_local_port_range, %d needed", have, need)
	if have < need {
		r.Status = Warning
		if have < filesPerSidecar*pods {
			r.Status = Failed
		}
		r.Fix = `widen it, as root: sysctl -w net.ipv4.ip_local_port_range="1024 65535"`
	}
	return r
}

func parsePortRange(text string) (int, error) {
	f := strings.Fields(text)
	if len(f) != 2 {
		return 0, fmt.Errorf("parsing port range %q: want two numbers", text)
	}
	low, err := strconv.Atoi(f[0])
	if err != nil {
		return 0, fmt.Errorf("parsing port range %q: %w", text, err)
	}
	high, err := strconv.Atoi(f[1])
	if err != nil {
		return 0, fmt.Errorf("parsing port range %q: %w", text, err)
	}
	if low < 0 || high > 65535 || high < low {
		return 0, fmt.Errorf("parsing port range %q: want LOW HIGH", text)
	}
	return high - low + 1, nil
}

func checkMemory(req Requirements) Result {
	r := Result{Name: "memory", Status: OK}
	have, err := FreeMemory()
	if err != nil {
		return unknown(r, err)
	}
	return judgeMemory(r, have, req)
}

func judgeMemory(r Result, have uint64, req Requirements) Result {
	r.Detail = fmt.Sprintf("%s free, about %s needed", output.Bytes(float64(have)), output.Bytes(float64(req.Memory())))
	switch {
	case req.LacksMemory(have):
		r.Status = Failed
	case have < req.Memory():
		r.Status = Warning
	default:
		return r
	}
	r.Fix = "free some memory, or run fewer pods"
	return r
}

// Memory returns about how much memory a run needs, in bytes. What the configuration of many objects adds to each of many
// sidecars is not part of it: it is not known.
func (r Requirements) Memory() uint64 {
	fixed, perPod := memoryFixed, memoryPerPod
	if r.Elsewhere {
		fixed, perPod = memoryFixedElsewhere, memoryPerPodElsewhere
	} else {
		fixed += memoryPerOther*float64(r.OtherPods) + memoryPerObject*float64(r.Objects)
	}
	return uint64(fixed + perPod*float64(r.Pods) + memoryPerRealSidecar*float64(r.RealSidecars))
}

// LacksMemory reports whether a run cannot be done with so much free memory. The need is an estimate, and half of it is not enough.
func (r Requirements) LacksMemory(free uint64) bool { return free < r.Memory()/2 }

// FreeMemory returns how much memory this machine, or the container of this program, has to spare, in bytes.
func FreeMemory() (uint64, error) { return freeMemory("/") }

// freeMemory returns the memory that the kernel calls available, in bytes, or the memory
// that this program's container may still take, if that is less. All files are looked up
// below root.
func freeMemory(root string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return 0, err
	}
	have, err := parseAvailable(string(text))
	if err != nil {
		return 0, err
	}
	for _, f := range [][2]string{
		{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"},
		{"sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, err := readNumber(filepath.Join(root, f[0]))
		if err != nil { // not there, or "max"
			continue
		}
		used, err := readNumber(filepath.Join(root, f[1]))
		if err != nil {
			continue
		}
		// The usage includes the page cache, which the kernel reclaims when needed.
		have = min(have, limit-min(limit, used)+reclaimable(filepath.Dir(filepath.Join(root, f[0]))))
	}
	return have, nil
}

// reclaimable returns the page cache of a control group that can be reclaimed at once, in
// bytes.
func reclaimable(group string) uint64 {
	text, err := os.ReadFile(filepath.Join(group, "memory.stat"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "inactive_file "); ok {
			if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64); err == nil {
				return n
			}
		}
	}
	return 0
}

func parseAvailable(meminfo string) (uint64, error) {
	for line := range strings.Lines(meminfo) {
		value, ok := strings.CutPrefix(line, "MemAvailable:")
		if !ok {
			continue
		}
		kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 54)
		if err != nil {
			return 0, fmt.Errorf("parsing /proc/meminfo line %q: %w", line, err)
		}
		return kb << 10, nil
	}
	return 0, errors.New("parsing /proc/meminfo: no MemAvailable")
}

func readNumber(path string) (uint64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// checkProcessors uses the number of processors that Go may use: it takes account of
// affinity and a container's share.
func checkProcessors() Result {
	return judgeProcessors(runtime.GOMAXPROCS(0))
}

func judgeProcessors(n int) Result {
	r := Result{Name: "processors", Status: OK, Detail: strconv.Itoa(n)}
	if n < 2 {
		r.Status = Warning
		r.Detail += "; with one, everything waits for everything and figures of a rollout are marked as saturated"
		r.Fix = "use a machine with 2 or more"
	}
	return r
}

// checkDir checks the folder, or the nearest existing one above it.
func checkDir(d Dir) Result {
	r := Result{Name: "disk of " + d.Name, Status: OK}
	path, err := filepath.Abs(d.Path)
	if err != nil {
		return unknown(r, err)
	}
	at, info, err := nearest(path)
	if err != nil {
		return unknown(r, err)
	}
	if !info.IsDir() {
		r.Status, r.Detail, r.Fix = Failed, at+" is not a folder", "name another place"
		return r
	}
	if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
		r.Status, r.Detail, r.Fix = Failed, fmt.Sprintf("%s cannot be written: %v", at, err), "name a folder that can be written"
		return r
	}
	have, err := room(at)
	if err != nil {
		return unknown(r, err)
	}
	return judgeRoom(r, d, path, have)
}

// FreeRoom returns how much can be written to a folder, which need not exist yet, in bytes.
func FreeRoom(folder string) (uint64, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return 0, err
	}
	at, _, err := nearest(path)
	if err != nil {
		return 0, err
	}
	return room(at)
}

func room(at string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}

func judgeRoom(r Result, d Dir, path string, have uint64) Result {
	r.Detail = fmt.Sprintf("%s free in %s, about %s needed", output.Bytes(float64(have)), path, output.Bytes(float64(d.Bytes)))
	if have < d.Bytes {
		r.Status = Failed
		r.Fix = "make room, or name a folder on another disk"
	}
	return r
}

func nearest(path string) (string, fs.FileInfo, error) {
	for {
		info, err := os.Stat(path)
		if err == nil || path == filepath.Dir(path) {
			return path, info, err
		}
		// ENOTDIR: there is a file where a folder is wanted; it is reported further up.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return path, nil, err
		}
		path = filepath.Dir(path)
	}
}

// checkGo looks for a Go toolchain.
func checkGo(ctx context.Context) Result {
	r := Result{Name: "go", Status: OK}
	path, err := exec.LookPath("go")
	if err == nil {
		var out []byte
		if out, err = exec.CommandContext(ctx, path, "env", "GOVERSION").Output(); err == nil {
			r.Detail = strings.TrimSpace(string(out)) + ", " + path
			return r
		}
	}
	r.Status = Failed
	r.Detail = fmt.Sprintf("no working Go toolchain: %v", err)
	r.Fix = "install Go 1.26 or later; without it programs cannot be built"
	return r
}

// unknown returns the result of a check that could not be made: a warning, because a run
// may still work.
func unknown(r Result, err error) Result {
	r.Status, r.Detail, r.Fix = Warning, "cannot be determined: "+err.Error(), "none known; a run may still work"
	return r
}
