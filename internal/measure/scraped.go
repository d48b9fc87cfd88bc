package measure

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/httpget"
)

const (
	// scrapeTimeout limits a request of a Source that reads a program's own metrics.
	scrapeTimeout = 3 * time.Second
	// retryTimeout limits the time in which requests that time out are repeated. On a busy machine the API server and the kubelet, which
	// forward the port of a pod, can take several seconds to answer. No processor time is lost: the counters of the next reading include it.
	retryTimeout = 20 * time.Second
	// sameStart bounds the difference of two values of process_start_time_seconds in one life.
	sameStart = time.Second
)

// OfMetrics reads what a Go program uses from its own metrics, at a URL in the text format of
// Prometheus: process_cpu_seconds_total, which counts in hundredths of a second, and
// process_resident_memory_bytes. Run delays, high-water marks and working sets are not known
// of it. The life that it reads is over when process_start_time_seconds is another. A request
// that fails is repeated once, and one that times out for up to 20 s; all end with ctx. name is part of its ID.
func OfMetrics(ctx context.Context, name, url string) Source {
	client := &http.Client{Timeout: scrapeTimeout}
	return &scraped{name: name, url: url, get: func() ([]byte, error) { return httpget.Get(ctx, client, url) }}
}

type scraped struct {
	// fixed at the start
	name, url string
	get       func() ([]byte, error)

	begin float64   // process_start_time_seconds; 0 before the first reading
	first time.Time // of the readings
}

// ID implements Source.
func (s *scraped) ID() string { return s.name + " at " + s.url }

// Started implements Source. It is by the clock of the program's machine, and no later than
// the first reading by this machine's.
func (s *scraped) Started() (time.Time, error) {
	if s.begin == 0 {
		if _, err := s.Read(); err != nil {
			return time.Time{}, err
		}
	}
	started := time.UnixMilli(int64(s.begin * 1000))
	if started.After(s.first) {
		return s.first, nil
	}
	return started, nil
}

// Remote implements Remote.
func (s *scraped) Remote() bool { return true }

// ExitCPU implements Source: nobody accounts for what another machine's process used.
func (s *scraped) ExitCPU() (time.Duration, bool) { return 0, false }

// Read implements Source. The reading is taken as of the middle of the request.
func (s *scraped) Read() (Reading, error) {
	reading, begin, err := s.scrape()
	if err != nil {
		began := time.Now()
		reading, begin, err = s.scrape()
		for httpget.TimedOut(err) && time.Since(began) < retryTimeout {
			reading, begin, err = s.scrape()
		}
	}
	if err != nil {
		return Reading{}, err
	}
	if s.begin == 0 {
		s.begin, s.first = begin, reading.At
	}
	if math.Abs(begin-s.begin) > sameStart.Seconds() {
		return Reading{}, fmt.Errorf("%s was started again: %w", s.name, ErrEnded)
	}
	return reading, nil
}

func (s *scraped) scrape() (Reading, float64, error) {
	before := time.Now()
	body, err := s.get()
	if err != nil {
		return Reading{}, 0, fmt.Errorf("reading the metrics of %s: %w", s.name, err)
	}
	at := before.Add(time.Since(before) / 2)
	values := ownUsage(body)
	cpu, hasCPU := values["process_cpu_seconds_total"]
	resident, hasMemory := values["process_resident_memory_bytes"]
	begin := values["process_start_time_seconds"]
	if !hasCPU || !hasMemory || begin == 0 {
		return Reading{}, 0, errors.New("reading the metrics of " + s.name + " at " + s.url + ": want process_cpu_seconds_total, process_resident_memory_bytes and process_start_time_seconds among them")
	}
	return Reading{
		At: at, CPU: time.Duration(cpu * float64(time.Second)), Waited: -1,
		Resident: int64(resident), Peak: int64(resident),
		Threads: int(values["go_threads"]), Files: int(values["process_open_fds"]),
	}, begin, nil
}

// ownUsage returns the metrics without labels that a process has of its own usage, by name.
func ownUsage(text []byte) map[string]float64 {
	values := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, rest, found := strings.Cut(lines.Text(), " ")
		if !found || !strings.HasPrefix(name, "process_") && name != "go_threads" || strings.Contains(name, "{") {
			continue
		}
		number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if value, err := strconv.ParseFloat(number, 64); err == nil {
			values[name] = value
		}
	}
	return values
}
