package stats

import "math"

// RankSum compares two samples only by the order of their values (Mann and Whitney, On a
// Test of Whether one of Two Random Variables is Stochastically Larger than the Other,
// Annals of Mathematical Statistics 18, 1947): it returns the two-sided p-value, the
// probability that values of equal populations are at least as unevenly ordered. It
// assumes that values are independent, and nothing about their distribution, so that
// outliers have no more weight than other values.
//
// It is exact if no value is in both samples; equal values count half for either order,
// and a remaining half counts for no difference. It needs memory proportional to the
// product of both sizes, and time proportional to its square.
//
// The error is ErrTooFew when a sample is empty.
func RankSum(first, second []float64) (float64, error) {
	if len(first) == 0 || len(second) == 0 {
		return 1, ErrTooFew
	}
	u := 0.0 // pairs in which the second's value is the larger one
	for _, a := range first {
		for _, b := range second {
			switch {
			case a < b:
				u++
			case a == b:
				u += 0.5
			}
		}
	}
	most := int(math.Ceil(min(u, float64(len(first)*len(second))-u)))
	return min(1, 2*uTail(len(first), len(second), most)), nil
}

// uTail returns the probability that no more than most pairs of m and n values, all of one
// population, are in one order. The probabilities follow from Mann and Whitney's
// recurrence: the largest of all values belongs to either sample, and is then larger than
// all, or none, of the other.
func uTail(m, n, most int) float64 {
	before, now := make([][]float64, n+1), make([][]float64, n+1) // by size of the other sample: chance of each u
	for j := range now {
		before[j], now[j] = make([]float64, most+1), make([]float64, most+1)
		before[j][0] = 1
	}
	for i := 1; i <= m; i++ {
		for j := range now {
			clear(now[j])
			if j == 0 {
				now[j][0] = 1
				continue
			}
			ours := float64(i) / float64(i+j)
			for u := range now[j] {
				now[j][u] = (1 - ours) * now[j-1][u]
				if u >= j {
					now[j][u] += ours * before[j][u-j]
				}
			}
		}
		before, now = now, before
	}
	tail := 0.0
	for _, chance := range before[n] {
		tail += chance
	}
	return tail
}
