//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/process"
)

var _ = Describe("a cluster whose owner", func() {
	var (
		root, dir string
		owner     *exec.Cmd
	)
	// startOwner starts a program that starts a cluster, and returns when it
	// has printed the given line.
	startOwner := func(mode, until string) {
		GinkgoHelper()
		owner = exec.Command(os.Args[0])
		owner.Env = append(os.Environ(), ownerVariable+"="+root+"|one|"+mode)
		out, err := owner.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(owner.Start()).To(Succeed())
		printed := ""
		for lines := bufio.NewScanner(out); printed != until && lines.Scan(); {
			printed = lines.Text()
		}
		Expect(printed).To(Equal(until))
	}
	// kill kills the owner alone.
	kill := func() {
		GinkgoHelper()
		Expect(owner.Process.Kill()).To(Succeed())
		Expect(owner.Wait()).To(MatchError(ContainSubstring("killed")))
	}
	// cleanUp does what the command of that name does.
	cleanUp := func(ctx context.Context) int {
		GinkgoHelper()
		orphans, err := process.Orphans(root)
		Expect(err).NotTo(HaveOccurred())
		for _, o := range orphans {
			Expect(o.Remove(ctx)).To(Succeed())
		}
		return len(orphans)
	}
	BeforeEach(func() {
		root = GinkgoT().TempDir()
		dir = filepath.Join(root, "one")
		DeferCleanup(func(ctx SpecContext) { // when a spec failed
			if s, err := process.Inspect(dir); err == nil {
				Expect(s.Remove(ctx)).To(Succeed())
			}
		})
	})

	It("was killed dies with it, and cleanup removes its folder", func(ctx SpecContext) {
		startOwner("", "ready")
		Expect(markedIn(dir)()).To(HaveLen(5))
		kill()
		Eventually(markedIn(dir)).Should(BeEmpty())
		Eventually(func() (cluster.State, error) {
			all, err := cluster.List(root)
			return all[0].State, err
		}).Should(Equal(cluster.Stopped))
		_, err := process.OpenGroup(dir, process.GroupOptions{})
		Expect(err).To(MatchError(ContainSubstring("scaler cleanup")))
		Expect(cleanUp(ctx)).To(Equal(1))
		Expect(dir).NotTo(BeADirectory())
	})

	It("was killed while it started dies with it", func(ctx SpecContext) {
		startOwner("", "starting kwok")
		kill()
		Eventually(markedIn(dir)).Should(BeEmpty())
		Expect(cleanUp(ctx)).To(Equal(1))
		Expect(dir).NotTo(BeADirectory())
	})

	It("was killed before it released a cluster to keep is stopped by cleanup", func(ctx SpecContext) {
		startOwner("keep", "ready")
		kill()
		Expect(markedIn(dir)()).To(HaveLen(5))
		Expect(cleanUp(ctx)).To(Equal(1))
		Expect(markedIn(dir)()).To(BeEmpty())
		Expect(dir).NotTo(BeADirectory())
	})

	It("released it lives on until it is stopped", func(ctx SpecContext) {
		startOwner("release", "waiting for a first pod to run")
		Expect(owner.Wait()).To(Succeed())
		Expect(cleanUp(ctx)).To(BeZero())
		Expect(markedIn(dir)()).To(HaveLen(5))
		all, err := cluster.List(root)
		Expect(err).NotTo(HaveOccurred())
		Expect(all[0].State).To(Equal(cluster.Running))
		Expect(all[0].Kept).To(BeTrue())
		Expect(all[0].Owner).To(BeZero())
		_, err = process.OpenGroup(dir, process.GroupOptions{})
		Expect(err).To(MatchError(ContainSubstring("kept")))
		start := time.Now()
		Expect(cluster.Stop(ctx, root, "one")).To(Succeed())
		AddReportEntry("stop", time.Since(start).String())
		Expect(markedIn(dir)()).To(BeEmpty())
		Expect(dir).NotTo(BeADirectory())
	})
})
