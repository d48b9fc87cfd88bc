package stats_test

import (
	"fmt"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
)

// Ninety-nine sidecars were configured, one never was: the quantile that falls on it is not known.
func ExampleHistogram() {
	h := stats.NewHistogram()
	for i := range 99 {
		h.Record(time.Duration(i+1) * time.Millisecond)
	}
	h.Lose(1)
	s := h.Summary()
	fmt.Printf("%d came, %d lost\n", s.Count, s.Lost)
	fmt.Printf("p50 %.3f %s, p99 %.3f %s\n", *s.P50, s.Unit, *s.P99, s.Unit)
	fmt.Println("p99.9 known:", s.P999 != nil)
	// Output:
	// 99 came, 1 lost
	// p50 0.050 s, p99 0.099 s
	// p99.9 known: false
}

// Two control planes, five runs each: CPU seconds of the rollout.
func ExampleWelch() {
	before := []float64{21.9, 22.4, 22.0, 22.6, 22.1}
	after := []float64{19.8, 20.1, 20.4, 19.9, 20.3}
	d, err := stats.Welch(before, after, 0, 0.95)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%+.1f s, with 95 %% confidence from %+.1f to %+.1f, p < 0.001: %t\n", d.Value, d.Low, d.High, d.P < 0.001)
	// Output: -2.1 s, with 95 % confidence from -2.5 to -1.7, p < 0.001: true
}

// Of three tests one is below 5 %, but not as one of three.
func ExampleHolm() {
	for _, p := range stats.Holm([]float64{0.02, 0.30, 0.60}) {
		fmt.Printf("%.2f\n", p)
	}
	// Output:
	// 0.06
	// 0.60
	// 0.60
}

// A cost of 2 for the control plane itself and 3 for each pod.
func ExampleLeastSquares() {
	pods := [][]float64{{1, 1}, {1, 2}, {1, 4}, {1, 8}}
	fit, err := stats.LeastSquares(pods, []float64{5, 8, 14, 26}, 0.95)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.0f + %.0f for each pod; 16 pods: %.0f\n", fit.Terms[0].Value, fit.Terms[1].Value, fit.At([]float64{1, 16}))
	// Output: 2 + 3 for each pod; 16 pods: 50
}
