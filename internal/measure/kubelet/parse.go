package kubelet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// sample is a reading of one container, whose node is not known.
type sample struct {
	Container
	Reading
	id      string // of its control group
	started time.Time
}

// Metrics of cAdvisor that are read.
const (
	cpuMetric        = "container_cpu_usage_seconds_total"
	rssMetric        = "container_memory_rss"
	mappedMetric     = "container_memory_mapped_file"
	workingSetMetric = "container_memory_working_set_bytes"
	startMetric      = "container_start_time_seconds"
)

// parse reads the metrics of a kubelet's cAdvisor. The container that holds a pod's namespaces, control groups of
// whole pods and of the system are left out. A container without processor time or memory is left out, too.
func parse(text []byte) ([]sample, error) {
	byID := map[string]*sample{}
	var order []string
	has := map[string]map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	any := false
	for lines.Scan() {
		line := lines.Text()
		name, rest, labelled := strings.Cut(line, "{")
		any = any || strings.HasPrefix(name, "container_")
		switch name {
		case cpuMetric, rssMetric, mappedMetric, workingSetMetric, startMetric:
		default:
			continue
		}
		if !labelled {
			continue
		}
		labels, rest, err := readLabels(rest)
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", line, err)
		}
		if c := labels["container"]; c == "" || c == "POD" || name == cpuMetric && labels["cpu"] != "" && labels["cpu"] != "total" {
			continue
		}
		number, stamp, _ := strings.Cut(strings.TrimSpace(rest), " ")
		value, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", line, err)
		}
		id := labels["id"]
		s := byID[id]
		if s == nil {
			s = &sample{Container: Container{Namespace: labels["namespace"], Pod: labels["pod"], Name: labels["container"]}, id: id}
			byID[id], has[id] = s, map[string]bool{}
			order = append(order, id)
		}
		has[id][name] = true
		switch name {
		case cpuMetric:
			s.CPUSeconds = value
			milliseconds, err := strconv.ParseInt(stamp, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("reading %q: want a time in milliseconds after the value", line)
			}
			s.At = time.UnixMilli(milliseconds)
		case rssMetric, mappedMetric:
			s.Resident += int64(value)
		case workingSetMetric:
			s.WorkingSet = int64(value)
		case startMetric:
			s.started = time.UnixMilli(int64(value * 1000))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if !any {
		return nil, errors.New("reading the metrics of cAdvisor: want some whose names begin with container_")
	}
	var all []sample
	for _, id := range order {
		if h := has[id]; h[cpuMetric] && h[rssMetric] && h[workingSetMetric] && h[startMetric] {
			all = append(all, *byID[id])
		}
	}
	return all, nil
}

// readLabels reads NAME="VALUE", ... up to the closing brace, and returns what follows that.
func readLabels(text string) (labels map[string]string, rest string, err error) {
	labels = map[string]string{}
	for {
		text = strings.TrimLeft(text, ", ")
		if after, closed := strings.CutPrefix(text, "}"); closed {
			return labels, after, nil
		}
		name, value, found := strings.Cut(text, "=")
		if !found {
			return nil, "", errors.New(`want labels as in name="value"`)
		}
		quoted, err := strconv.QuotedPrefix(value)
		if err != nil {
			return nil, "", fmt.Errorf("reading label %s: %w", name, err)
		}
		if labels[name], err = strconv.Unquote(quoted); err != nil {
			return nil, "", fmt.Errorf("reading label %s: %w", name, err)
		}
		text = value[len(quoted):]
	}
}
