package measure

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a thread waits up to k-1 times its own processor time is no delay, and what other
// threads use counts for nothing.
func TestThreadDelays(t *testing.T) {
	const second = time.Second
	busyAndStarved := map[int]threadTime{1: {ran: second}, 2: {ran: second / 100, waited: 9 * second / 10}}
	eight := map[int]threadTime{}
	for id := range 8 {
		eight[id] = threadTime{ran: second / 4, waited: 3 * second / 4}
	}
	for _, test := range []struct {
		name         string
		slowdown     float64
		readings     []map[int]threadTime
		waited, late time.Duration
	}{
		{"one starved next to a busy one", 4, []map[int]threadTime{busyAndStarved}, 900 * time.Millisecond, 870 * time.Millisecond},
		{"the same in real time", 1, []map[int]threadTime{busyAndStarved}, 900 * time.Millisecond, 900 * time.Millisecond},
		{"as no factor", 0, []map[int]threadTime{busyAndStarved}, 900 * time.Millisecond, 900 * time.Millisecond},
		{"eight on two processors", 4, []map[int]threadTime{eight}, 6 * second, 0},
		{"eight on two processors, too small a factor", 2, []map[int]threadTime{eight}, 6 * second, 4 * second},
		{"since the reading before", 4, []map[int]threadTime{{1: {ran: 10 * second}}, {1: {ran: 10 * second, waited: second}}}, second, second},
		{"another thread with the id of an ended one", 2, []map[int]threadTime{{1: {ran: 10 * second, waited: second}}, {1: {ran: second, waited: 2 * second}}}, 3 * second, second},
	} {
		d := threadDelays{slowdown: test.slowdown}
		for _, r := range test.readings {
			d.add(r)
		}
		if d.waited != test.waited || d.late != test.late {
			t.Errorf("%s: waited %s, late %s, want %s and %s", test.name, d.waited, d.late, test.waited, test.late)
		}
	}
}

// A thread that is kept from the only processor it may use is late, whatever another
// thread of its process, which has that processor, uses meanwhile.
func TestStarvedThreadNextToABusyOne(t *testing.T) {
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	for cpu := range 1024 {
		if allowed.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4)) // or the runtime lets one of the two wait, and not the kernel
	var stop atomic.Bool
	var started, spun, ended sync.WaitGroup
	begin, end := make(chan struct{}), make(chan struct{})
	// until gets the processor time that the thread has used since the phase began: a thread
	// of the runtime has used some before the test got it.
	spin := func(nice int, until func(used time.Duration) bool) {
		started.Add(1)
		spun.Add(1)
		ended.Go(func() {
			runtime.LockOSThread() // for good, so that the thread ends with the goroutine
			if err := unix.SchedSetaffinity(0, &one); err != nil {
				t.Error(err)
			}
			if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice); err != nil {
				t.Error(err)
			}
			started.Done()
			<-begin
			before := threadProcessorTime()
			for !until(threadProcessorTime() - before) {
			}
			spun.Done()
			<-end
		})
	}
	spin(0, func(time.Duration) bool { return stop.Load() })
	// The kernel adds what a thread waited when it runs again. So it is the late one that ends the phase, while it runs.
	spin(14, func(used time.Duration) bool {
		if used > 30*time.Millisecond {
			stop.Store(true)
		}
		return stop.Load()
	})
	started.Wait()
	s := NewSampler(time.Minute)
	s.SlowDown(4)
	if err := s.Watch("self", Self()); err != nil {
		t.Fatal(err)
	}
	from := edge(t, s)
	close(begin)
	spun.Wait()
	to := edge(t, s)
	close(end)
	ended.Wait()
	u, err := s.Figures("self", from, to)
	if err != nil {
		t.Fatal(err)
	}
	if u.Saturation == nil {
		t.Skip("the kernel keeps no run delays")
	}
	if *u.Saturation < 0.5 {
		t.Errorf("saturation %.2f, want more than half: one thread waited for the other", *u.Saturation)
	}
}

// threadProcessorTime returns the processor time that the calling thread has used.
func threadProcessorTime() time.Duration {
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		panic(err) // an error that the test only notes would let the threads spin for ever
	}
	return time.Duration(used.Nano())
}
