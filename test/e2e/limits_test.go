//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/series/limits"
	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("limits", func() {
	It("are searched by runs with records, and are resumed", func() {
		where := newPlace()
		// istiod: its debounce is longer than scaler takes to see that a change is made. The reference control plane
		// pushes so early that its pushes may not be known.
		once := func(runs int) (int, limits.Result) {
			session := where.start("limits", "--dilate", "1", "--pods", "10", "--slo", "push.p50<10s", "--out", where.out,
				"--change", "2/s", "--max", "4/s", "--change-duration", "3s", "--baseline", "1s", "--settle", "1s", "--steady", "1s", "--max-runs", strconv.Itoa(runs))
			code := wait(session)
			text, err := os.ReadFile(filepath.Join(where.out, limits.FileName))
			Expect(err).NotTo(HaveOccurred())
			var r limits.Result
			Expect(json.Unmarshal(text, &r)).To(Succeed())
			return code, r
		}
		// A run whose changes a busy machine made too slowly, or that saw the start of pushes too late, decides nothing, and is made again: it is
		// the last of those of a search, and those that decide are so many in the end.
		search := func(runs int) (code int, r limits.Result) {
			for undecided := range 5 {
				code, r = once(runs + undecided)
				if r.Status != limits.Undecided {
					break
				}
				last := r.Runs[len(r.Runs)-1]
				if strings.Contains(last.Why, "more slowly than asked") {
					continue
				}
				Expect(last.Why).To(ContainSubstring("the run did not measure it"))
				run, err := record.Read(filepath.Join(where.out, last.Record))
				Expect(err).NotTo(HaveOccurred())
				Expect(run).To(HaveLen(1))
				Expect(known(run[0].Change).Push.Unknown()).To(BeTrue(), "what it did not measure")
			}
			r.Runs = slices.DeleteFunc(r.Runs, func(t limits.Tried) bool { return t.Outcome == limits.Unknown })
			return code, r
		}
		code, r := search(1)
		Expect(code).To(Equal(exitUndecided))
		Expect(r.Status).To(Equal(limits.MaxRunsDone))
		Expect(r.Runs).To(HaveLen(1))

		code, r = search(5)
		Expect(code).To(Equal(exitDone))
		Expect(r.Status).To(Equal(limits.MetThroughout))
		Expect(*r.Bracket.Passes).To(Equal(4.0))
		Expect(r.Bracket.Fails).To(BeNil())
		Expect(r.Runs).To(HaveLen(2))
		for _, one := range r.Runs {
			Expect(one.Outcome).To(Equal(limits.Met))
			runs, err := record.Read(filepath.Join(where.out, one.Record))
			Expect(err).NotTo(HaveOccurred())
			Expect(runs).To(HaveLen(1))
			Expect(known(known(runs[0].Change).OfferedPerSecond)).To(Equal(one.Value))
			Expect(runs[0].Value(r.Figure)).To(HaveValue(Equal(*one.Figure)))
		}
		where.expectNothingLeft()
	})
})
