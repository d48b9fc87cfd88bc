package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
)

// Cluster holds observations that are not independent of each other, such as those that
// many sidecars made of one change. Different clusters are independent of each other.
type Cluster struct {
	Values []float64 // distinct, ascending
	Counts []int64   // how many observations each value is of; as long as Values
	Lost   int64     // observations that had not come by the time limit: larger than all values
}

// NewCluster returns a cluster of these observations and of lost ones.
func NewCluster(values []float64, lost int64) Cluster {
	c := Cluster{Lost: lost}
	for _, v := range slices.Sorted(slices.Values(values)) {
		if n := len(c.Values); n > 0 && c.Values[n-1] == v {
			c.Counts[n-1]++
			continue
		}
		c.Values, c.Counts = append(c.Values, v), append(c.Counts, 1)
	}
	return c
}

// ThreeDigits rounds to three significant digits, the precision of histograms.
func ThreeDigits(v float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	if err != nil {
		return v // formatted numbers can be parsed
	}
	return rounded
}

// QuantileInterval is a confidence interval of a quantile. An end is nil if it falls
// among the lost observations: it exceeds all values.
type QuantileInterval struct{ Low, High *float64 }

// resamples of a bootstrap: with 2000, the ends of a 95 % interval are the 50th value
// from either side.
const resamples = 2000

// clusterConfidence is the confidence level of all intervals of clusters.
const clusterConfidence = 0.95

// ClustersNeeded returns the fewest clusters with which a 95 % confidence interval of the q
// quantile has two ends. With fewer clusters, the probability that all of them lie on one
// side of the quantile is more than 2.5 % if the observations within a
// cluster are all alike; then no bound can be stated without assumptions about the
// distribution. It is 6 for the median, 36 for p90 and 368 for
// p99. The formula is that for order statistics of independent values (David and
// Nagaraja, Order Statistics, section 7.1).
func ClustersNeeded(q float64) int {
	return int(math.Ceil(math.Log((1-clusterConfidence)/2) / math.Log(max(q, 1-q))))
}

// ClusterQuantile returns a 95 % confidence interval of the q quantile of all observations of
// the clusters, by resampling whole clusters with replacement (cluster bootstrap,
// percentile interval: Davison and Hinkley, Bootstrap Methods and their Application,
// sections 3.8 and 5.3). Observations of one cluster stay together. The quantile is the
// nearest rank over received and lost observations, as in Histogram.Summary. Resampling
// is seeded, so that equal clusters have equal intervals.
//
// ok is false when there are fewer clusters with observations than ClustersNeeded.
func ClusterQuantile(clusters []Cluster, q float64) (interval QuantileInterval, ok bool) {
	clusters = slices.DeleteFunc(slices.Clone(clusters), func(c Cluster) bool { return len(c.Values) == 0 && c.Lost == 0 })
	n := len(clusters)
	if n < ClustersNeeded(q) {
		return QuantileInterval{}, false
	}
	pool := newPool(clusters)
	random := rand.New(rand.NewPCG(1, 2))
	drawn := make([]float64, resamples)
	weights := make([]int64, n)
	for i := range drawn {
		clear(weights)
		for range n {
			weights[random.IntN(n)]++
		}
		drawn[i] = pool.quantile(q, weights)
	}
	slices.Sort(drawn)
	tail := (1 - clusterConfidence) / 2.0
	end := func(share float64) *float64 {
		v := drawn[NearestRank(share, resamples)-1]
		if math.IsInf(v, 1) {
			return nil
		}
		return &v
	}
	return QuantileInterval{Low: end(tail), High: end(1 - tail)}, true
}

// pool holds the values of all clusters in ascending order.
type pool struct {
	values []pooled
	sizes  []int64 // of each cluster, lost ones included
}

type pooled struct {
	value   float64
	cluster int
	count   int64
}

func newPool(clusters []Cluster) pool {
	p := pool{sizes: make([]int64, len(clusters))}
	for i, c := range clusters {
		p.sizes[i] = c.Lost
		for j, v := range c.Values {
			p.values = append(p.values, pooled{v, i, c.Counts[j]})
			p.sizes[i] += c.Counts[j]
		}
	}
	slices.SortFunc(p.values, func(a, b pooled) int { return cmp.Or(cmp.Compare(a.value, b.value), a.cluster-b.cluster) })
	return p
}

// quantile returns the quantile of a sample that contains each cluster as often as its
// weight; +Inf if it falls among the lost observations.
func (p pool) quantile(q float64, weights []int64) float64 {
	var all int64
	for i, size := range p.sizes {
		all += size * weights[i]
	}
	left := NearestRank(q, all)
	for _, v := range p.values {
		if left -= v.count * weights[v.cluster]; left <= 0 {
			return v.value
		}
	}
	return math.Inf(1)
}

// JackknifeDeviation returns the standard error of an estimate, given its values without
// each of the clusters in turn (delete-one jackknife: Davison and Hinkley, Bootstrap
// Methods and their Application, section 3.2.1). It needs no assumption about how the
// observations within a cluster depend on each other. It is 0 for fewer than two values.
func JackknifeDeviation(without []float64) float64 {
	n := float64(len(without))
	if n < 2 {
		return 0
	}
	return math.Sqrt((n-1)*(n-1)/n) * stat.StdDev(without, nil)
}
