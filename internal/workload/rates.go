package workload

import (
	"maps"
	"time"
)

// ReadyRates returns the pods that became ready per second, from the first to the last
// and without counting the first, and the largest number within one second. second is
// longer than a second if time is dilated. The times are in order. A rate that cannot be
// determined is nil.
func ReadyRates(ready []time.Time, second time.Duration) (mean, peak *float64) {
	if len(ready) == 0 {
		return nil, nil
	}
	if over := ready[len(ready)-1].Sub(ready[0]); over > 0 {
		mean = new(float64(len(ready)-1) / over.Seconds())
	}
	most, first := 0, 0
	for i, at := range ready {
		for at.Sub(ready[first]) >= second {
			first++
		}
		most = max(most, i-first+1)
	}
	return mean, new(float64(most))
}

// ArrivalRates returns the pods per second that a plan offers, and the rate that was
// achieved, given the times at which pods were seen, in order. Both rates count from the
// first burst and exclude its pods, so that bursts of 100 every 10 s are 10 per second
// however many there are. For a plan of one step there is no offered rate, and the
// achieved rate covers all pods. A rate that cannot be determined is nil.
func ArrivalRates(plan []Step, seen []time.Time) (offered, achieved *float64) {
	rate := func(pods int, over time.Duration) *float64 {
		if pods <= 0 || over <= 0 {
			return nil
		}
		return new(float64(pods) / over.Seconds())
	}
	if len(plan) == 0 || len(seen) == 0 {
		return nil, nil
	}
	last := seen[len(seen)-1]
	if len(plan) == 1 {
		return nil, rate(len(seen), last.Sub(seen[0]))
	}
	replicas := map[int]int{}
	pods := func(steps []Step) (sum int) {
		for _, step := range steps {
			maps.Copy(replicas, step.Replicas)
		}
		for _, n := range replicas {
			sum += n
		}
		return sum
	}
	burst := pods(plan[:1])
	offered = rate(pods(plan)-burst, plan[len(plan)-1].At)
	if len(seen) > burst {
		achieved = rate(len(seen)-burst, last.Sub(seen[burst-1]))
	}
	return offered, achieved
}

// Pauses returns how often nothing changed for a limit or longer while pods came, and for how long at most, given the times at which pods and
// changes were seen, each in order. What came before the first change and after the last one is no pause.
func Pauses(pods, changes []time.Time, limit time.Duration) (n int, longest time.Duration) {
	if len(pods) == 0 {
		return 0, 0
	}
	for i := 1; i < len(changes); i++ {
		if changes[i-1].Before(pods[0]) || changes[i].After(pods[len(pods)-1]) {
			continue
		}
		if pause := changes[i].Sub(changes[i-1]); pause >= limit {
			n, longest = n+1, max(longest, pause)
		}
	}
	return n, longest
}
