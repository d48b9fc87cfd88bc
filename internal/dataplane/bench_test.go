package dataplane

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkOpen20000 sends b.N requests on a schedule of 20,000 a second to a
// server in a process of its own, and itself keeps to one processor. On schedule
// it takes 50,000 ns/op; what it could do on that processor is the figure CPU-µs/op,
// which may not exceed 50. Run it with -benchtime=200000x.
func BenchmarkOpen20000(b *testing.B) {
	const rate = 20_000
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), "DATAPLANE_SERVE=127.0.0.1:0")
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	defer oneProcessor(b)()
	l := OpenLoad{Load: Load{Target: Target{Addresses: []string{strings.TrimSpace(address)}}, Warmup: 100 * time.Millisecond}, Rate: rate}
	l.Duration = max(time.Duration(b.N)*time.Second/rate, time.Second/rate)
	b.ResetTimer()
	begun := cpuTime(b)
	r, err := Open(b.Context(), l)
	used := cpuTime(b) - begun
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
	sent := r.Requests + int64(l.Warmup.Seconds()*rate)
	b.ReportMetric(float64(used.Microseconds())/float64(sent), "CPU-µs/op")
	b.ReportMetric(float64(r.Answered)/r.End.Sub(r.Start).Seconds(), "answers/s")
	late, latency := r.Lateness.Summary(), r.Latency.Summary()
	if late.P50 == nil || latency.P50 == nil {
		return // the first run, of one request, may end before it is answered
	}
	b.ReportMetric(*late.P50*1e6, "p50-late-µs")
	b.ReportMetric(*late.P99*1e6, "p99-late-µs")
	b.ReportMetric(*latency.P50*1e6, "p50-µs")
	b.ReportMetric(float64(r.Failed()+r.NotSent), "failed")
}

// BenchmarkReadResponse compares the parser of the generator with that of net/http on
// an answer of the echo server.
func BenchmarkReadResponse(b *testing.B) {
	const text = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Sun, 22 Nov 2026 08:00:00 GMT\r\nContent-Length: 2\r\n\r\nok"
	request := &http.Request{Method: http.MethodGet}
	for _, c := range []struct {
		name string
		read func(*bufio.Reader) error
	}{
		{"dataplane", func(r *bufio.Reader) error {
			_, err := readResponse(r)
			return err
		}},
		{"net/http", func(r *bufio.Reader) error {
			answer, err := http.ReadResponse(r, request)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, answer.Body)
			return errors.Join(err, answer.Body.Close())
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			from := strings.NewReader(text)
			r := bufio.NewReaderSize(from, lineLimit)
			begun := cpuTime(b)
			for b.Loop() {
				from.Reset(text)
				if err := c.read(r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpuTime(b)-begun).Nanoseconds())/float64(b.N), "CPU-ns/op")
		})
	}
}

// oneProcessor keeps the program to one processor, and gives what takes that
// back.
func oneProcessor(b *testing.B) func() {
	b.Helper()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		b.Fatal(err)
	}
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	bind := func(set *unix.CPUSet) {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			b.Fatal(err)
		}
		for _, task := range tasks {
			tid, _ := strconv.Atoi(task.Name())
			_ = unix.SchedSetaffinity(tid, set) // fails only for a thread that has ended
		}
	}
	bind(&one)
	procs := runtime.GOMAXPROCS(1)
	return func() {
		bind(&all)
		runtime.GOMAXPROCS(procs)
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
