package workerjob

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place/existing"
)

// process is a worker's own metrics.
type process struct {
	pod string
	cpu *time.Duration // of the process, whichever connection reads it
}

func (p process) ID() string                     { return p.pod }
func (p process) Started() (time.Time, error)    { return time.Unix(1, 0), nil }
func (p process) ExitCPU() (time.Duration, bool) { return 0, false }
func (p process) Read() (measure.Reading, error) {
	return measure.Reading{At: time.Now(), CPU: *p.cpu}, nil
}

// The usage of an index is the sum over its pods, and each counts once, also if scaler has connected to
// the same pod again.
func TestUsage(t *testing.T) {
	g := NewWithT(t)
	cpu := map[string]*time.Duration{"a": new(30 * time.Second), "b": new(time.Second)}
	j := &Job{places: map[int]Place{}}
	u := &usage{job: j, of: func(p Place) measure.Source { return process{p.Pod, cpu[p.Pod]} }}
	read := func(p Place) time.Duration {
		j.places[0] = p
		r, err := u.Read()
		g.Expect(err).NotTo(HaveOccurred())
		return r.CPU
	}
	g.Expect(measure.Remote(u).Remote()).To(BeTrue())
	g.Expect(read(Place{Pod: "a", forward: new(existing.Forwarded)})).To(Equal(30 * time.Second))
	*cpu["a"] = 31 * time.Second
	g.Expect(read(Place{Pod: "a", forward: new(existing.Forwarded)})).To(Equal(31*time.Second), "connected again")
	g.Expect(read(Place{Pod: "b", forward: new(existing.Forwarded)})).To(Equal(32*time.Second), "the pod that took its place")
}
