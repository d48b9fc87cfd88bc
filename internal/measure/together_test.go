package measure

import (
	"testing"
	"time"
)

// What several components need at one moment is less than the sum of their peaks.
func TestPeaksTogether(t *testing.T) {
	lives := []life{
		{started: at(-1), ended: at(2), readings: []Reading{look(0, 0, 0, 100, 100), look(1, 1, 0, 300, 350), look(2, 1, 0, 100, 350)}},
		{started: at(1), readings: []Reading{look(1, 0, 0, 50, 50), look(2, 0.5, 0, 250, 250), look(3, 1.5, 0, 200, 250)}},
	}
	for _, test := range []struct {
		from, to      float64
		cores, memory float64
	}{
		{0, 1, 1, 350},   // the second one begins at the end
		{0, 3, 1, 350},   // both are there from 1 to 2
		{2, 3, 1, 250},   // the second alone
		{1, 2, 0.5, 350}, // both
	} {
		cores, memory, _ := peaksTogether(lives, at(test.from), at(test.to), time.Second)
		if cores != test.cores || memory != test.memory {
			t.Errorf("from %v to %v s: %v cores, %v bytes, want %v and %v", test.from, test.to, cores, memory, test.cores, test.memory)
		}
	}
}
