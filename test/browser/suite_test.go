//go:build e2e

package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

var (
	chromium string // program
	axe      string // source
	scaler   string // program
)

func TestBrowser(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Browser", Label("e2e"))
}

var _ = BeforeSuite(func() {
	setup := exec.Command("../../hack/setup-browser.sh")
	setup.Stderr = GinkgoWriter
	out, err := setup.Output()
	Expect(err).NotTo(HaveOccurred(), "hack/setup-browser.sh lists what is missing")
	paths := strings.Fields(string(out))
	Expect(paths).To(HaveLen(2))
	source, err := os.ReadFile(paths[1])
	Expect(err).NotTo(HaveOccurred())
	chromium, axe = paths[0], string(source)
	if scaler = os.Getenv("SCALER_E2E_BINARY"); scaler == "" {
		scaler, err = gexec.Build("scaler.mesh/scaler/cmd/scaler")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(gexec.CleanupBuildArtifacts)
	}
})

// report returns the page of `scaler report` about these folders.
func report(dirs ...string) string { return pageOf("report", dirs...) }

// pageOf returns the page that a command makes of folders.
func pageOf(command string, dirs ...string) string {
	GinkgoHelper()
	page, err := exec.Command(scaler, append([]string{command, "-o", "html"}, dirs...)...).Output()
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(GinkgoT().TempDir(), command+".html")
	Expect(os.WriteFile(path, page, 0o644)).To(Succeed())
	return path
}

// browser starts Chromium, which ends with the spec.
func browser() context.Context {
	GinkgoHelper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium),
		chromedp.WindowSize(1280, 900),
	)
	limited, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	allocator, end := chromedp.NewExecAllocator(limited, options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	DeferCleanup(func() {
		closeTab()
		end()
		stop()
	})
	return ctx
}
