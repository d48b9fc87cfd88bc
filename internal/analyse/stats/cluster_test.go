package stats

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/stat"
)

func TestNewCluster(t *testing.T) {
	got := NewCluster([]float64{3, 1, 3, 2, 3}, 4)
	if want := (Cluster{[]float64{1, 2, 3}, []int64{1, 1, 3}, 4}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestClustersNeeded(t *testing.T) {
	for q, want := range map[float64]int{0.5: 6, 0.9: 36, 0.99: 368, 0.1: 36} {
		if got := ClustersNeeded(q); got != want {
			t.Errorf("p%g: %d, want %d", 100*q, got, want)
		}
	}
}

// alike are n clusters of as many equal observations each: 1, 2, 3, ...
func alike(n, observations int) []Cluster {
	var all []Cluster
	for i := range n {
		all = append(all, Cluster{Values: []float64{float64(i + 1)}, Counts: []int64{int64(observations)}})
	}
	return all
}

func TestClusterQuantile(t *testing.T) {
	// However many sidecars see the same changes, the interval is that of the changes.
	one, ok1 := ClusterQuantile(alike(20, 1), 0.5)
	many, ok2 := ClusterQuantile(alike(20, 200), 0.5)
	if !ok1 || !ok2 || *one.Low != *many.Low || *one.High != *many.High {
		t.Errorf("20 changes seen once: %v to %v, seen by 200: %v to %v", *one.Low, *one.High, *many.Low, *many.High)
	}
	// The order statistics of 20 values that hold the median with 95 %: the 6th to the 15th.
	if *one.Low < 5 || *one.Low > 7 || *one.High < 13 || *one.High > 16 {
		t.Errorf("the median of 1 to 20 lies within %v to %v", *one.Low, *one.High)
	}
	if _, ok := ClusterQuantile(alike(5, 100), 0.5); ok {
		t.Error("5 clusters have an interval")
	}
	if _, ok := ClusterQuantile(append(alike(5, 100), Cluster{}), 0.5); ok {
		t.Error("5 clusters and one without observations have an interval")
	}
	// Of 20 changes 8 are lost: the median may be lost, too.
	lossy := alike(20, 3)
	for i := 12; i < 20; i++ {
		lossy[i] = Cluster{Lost: 3}
	}
	if i, ok := ClusterQuantile(lossy, 0.5); !ok || i.Low == nil || i.High != nil {
		t.Errorf("8 of 20 lost: %+v, %v: want no upper end", i, ok)
	}
}

// How often an interval holds the true median, of changes that differ by a factor as
// sidecars of one change do by a smaller one; and how often one that takes every
// sidecar for independent does.
func TestClusterQuantileCovers(t *testing.T) {
	trials, sidecars := 200, 4
	for _, tt := range []struct {
		changes          int
		q, between, each float64 // quantile, standard deviations of the logarithms
		least            float64
	}{
		{20, 0.5, 0.5, 0.1, 0.90},
		{20, 0.5, 0.1, 0.5, 0.88},
		{40, 0.9, 0.5, 0.1, 0.86},
		{100, 0.5, 0.5, 0.1, 0.92},
		{100, 0.9, 0.5, 0.1, 0.90},
	} {
		random := rand.New(rand.NewPCG(7, uint64(tt.changes)))
		z := map[float64]float64{0.5: 0, 0.9: 1.2815516}[tt.q]
		truth := math.Exp(z * math.Hypot(tt.between, tt.each))
		held, naive := 0, 0
		for range trials {
			var clusters, single []Cluster
			for range tt.changes {
				change := tt.between * random.NormFloat64()
				var values []float64
				for range sidecars {
					v := math.Exp(change + tt.each*random.NormFloat64())
					values, single = append(values, v), append(single, NewCluster([]float64{v}, 0))
				}
				clusters = append(clusters, NewCluster(values, 0))
			}
			if i, ok := ClusterQuantile(clusters, tt.q); ok && *i.Low <= truth && truth <= *i.High {
				held++
			}
			if naiveHolds(single, tt.q, truth) {
				naive++
			}
		}
		share := float64(held) / float64(trials)
		t.Logf("p%g of %d changes, deviations %g between and %g within: %.3f of the intervals hold it; of those that take sidecars as independent %.3f",
			100*tt.q, tt.changes, tt.between, tt.each, share, float64(naive)/float64(trials))
		if share < tt.least-3*math.Sqrt(tt.least*(1-tt.least)/float64(trials)) {
			t.Errorf("p%g of %d changes: %.3f of the intervals hold it, want %.2f", 100*tt.q, tt.changes, share, tt.least)
		}
		if tt.between > tt.each && float64(naive)/float64(trials) > 0.85 {
			t.Errorf("p%g of %d changes: %d of %d intervals that ignore changes hold it: the simulation shows nothing", 100*tt.q, tt.changes, naive, trials)
		}
	}
}

// naiveHolds reports whether the interval by order statistics of independent values holds
// the truth.
func naiveHolds(single []Cluster, q, truth float64) bool {
	n := float64(len(single))
	below := 0.0
	for _, c := range single {
		if c.Values[0] <= truth {
			below++
		}
	}
	return math.Abs(below-q*n) <= 1.96*math.Sqrt(n*q*(1-q))
}

// Of a mean, the jackknife is its standard error, whatever the values.
func TestJackknifeDeviationOfMean(t *testing.T) {
	values := []float64{3, 1, 4, 1, 5, 9, 2, 6}
	n := float64(len(values))
	var without []float64
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	for _, v := range values {
		without = append(without, (sum-v)/(n-1))
	}
	if got, want := JackknifeDeviation(without), stat.StdErr(stat.StdDev(values, nil), n); math.Abs(got/want-1) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := JackknifeDeviation([]float64{1}); got != 0 {
		t.Errorf("%v of one value", got)
	}
}
