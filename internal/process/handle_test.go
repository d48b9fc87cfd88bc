package process_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/process"
)

var _ = Describe("a handle", func() {
	It("refers to this program", func() {
		self := process.Self()
		Expect(self).To(Equal(process.Find(os.Getpid())))
		Expect(self.PID()).To(Equal(os.Getpid()))
		Expect(self.StartTicks()).NotTo(BeZero())
		_, ended := self.ExitCPU()
		Expect(ended).To(BeFalse())
		Expect(json.Marshal(self)).To(BeEquivalentTo(strconv.Itoa(os.Getpid())))
	})

	It("refers to a child, also after its end", func(ctx SpecContext) {
		group, err := process.OpenGroup(filepath.Join(GinkgoT().TempDir(), "group"), process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(group.Remove(ctx)).To(Succeed()) })
		child, err := group.Start(process.Spec{Name: "child", Path: "/bin/sh", Args: []string{"-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 1000"}})
		Expect(err).NotTo(HaveOccurred())
		handle := child.Handle()
		Expect(handle.String()).To(Equal(process.Find(child.PID()).String()))
		_, ended := handle.ExitCPU()
		Expect(ended).To(BeFalse())

		child.Kill()
		<-child.Done()
		_, ended = handle.ExitCPU()
		Expect(ended).To(BeTrue())
		Expect(handle).To(Equal(child.Handle()))
		_, accounted := handle.WithoutExitCPU().ExitCPU()
		Expect(accounted).To(BeFalse())
		Expect(process.Find(child.PID()).StartTicks()).To(BeZero())
	})
})
