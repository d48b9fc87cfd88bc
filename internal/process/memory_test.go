package process_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/process"
)

// limitedGroups returns the control groups there are of children called limited.
func limitedGroups() (found []string) {
	GinkgoHelper()
	for _, root := range []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup"} {
		all, err := filepath.Glob(root + "/scaler-*-limited")
		Expect(err).NotTo(HaveOccurred())
		found = append(found, all...)
	}
	return found
}

var _ = Describe("A child with a memory limit", func() {
	var group *process.Group
	var dir string

	BeforeEach(func() {
		if err := process.CanLimitMemory(); err != nil {
			Skip("memory cannot be limited here: " + err.Error())
		}
		var err error
		dir = GinkgoT().TempDir()
		group, err = process.OpenGroup(dir, process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(group.Stop(ctx)).To(Succeed())
			Expect(limitedGroups()).To(BeEmpty())
		})
	})

	limited := func(script string) *process.Process {
		spec := shell("limited", dir, script)
		spec.MemoryLimit = 32 << 20
		p, err := group.Start(spec)
		Expect(err).NotTo(HaveOccurred())
		return p
	}

	It("is killed by the kernel when it exceeds it, and says so", func() {
		p := limited(`x=$(head -c 100000000 /dev/zero | tr '\0' x); echo "held ${#x}"; exec sleep 1000`)
		Eventually(p.Done(), "20s").Should(BeClosed())
		Expect(p.Err()).To(MatchError("limited was killed by the kernel: out of memory at its limit of 32 MiB"))
		Expect(limitedGroups()).To(BeEmpty())
	})

	It("runs within it, and any other end is not called so", func() {
		p := limited(`exec sleep 1000`)
		Expect(limitedGroups()).NotTo(BeEmpty())
		process, err := os.FindProcess(p.PID())
		Expect(err).NotTo(HaveOccurred())
		Expect(process.Kill()).To(Succeed())
		Eventually(p.Done()).Should(BeClosed())
		Expect(strings.ToLower(p.Err().Error())).To(ContainSubstring("signal: killed"))
	})

	It("leaves no control group when its program is not there", func() {
		_, err := group.Start(process.Spec{Name: "limited", Path: filepath.Join(dir, "none"), MemoryLimit: 32 << 20})
		Expect(err).To(HaveOccurred())
		Expect(limitedGroups()).To(BeEmpty())
	})
})
