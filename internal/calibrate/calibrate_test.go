package calibrate

import (
	"context"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("calibrating", func() {
	var spec Spec
	BeforeEach(func() {
		before := goleak.IgnoreCurrent()
		DeferCleanup(func() { Eventually(func() error { return goleak.Find(before) }).Should(Succeed()) })
		spec = DefaultSpec()
		spec.Sidecars, spec.Services, spec.Changes = []int{20}, 4, 3
		spec.Hold = 200 * time.Millisecond
		spec.State, spec.Programs.CacheDir = GinkgoT().TempDir(), GinkgoT().TempDir()
	})
	calibrate := func() record.CalibrationPoint {
		GinkgoHelper()
		c, err := Run(context.Background(), spec, func(string) {})
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Points).To(HaveLen(1))
		Expect(os.ReadDir(spec.State + "/calibrations")).To(BeEmpty())
		return c.Points[0]
	}
	kept := func() record.Calibration {
		GinkgoHelper()
		c, err := Cached(spec.Programs)
		Expect(err).NotTo(HaveOccurred())
		return c
	}

	for _, variant := range []string{"delta", "sotw"} {
		It("follows every change to every sidecar, and is kept, "+variant, func() {
			spec.XDS = variant
			p := calibrate()
			Expect(p.Latencies.Certificate.Count).To(BeEquivalentTo(20))
			for _, kind := range endpointChanges {
				Expect(p.Latencies.Push[kind].Count).To(BeEquivalentTo(3*20), string(kind))
				Expect(p.Latencies.Push[kind].Lost).To(BeZero())
				Expect(p.Latencies.Propagation[kind].First.Count).To(BeEquivalentTo(3))
				Expect(p.Latencies.Propagation[kind].Last.Count).To(BeEquivalentTo(3))
				Expect(*p.Latencies.Propagation[kind].Last.Max).To(Equal(*p.Latencies.Push[kind].Max))
				Expect(*p.Latencies.Propagation[kind].First.Min).To(Equal(*p.Latencies.Push[kind].Min))
			}
			floor := new(kept()).Floor(variant, 20)
			Expect(floor).To(HaveKey("latencies.certificate.p50"))
			Expect(floor).To(HaveKeyWithValue("latencies.propagation.endpointRemove.last.p50", *p.Latencies.Propagation[record.EndpointRemove].Last.P50))
			Expect(floor).To(HaveKey("instrument.bytesPerSidecar"))

			By("keeping what another adds")
			spec.Sidecars = []int{30}
			calibrate()
			Expect(kept().Points).To(HaveLen(2))
		})
	}

	It("shows a known delay", func() {
		spec.Delay = 150 * time.Millisecond
		p := calibrate()
		for _, kind := range endpointChanges {
			Expect(p.Latencies.Push[kind].Count).To(BeEquivalentTo(3 * 20))
			Expect(*p.Latencies.Push[kind].Min).To(BeNumerically(">=", 0.150))
		}
		Expect(kept().Points).To(BeEmpty())
	})

	It("loses what is dropped, no more and no less", func() {
		spec.Drop, spec.Timeout = 0.2, 300*time.Millisecond
		// An update that is late is lost as well, by definition, and on a busy machine any may be
		// late. With a limit that is long enough none is.
		Eventually(func(g Gomega) {
			p := calibrate()
			spec.Timeout *= 2 // for the next
			var lost, count int64
			for _, kind := range endpointChanges {
				lost += p.Latencies.Push[kind].Lost
				count += p.Latencies.Push[kind].Count
			}
			Expect(lost + count).To(BeEquivalentTo(3 * 3 * 20))
			Expect(*p.Dropped).To(BeNumerically(">", 0))
			Expect(lost).To(BeNumerically(">=", *p.Dropped), "what is dropped never comes")
			g.Expect(lost).To(BeEquivalentTo(*p.Dropped))
		}).WithTimeout(2 * time.Minute).Should(Succeed())
	})

	It("ends with its context, and leaves nothing", func() {
		ctx, cancel := context.WithCancel(context.Background())
		begun := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			_, err := Run(ctx, spec, func(string) { close(begun) })
			done <- err
		}()
		Eventually(begun).Should(BeClosed())
		cancel()
		Eventually(done).Should(Receive(MatchError(context.Canceled)))
		entries, _ := os.ReadDir(spec.State + "/calibrations") // not made, or empty
		Expect(entries).To(BeEmpty())
	})
})
