package measure

import "time"

// threadTime holds the kernel's counters of a thread since its start.
type threadTime struct {
	ran    time.Duration // on a processor
	waited time.Duration // ready to run, for a processor
}

// threadDelays adds up the time for which the threads of a process waited for a processor.
type threadDelays struct {
	slowdown     float64 // by which time is slowed down; 0 = 1
	last         map[int]threadTime
	waited, late time.Duration
}

// add adds the counters of each thread, by its id. Each thread is judged by itself: processor time of
// one does not explain a wait of another.
func (d *threadDelays) add(now map[int]threadTime) {
	k := max(1, d.slowdown)
	for id, t := range now {
		before := d.last[id]
		if t.waited < before.waited || t.ran < before.ran {
			before = threadTime{} // another thread, under an old one's id
		}
		waited := t.waited - before.waited
		d.waited += waited
		d.late += max(0, waited-time.Duration((k-1)*float64(t.ran-before.ran)))
	}
	d.last = now
}

// slowable is a [Source] that counts [Reading.Late].
type slowable interface {
	// slowDown sets the factor by which time is slowed down. It is called before the first Read.
	slowDown(k float64)
}
