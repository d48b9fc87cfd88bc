package fidelity

import (
	"fmt"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/fidelity/wiretap"
	"scaler.mesh/scaler/pkg/record"
)

// timeAlpha is the probability of even one false alarm among all times of a comparison.
const timeAlpha = 0.05

const envoysWork = "the real one's takes longer by Envoy's own work (reading clusters, the certificate's streams, listeners); the time spent waiting for istiod is compared on its own"

// startFigures are the times of a start that are compared.
var startFigures = []struct {
	name  string // in the record
	about string
	value func(wiretap.Times) time.Duration
	of    func(*record.StartTimes) **record.Spread
	own   bool // the proxy's own work is in it
}{
	{
		"firstConfiguration", "start: first configuration", func(t wiretap.Times) time.Duration { return t.First },
		func(t *record.StartTimes) **record.Spread { return &t.First }, false,
	},
	{
		"completeConfiguration", "start: complete configuration", func(t wiretap.Times) time.Duration { return t.Complete },
		func(t *record.StartTimes) **record.Spread { return &t.Complete }, true,
	},
	{
		"waiting", "start: waiting for istiod", func(t wiretap.Times) time.Duration { return t.Complete - t.Own },
		func(t *record.StartTimes) **record.Spread { return &t.Waiting }, false,
	},
}

// judgeTimes tests the times of all cases that made all their starts, as one family of
// tests, and adds the significant ones to their differences. With too few starts nothing
// is tested, which is recorded. ownWork states why times with the proxy's own work are
// longer for the real one.
func judgeTimes(result *record.Fidelity, times [][2][]wiretap.Times, starts int, ownWork string) {
	var p []float64
	var of []*record.FidelityCase
	for i := range result.Cases {
		both := times[i]
		if len(both[realSide]) < starts || len(both[simulated]) < starts {
			continue
		}
		of = append(of, &result.Cases[i])
		for _, f := range startFigures {
			one, err := stats.RankSum(secondsOf(both[realSide], f.value), secondsOf(both[simulated], f.value))
			if err != nil {
				return // no starts were asked for, which Validate refuses
			}
			p = append(p, one)
		}
	}
	if len(p) == 0 {
		result.TimesNotJudged = "no case made all its starts"
		return
	}
	if wanted := startsWanted(len(p)); starts < wanted {
		result.TimesNotJudged = fmt.Sprintf("starts %d are too few to compare %d times with %.0f %% confidence: want %d",
			starts, len(p), 100*(1-timeAlpha), wanted)
		return
	}
	for i, corrected := range stats.Holm(p) {
		c, f := of[i/len(startFigures)], startFigures[i%len(startFigures)]
		c.TimeTests = append(c.TimeTests, record.TimeTest{Figure: f.name, P: p[i], Holm: corrected})
		if corrected > timeAlpha {
			continue
		}
		real, fake := *f.of(&c.Real), *f.of(&c.Simulated)
		d := record.Difference{About: f.about, Real: spreadText(*real), Simulated: spreadText(*fake), Count: 1}
		if f.own && real.Median > fake.Median {
			d.Explained = ownWork
		}
		c.Differences = append(c.Differences, d)
		slices.SortFunc(c.Differences, byAbout)
	}
}

// startsWanted returns the fewest starts of each side with which one of this number of
// times can be shown to differ.
func startsWanted(tests int) int {
	n := 1
	for float64(tests)*stats.SmallestP(n, n) > timeAlpha {
		n++
	}
	return n
}

func spreadText(s record.Spread) string {
	return fmt.Sprintf("median %.1f ms (%.1f to %.1f)", 1000*s.Median, 1000*s.Min, 1000*s.Max)
}

// startTimes summarises the times of starts.
func startTimes(all []wiretap.Times) (times record.StartTimes) {
	for _, f := range startFigures {
		*f.of(&times) = spread(secondsOf(all, f.value))
	}
	return times
}

func secondsOf(all []wiretap.Times, value func(wiretap.Times) time.Duration) []float64 {
	var seconds []float64
	for _, t := range all {
		seconds = append(seconds, value(t).Seconds())
	}
	return seconds
}

// spread returns the minimum, median and maximum of the values; nil if there are none. It
// sorts them.
func spread(values []float64) *record.Spread {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	return &record.Spread{Min: values[0], Median: (values[(len(values)-1)/2] + values[len(values)/2]) / 2, Max: values[len(values)-1]}
}
