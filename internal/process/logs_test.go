package process_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/process"
)

var _ = Describe("logs of what is kept", func() {
	It("are shortened while a child writes to them, and their end is kept once", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		log := filepath.Join(dir, "log")
		group, err := process.OpenGroup(filepath.Join(dir, "group"), process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = group.Start(process.Spec{Name: "writer", Path: "/bin/sh", Log: log, Args: []string{"-c",
			"i=0; while :; do i=$((i+1)); echo line $i; done"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(group.Logs()).To(Equal([]string{log}))

		capping, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		const limit = 10_000
		go func() {
			done <- process.CapLogs(capping, append(group.Logs(), filepath.Join(dir, "not-there")), limit, 10*time.Millisecond)
		}()
		Eventually(log + ".1").Should(BeAnExistingFile())
		first, err := os.ReadFile(log + ".1")
		Expect(err).NotTo(HaveOccurred())
		Expect(len(first)).To(BeNumerically("~", limit, limit))
		Expect(strings.Count(string(first), "line ")).To(BeNumerically(">", 100))
		Eventually(func() ([]byte, error) { return os.ReadFile(log + ".1") }).ShouldNot(Equal(first))
		// What is written after a log was emptied begins at its start: there is no hole.
		Eventually(func() (string, error) {
			data, err := os.ReadFile(log)
			return string(data[:min(len(data), 5)]), err
		}).Should(ContainSubstring("line"))
		stop()
		Expect(<-done).To(Succeed())
		Expect(group.Remove(ctx)).To(Succeed())
		Expect(os.ReadDir(dir)).To(HaveLen(2), "no temporary files are left")
	})
})
