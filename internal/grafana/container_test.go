package grafana

import (
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("RemoveContainer", func() {
	var dir, calls string
	BeforeEach(func() {
		dir = GinkgoT().TempDir()
		calls = filepath.Join(dir, "calls")
		GinkgoT().Setenv("PATH", filepath.Join(dir, "bin"))
	})
	docker := func(lines string) {
		GinkgoHelper()
		script(filepath.Join(dir, "bin"), "docker", fmt.Sprintf("echo \"$@\" >> %s; %s", calls, lines))
	}

	It("asks nobody where there was none", func(ctx SpecContext) {
		Expect(Container(dir)).To(BeEmpty())
		Expect(RemoveContainer(ctx, dir)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, containerFile), nil, 0o644)).To(Succeed())
		Expect(RemoveContainer(ctx, dir)).To(Succeed())
		Expect(calls).NotTo(BeAnExistingFile())
	})

	It("removes the one that was named, and no other", func(ctx SpecContext) {
		docker("")
		name, err := nameContainer(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(nameContainer(GinkgoT().TempDir())).NotTo(Equal(name))
		Expect(RemoveContainer(ctx, dir)).To(Succeed())
		Expect(os.ReadFile(calls)).To(BeEquivalentTo("rm --force " + name + "\n"))
	})

	It("takes one that is gone for removed", func(ctx SpecContext) {
		docker("echo 'Error response from daemon: No such container: it' >&2; exit 1")
		_, err := nameContainer(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(RemoveContainer(ctx, dir)).To(Succeed())
	})

	It("says why it was not removed", func(ctx SpecContext) {
		name, err := nameContainer(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(RemoveContainer(ctx, dir)).To(MatchError(And(ContainSubstring("removing container "+name), ContainSubstring("docker"))))
		docker("echo 'Cannot connect to the Docker daemon' >&2; exit 1")
		Expect(RemoveContainer(ctx, dir)).To(MatchError("removing container " + name + ": Cannot connect to the Docker daemon"))
	})

	It("removes nothing that is not scaler's", func(ctx SpecContext) {
		docker("")
		for _, name := range []string{"database", "--volumes", "scaler-grafana-1", "scaler-grafana-abcdefghijklmnopqrstuvwxyz database"} {
			Expect(os.WriteFile(filepath.Join(dir, containerFile), []byte(name), 0o644)).To(Succeed())
			Expect(RemoveContainer(ctx, dir)).To(MatchError(ContainSubstring("no container of scaler's")))
		}
		Expect(calls).NotTo(BeAnExistingFile())
	})
})
