package run

import (
	"slices"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// took is a stage as it went on.
type took struct {
	name    string
	seconds int
}

// countDown shows a countdown each second of a run, and returns what was shown: -1 where it was not known.
func countDown(t *testing.T, stages []stage, run []took) (shown []int) {
	t.Helper()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	c := newCountdown(stages, now)
	last := time.Duration(1<<63 - 1)
	for _, part := range run {
		c.enter(part.name, now)
		for range part.seconds {
			now = now.Add(time.Second)
			left, known := c.left(now)
			if left < 0 || left > last || last-left > catchUp*time.Second && last != 1<<63-1 {
				t.Errorf("%s after %s in %s", left, last, part.name)
			}
			if last = left; !known {
				left = -time.Second
			}
			shown = append(shown, int(left/time.Second))
		}
		c.enter("", now)
	}
	return shown
}

func TestCountdown(t *testing.T) {
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	stages := []stage{
		{stageStarting, seconds(3)}, {"baseline", seconds(2)}, {"rollout", seconds(10)}, {"probe", 0}, {record.UpgradePrefix, seconds(4)}, {"fault", seconds(4)},
		{stageFinishing, seconds(2)},
	}
	for name, c := range map[string]struct {
		run  []took
		want []int
	}{
		"as expected": {
			[]took{{stageStarting, 3}, {"baseline", 2}, {"rollout", 10}, {"upgrade-canary", 2}, {"upgrade-rest", 2}, {"fault", 2}, {"fault", 2}, {stageFinishing, 2}},
			[]int{24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
		},
		"a stage that ends early": {
			[]took{{stageStarting, 3}, {"baseline", 2}, {"rollout", 2}, {"upgrade-canary", 4}, {"fault", 3}},
			[]int{24, 23, 22, 21, 20, 19, 18, 15, 12, 9, 6, 5, 4, 3},
		},
		"a stage that takes longer": { // up to two seconds and a tenth it stands still, then it is not known
			[]took{{stageStarting, 3}, {"baseline", 2}, {"rollout", 15}, {"upgrade-canary", 2}},
			[]int{24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 10, 10, 10, -1, -1, 9, 8},
		},
		"a phase that was not expected": {
			[]took{{stageStarting, 3}, {"baseline", 2}, {"rollout", 10}, {"other", 2}, {"probe", 1}, {"upgrade-canary", 1}},
			[]int{24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 10, 10, 10, 9},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := countDown(t, stages, c.run)
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want\n%v", got, c.want)
			}
		})
	}
}
