package clusterprometheus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

var epoch = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func moment(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

// series is one of a pod, with samples (second, value).
func series(pod, id string, samples ...[2]float64) line {
	l := line{labels: model.Metric{"pod": model.LabelValue(pod), "id": model.LabelValue(id), "job": "kubelet"}}
	for _, s := range samples {
		l.samples = append(l.samples, Sample{At: moment(s[0]), Value: s[1]})
	}
	return l
}

func metrics(stay []string, cpu, starts []line) *Metrics {
	m := &Metrics{pods: map[string]*pod{}}
	m.take(cpu, starts, stay)
	return m
}

// start is a sample of the moment that a program began.
func start(at, scraped float64) [2]float64 {
	return [2]float64{scraped, float64(moment(at).UnixMilli()) / 1000}
}

func started(pod, id string, at, scraped float64) line { return series(pod, id, start(at, scraped)) }

func describe(u Usage) string {
	number := func(v *float64) string {
		if v == nil {
			return "unknown"
		}
		return fmt.Sprintf("%.4g", *v)
	}
	return fmt.Sprintf("%s of %.4g to %s, %d samples, %d restarts", number(u.CPUSeconds), u.Low, number(u.High), u.Samples, u.Restarts)
}

func TestUsage(t *testing.T) {
	steady := []line{series("a", "1", [2]float64{0, 100}, [2]float64{15, 103}, [2]float64{30, 106}, [2]float64{45, 120}, [2]float64{60, 120})}
	for _, test := range []struct {
		name         string
		cpu, starts  []line
		older, newer time.Duration
		from, to     float64
		want, err    string
	}{
		{"between samples", steady, nil, 0, 0, 10, 50, "18 of 17 to 20, 3 samples, 0 restarts", ""},
		{"at samples", steady, nil, 0, 0, 15, 45, "17 of 17 to 17, 2 samples, 0 restarts", ""},
		{"values of earlier moments", steady, nil, 5 * time.Second, 0, 15, 45, "17 of 14 to 17, 2 samples, 0 restarts", ""},
		{"values of later moments", steady, nil, 0, 5 * time.Second, 15, 45, "17 of 3 to 20, 2 samples, 0 restarts", ""},
		{"shorter than the interval", steady, nil, 0, 0, 20, 28, "unknown of 0 to 3, 0 samples, 0 restarts", "0 samples, at an interval of 15s, lie in the phase of 8s: want 2 or more"},
		{"one sample", steady, nil, 0, 0, 20, 35, "unknown of 0 to 17, 1 samples, 0 restarts", "1 samples"},
		{"no sample follows", steady, nil, 0, 0, 20, 61, "unknown of 14 to unknown, 3 samples, 0 restarts", "its last sample is of 12:01:00.000, before the phase's end 12:01:01.000"},
		{"none before", steady, nil, 0, 0, -5, 40, "unknown of 6 to unknown, 3 samples, 0 restarts", "its first sample is of 12:00:00.000, after the phase's start 11:59:55.000"},
		{"read late", steady, []line{started("a", "1", -1000, 0)}, 0, 0, -5, 40, "unknown of 6 to 120, 3 samples, 0 restarts", "its first sample"},
		{"began in it", steady[:1], []line{started("a", "1", -2, 0)}, 0, 0, -5, 40, "115.3 of 106 to 120, 3 samples, 0 restarts", ""},
		{
			"the counter fell", []line{series("a", "1", [2]float64{0, 10}, [2]float64{15, 12}, [2]float64{30, 1}, [2]float64{45, 2}, [2]float64{60, 3})}, nil, 0, 0, 0, 45,
			"4 of 4 to unknown, 3 samples, 1 restarts", "",
		},
		{
			"another container, whose start is known", []line{series("a", "1", [2]float64{0, 10}, [2]float64{15, 12}), series("a", "2", [2]float64{30, 1}, [2]float64{45, 2}, [2]float64{60, 3})},
			[]line{started("a", "1", -100, 0), started("a", "2", 20, 30)}, 0, 0, 0, 25, "2.5 of 2 to unknown, 2 samples, 1 restarts", "",
		},
		{
			"the counter did not fall", []line{series("a", "1", [2]float64{0, 1}, [2]float64{15, 2}, [2]float64{30, 5}, [2]float64{45, 6}, [2]float64{60, 7})},
			[]line{series("a", "1", start(-100, 0), start(-99, 15), start(16, 30), start(16, 45), start(16, 60))}, 0, 0, 0, 45,
			"7 of 7 to unknown, 3 samples, 1 restarts", "",
		},
		{"NaN and gaps", []line{series("a", "1", [2]float64{0, 1}, [2]float64{100, 11}, [2]float64{110, 12}, [2]float64{120, 12})}, nil, 0, 0, 50, 115, "6 of 1 to 11, 2 samples, 0 restarts", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := metrics([]string{"a"}, test.cpu, test.starts)
			m.Older, m.Newer = test.older, test.newer
			u, there := m.Usage("a", moment(test.from), moment(test.to))
			if got := describe(u); !there || got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if (u.Err == nil) != (test.err == "") || u.Err != nil && !strings.Contains(u.Err.Error(), test.err) {
				t.Errorf("error %v, want %q", u.Err, test.err)
			}
		})
	}
}

// A gap over an edge of a window is known, one within it does not matter.
func TestMissed(t *testing.T) {
	for _, test := range []struct {
		from, to float64
		want     int
	}{{5, 25, 0}, {25, 100, 0}, {40, 130, 4}, {5, 70, 4}, {105, 155, 0}, {110, 175, 3}} {
		m := metrics([]string{"a"}, []line{series("a", "1",
			[2]float64{0, 1}, [2]float64{10, 2}, [2]float64{20, 3}, [2]float64{30, 4}, [2]float64{80, 5}, [2]float64{90, 6}, [2]float64{100, 7},
			[2]float64{110, 8}, [2]float64{120, 9}, [2]float64{130, 10}, [2]float64{140, 11}, [2]float64{160, 12}, [2]float64{200, 13},
		)}, nil)
		if u, _ := m.Usage("a", moment(test.from), moment(test.to)); u.Missed != test.want {
			t.Errorf("%g to %g: %d samples are missing, want %d", test.from, test.to, u.Missed, test.want)
		}
	}
}

// Pods that come and go are part of the sum while they are there; one that must be there is not taken to have ended.
func TestTogether(t *testing.T) {
	cpu := []line{
		series("stays", "1"), series("came", "2", [2]float64{90, 2}, [2]float64{105, 4}, [2]float64{120, 6}),
		series("went", "3", [2]float64{0, 50}, [2]float64{15, 51}),
	}
	for at := 0.0; at <= 180; at += 15 {
		cpu[0].samples = append(cpu[0].samples, Sample{At: moment(at), Value: at / 15})
	}
	cpu[1].samples = append(cpu[1].samples, Sample{At: moment(180), Value: 10})
	m := metrics([]string{"stays"}, cpu, []line{started("came", "2", 80, 90)})
	m.level([]line{series("stays", "1", [2]float64{75, 100}, [2]float64{120, 300}), series("came", "2", [2]float64{90, 50}, [2]float64{105, 70})}, func(p *pod) *[]Sample { return &p.memory })
	if got := fmt.Sprint(m.Pods()); got != "[came stays went]" {
		t.Error(got)
	}
	u := m.Together(moment(75), moment(150))
	if got, want := describe(u), "13 of 11 to 15, 8 samples, 0 restarts"; got != want || u.Err != nil {
		t.Errorf("got %s, %v, want %s", got, u.Err, want)
	}
	if u.Resident == nil || *u.Resident != (Memory{Mean: 200 + 60*70.0/75, Peak: 370, End: 370}) {
		t.Errorf("memory %+v", u.Resident)
	}
	if _, there := m.Usage("came", moment(0), moment(60)); there {
		t.Error("a pod is there before it came")
	}
	if u := m.Together(moment(0), moment(60)); u.CPUSeconds == nil || u.High != nil {
		t.Errorf("with a pod that went at a moment that is not known: %s, %v", describe(u), u.Err)
	}
	m = metrics([]string{"stays", "went"}, cpu, nil)
	if u := m.Together(moment(0), moment(60)); u.CPUSeconds != nil || u.Err == nil || !strings.Contains(u.Err.Error(), "pod went: its last sample") {
		t.Errorf("with a pod whose samples are missing: %s, %v", describe(u), u.Err)
	}
}

// A pod that takes the place of another has memory in its place, not in addition to it.
func TestMemoryTogether(t *testing.T) {
	var cpu, memory []line
	for _, one := range []struct {
		pod      string
		from, to float64
	}{{"old", 0, 60}, {"new", 60, 300}} {
		c, m := series(one.pod, one.pod), series(one.pod, one.pod)
		for at := one.from; at <= one.to; at += 10 {
			c.samples, m.samples = append(c.samples, Sample{At: moment(at), Value: at}), append(m.samples, Sample{At: moment(at), Value: 100})
		}
		cpu, memory = append(cpu, c), append(memory, m)
	}
	m := metrics([]string{"new"}, cpu, []line{started("old", "old", -100, 0), started("new", "new", 60, 60)})
	m.level(memory, func(p *pod) *[]Sample { return &p.memory })
	if u := m.Together(moment(0), moment(120)); u.Resident == nil || *u.Resident != (Memory{Mean: 100, Peak: 200, End: 100}) {
		t.Errorf("memory %+v", u.Resident)
	}
	m = metrics(nil, cpu, []line{started("old", "old", -100, 0)})
	m.level(memory, func(p *pod) *[]Sample { return &p.memory })
	if u := m.Together(moment(0), moment(120)); u.Resident != nil {
		t.Errorf("with a pod that began at a moment that is not known: %+v", u.Resident)
	}
}

// Whatever a program did between two samples, and of whatever moment near its timestamp a value is, the bounds hold.
func TestBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var truth []float64 // the counter, each second
		used := 5.0
		for range 201 {
			truth = append(truth, used)
			used += rng.Float64() * float64(rng.IntN(3))
		}
		older, newer := rng.IntN(10), rng.IntN(3)
		var l line
		l.labels = model.Metric{"pod": "a"}
		value := 0.0
		for s := 10; s <= 190; s += 5 + rng.IntN(15) {
			of := s - older + rng.IntN(older+newer+1)
			value = max(value, truth[of]) // a counter does not fall
			l.samples = append(l.samples, Sample{At: moment(float64(s)), Value: value})
		}
		m := metrics([]string{"a"}, []line{l}, nil)
		m.Older, m.Newer = time.Duration(older)*time.Second, time.Duration(newer)*time.Second
		from := 20 + rng.IntN(60)
		to := from + 1 + rng.IntN(80)
		u, _ := m.Usage("a", moment(float64(from)), moment(float64(to)))
		is := truth[to] - truth[from]
		const noise = 1e-9
		if is < u.Low-noise || u.High != nil && is > *u.High+noise {
			t.Errorf("%d to %d: %g used, computed %s", from, to, is, describe(u))
		}
		if u.High == nil {
			t.Errorf("%d to %d: no upper bound", from, to)
		}
	}
}

func TestSpan(t *testing.T) {
	m := metrics([]string{"a"}, []line{series("a", "1", [2]float64{0, 10}, [2]float64{10, 12}, [2]float64{20, 3}, [2]float64{30, 4})}, nil)
	s, ok := m.Span("a", moment(5), moment(30))
	if !ok || s.First != moment(10) || s.Last != moment(30) || math.Abs(s.CPUSeconds-4) > 1e-9 {
		t.Errorf("%+v, %v", s, ok)
	}
	if _, ok := m.Span("a", moment(5), moment(12)); ok {
		t.Error("one sample is no span")
	}
	if _, ok := m.Span("b", moment(0), moment(30)); ok {
		t.Error("a pod without samples has a span")
	}
}
