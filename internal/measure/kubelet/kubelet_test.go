package kubelet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var epoch = time.UnixMilli(1_800_000_000_000)

func at(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

// istiod is one of a control plane's containers.
var istiod = Container{Node: "worker", Namespace: "istio-system", Pod: "istiod-1", Name: "discovery"}

// scrape returns a kubelet's metrics of istiod, with lines that must be left out.
func scrape(id string, started, read, cpu float64, rss int) string {
	labels := fmt.Sprintf(`container="discovery",id="/kubepods/%s",image="a\"b,c}",name="x",namespace="istio-system",pod="istiod-1"`, id)
	pause := `container="",id="/kubepods/pod",image="",name="",namespace="istio-system",pod="istiod-1"`
	stamp := at(read).UnixMilli()
	return strings.Join([]string{
		"# HELP container_cpu_usage_seconds_total Cumulative cpu time consumed in seconds.",
		"# TYPE container_cpu_usage_seconds_total counter",
		fmt.Sprintf(`container_cpu_usage_seconds_total{%s,cpu="total"} 99 %d`, pause, stamp),
		fmt.Sprintf(`container_cpu_usage_seconds_total{%s,cpu="total"} %g %d`, labels, cpu, stamp),
		fmt.Sprintf(`container_memory_mapped_file{%s} 50 %d`, labels, stamp),
		fmt.Sprintf(`container_memory_rss{%s} %d %d`, labels, rss, stamp),
		fmt.Sprintf(`container_memory_working_set_bytes{%s} 700 %d`, labels, stamp),
		fmt.Sprintf(`container_start_time_seconds{%s} %.3f`, labels, float64(at(started).UnixMilli())/1000),
		`machine_cpu_cores{boot_id="x"} 2`, "",
	}, "\n")
}

func TestParse(t *testing.T) {
	all, err := parse([]byte(scrape("one", -100, 3, 12.5, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	want := sample{
		Container: Container{Namespace: "istio-system", Pod: "istiod-1", Name: "discovery"}, id: "/kubepods/one", started: at(-100),
		Reading: Reading{At: at(3), CPUSeconds: 12.5, Resident: 1050, WorkingSet: 700},
	}
	if len(all) != 1 || all[0] != want {
		t.Errorf("got %+v, want %+v", all, want)
	}
	for _, wrong := range []string{"", "<html>", `container_memory_rss{container="a} 1 2`, `container_cpu_usage_seconds_total{container="a",id="b"} 1`} {
		if all, err := parse([]byte(wrong)); err == nil {
			t.Errorf("parse(%q) = %v, want an error", wrong, all)
		}
	}
}

func TestFigures(t *testing.T) {
	steady := []*life{{id: "a", started: at(-100), readings: []Reading{
		{at(0), 10, 100, 200}, {at(10), 15, 100, 200}, {at(20), 25, 300, 400}, {at(30), 26, 300, 400},
	}}}
	born := []*life{{id: "a", started: at(4), readings: []Reading{{at(14), 5, 100, 100}, {at(24), 5, 100, 100}}}}
	again := []*life{
		{id: "a", started: at(-10), ended: true, readings: []Reading{{at(0), 1, 100, 100}, {at(10), 2, 100, 100}}},
		{id: "b", started: at(12), readings: []Reading{{at(20), 4, 50, 50}}},
	}
	for _, test := range []struct {
		name     string
		lives    []*life
		from, to float64
		want     Usage
	}{
		{"at readings", steady, 10, 20, Usage{MemoryKnown: true, CPUSeconds: 10, CPUSecondsLow: 10, CPUSecondsHigh: 10, Resident: Memory{200, 300, 300}, WorkingSet: Memory{300, 400, 400}, Readings: 1}},
		{"between readings", steady, 5, 15, Usage{MemoryKnown: true, CPUSeconds: 7.5, CPUSecondsLow: 0, CPUSecondsHigh: 15, Resident: Memory{125, 200, 200}, WorkingSet: Memory{225, 300, 300}, Readings: 1}},
		{"no reading inside", steady, 12, 14, Usage{MemoryKnown: true, CPUSeconds: 2, CPUSecondsLow: 0, CPUSecondsHigh: 10, Resident: Memory{160, 180, 180}, WorkingSet: Memory{260, 280, 280}}},
		{"started inside", born, 0, 20, Usage{MemoryKnown: true, CPUSeconds: 5, CPUSecondsLow: 5, CPUSecondsHigh: 5, Resident: Memory{100, 100, 100}, WorkingSet: Memory{100, 100, 100}, Readings: 1}},
		{"started again", again, 5, 20, Usage{MemoryKnown: true, CPUSeconds: 4.5, CPUSecondsLow: 4, CPUSecondsHigh: 5, Resident: Memory{100, 100, 0}, WorkingSet: Memory{100, 100, 0}, Readings: 1, Restarts: 1}},
		{"started before, and read first inside", born, 8, 20, Usage{MemoryKnown: true, CPUSeconds: 3, CPUSecondsHigh: 5, Resident: Memory{100, 100, 100}, WorkingSet: Memory{100, 100, 100}, Readings: 1}},
		{"started before, and found a minute later", []*life{{started: at(-2), readings: []Reading{{at(70), 36, 100, 100}, {at(90), 36, 100, 100}}}}, 7, 16, Usage{CPUSeconds: 4.5, CPUSecondsHigh: 36}},
		{"started, and not read yet", []*life{{started: at(4), readings: []Reading{{at(14), 5, 100, 100}, {at(24), 5, 100, 100}}}}, 2, 9, Usage{CPUSeconds: 2.5, CPUSecondsHigh: 5}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := figures(test.lives, at(test.from), at(test.to))
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprintf("%.6g", []any{got}) != fmt.Sprintf("%.6g", []any{test.want}) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
	old := []*life{{id: "a", started: at(-100), readings: []Reading{{at(4), 10, 1, 1}, {at(30), 20, 1, 1}}}}
	if got, err := figures(old, at(2), at(20)); err == nil {
		t.Errorf("a window that begins before the first reading of an old container: got %+v, want an error", got)
	}
	for name, window := range map[string][2]float64{"before the first reading": {-5, 10}, "after the last": {10, 31}} {
		if got, err := figures(steady, at(window[0]), at(window[1])); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
}

// Whatever a container did between two readings, the bounds hold, and windows that adjoin add up.
func TestFiguresBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var truth []float64 // the counter, each second
		used := 0.0
		for range 101 {
			truth = append(truth, used)
			used += rng.Float64() * float64(rng.IntN(3))
		}
		l := &life{started: at(-1)}
		for s := 0; s <= 100; s += 5 + rng.IntN(10) {
			l.readings = append(l.readings, Reading{At: at(float64(s)), CPUSeconds: truth[s], Resident: 1, WorkingSet: 1})
		}
		end := int(l.last().At.Sub(epoch).Seconds())
		cut := 1 + rng.IntN(end-1)
		sum := 0.0
		for _, window := range [][2]int{{0, cut}, {cut, end}} {
			u, err := figures([]*life{l}, at(float64(window[0])), at(float64(window[1])))
			if err != nil {
				t.Fatal(err)
			}
			true := truth[window[1]] - truth[window[0]]
			const noise = 1e-9
			if true < u.CPUSecondsLow-noise || true > u.CPUSecondsHigh+noise || u.CPUSeconds < u.CPUSecondsLow-noise || u.CPUSeconds > u.CPUSecondsHigh+noise {
				t.Errorf("window %v: %g used, computed %+v", window, true, u)
			}
			sum += u.CPUSeconds
		}
		if math.Abs(sum-truth[end]) > 1e-9 {
			t.Errorf("parts add up to %g, want %g", sum, truth[end])
		}
	}
}

// A container is followed through a restart and its end, and a kubelet that does not answer is named.
func TestWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer string
		refused := errors.New("refused")
		const hangs = "never comes"
		w := NewWatcher(func(ctx context.Context, node string) ([]byte, error) {
			switch answer {
			case "":
				return nil, refused
			case hangs:
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return []byte(answer), nil
		})
		w.Watch(istiod)
		short := func(moment float64) error {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			return w.Await(ctx, at(moment))
		}
		if err := short(0); !errors.Is(err, refused) {
			t.Errorf("without an answer: %v, want %v", err, refused)
		}
		answer = hangs
		if err := short(0); !errors.Is(err, refused) {
			t.Errorf("a request that was given up: %v, want what the one before it said, %v", err, refused)
		}
		answer = scrape("one", -100, 0, 1, 1000)
		if err := short(0); err != nil {
			t.Error(err)
		}
		if err := short(1); err == nil {
			t.Error("a reading at 0 is none at 1")
		}
		answer = scrape("one", -100, 10, 3, 1000)
		w.look(t.Context())
		w.look(t.Context()) // the same reading again
		u, err := w.Figures(istiod, at(0), at(10))
		if err != nil || u.CPUSeconds != 2 || u.Readings != 1 {
			t.Errorf("got %+v, %v", u, err)
		}
		answer = scrape("two", 12, 20, 4, 500)
		w.look(t.Context())
		if u, err = w.Figures(istiod, at(0), at(20)); err != nil || u.CPUSeconds != 6 || u.Restarts != 1 {
			t.Errorf("after a restart: %+v, %v", u, err)
		}
		answer = "container_scrape_error 0\n"
		if err := short(60); err != nil {
			t.Errorf("a container that has ended is waited for: %v", err)
		}
		answer = scrape("two", 12, 30, 5, 500)
		w.look(t.Context())
		if err := short(60); err == nil {
			t.Error("a container that one answer lacked is not waited for")
		}
		if _, err := w.Figures(Container{Node: "worker", Name: "other"}, at(0), at(10)); err == nil {
			t.Error("figures of a container that was never shown")
		}
	})
}
