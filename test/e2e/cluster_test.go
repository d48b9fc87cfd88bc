//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/component"
)

var _ = Describe("scaler cluster", func() {
	It("starts one that keeps running, shows its status and stops it", func() {
		where := newPlace()
		up := where.start("cluster", "up", "mine")
		Expect(wait(up)).To(Equal(exitDone))
		kubeconfig := strings.TrimSuffix(string(up.Out.Contents()), "\n")
		Expect(kubeconfig).To(BeARegularFile())
		const kept = 6 // the five programs, and what caps their logs
		Expect(where.children()).To(HaveLen(kept))

		status := where.start("cluster", "status", "-o", "json")
		Expect(wait(status)).To(Equal(exitDone))
		var list struct{ Items []cluster.Status }
		Expect(json.Unmarshal(status.Out.Contents(), &list)).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		Expect(list.Items[0].Name).To(Equal("mine"))
		Expect(list.Items[0].State).To(Equal(cluster.Running))
		Expect(list.Items[0].Kept).To(BeTrue())
		Expect(list.Items[0].Kubeconfig).To(Equal(kubeconfig))

		again := where.start("cluster", "up", "mine")
		Expect(wait(again)).To(Equal(exitFailed))
		cleanup := where.start("cleanup")
		Expect(wait(cleanup)).To(Equal(exitDone))
		Expect(where.children()).To(HaveLen(kept), "cleanup leaves alone what is kept")

		Expect(wait(where.start("cluster", "down", "mine"))).To(Equal(exitDone))
		where.expectNothingLeft()
		Expect(kubeconfig).NotTo(BeAnExistingFile())
	})

	It("is interrupted without a trace", func(ctx SpecContext) {
		where := newPlace()
		where.hold(ctx, component.Kwok)
		up := where.start("cluster", "up")
		Eventually(up.Err).Should(gbytes.Say("starting kwok"))
		interrupt(up)
		Expect(wait(up)).To(Equal(exitInterrupted))
		Expect(up.Out.Contents()).To(BeEmpty())
		where.expectNothingLeft()
	})
})
