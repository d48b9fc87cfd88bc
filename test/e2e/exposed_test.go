//go:build e2e

package e2e

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/test/exposure"
)

var _ = Describe("nothing is exposed", func() {
	It("13, 14: sockets listen on loopback, etcd wants a certificate, keys are the user's alone, secrets are in no record", func() {
		where := newPlace()
		secrets := exposure.Secrets{"hunter2hunter2": "the value of --control-plane-env"}
		cmd := where.command(where.referenceArgs("--steady", "1m", "--workers", "2", "--probes", "1", "--control-plane-env", "API_TOKEN")...)
		cmd.Env = append(cmd.Env, "API_TOKEN=hunter2hunter2")
		run := session(cmd)
		where.reach(run, record.PhaseSteady)

		By("looking at all sockets that it and its programs listen on, their arguments and its folder")
		sockets, exposed, err := exposure.OfRun(run.Command.Process.Pid, where.state, "../../docs/security.md", secrets)
		Expect(err).NotTo(HaveOccurred())
		Expect(exposed).To(BeEmpty())
		Expect(len(sockets)).To(BeNumerically(">", 10))
		for _, s := range sockets {
			if s.Network != "unix" {
				Expect(s.Address).To(HavePrefix("127.0.0.1:"))
			}
		}
		Expect(len(secrets)).To(BeNumerically(">", 10), "its keys were not found")

		By("asking etcd without a certificate")
		etcd, socket, _ := strings.Cut(where.argument("etcd", "--listen-client-urls="), ",")
		Expect(socket).To(Equal("unix://etcd.sock"), "in the folder of the cluster")
		Expect(where.groups()).To(HaveLen(1))
		folder, err := os.Stat(where.groups()[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(folder.Mode().Perm()).To(BeEquivalentTo(0o700))
		client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the client's certificate is what is missing
		}}
		_, err = client.Get(etcd + "/version")
		Expect(err).To(MatchError(ContainSubstring("certificate required")))
		_, err = client.Get(strings.Replace(etcd, "https:", "http:", 1) + "/version")
		Expect(err).To(HaveOccurred())

		signal(run, syscall.SIGINT)
		Expect(wait(run)).To(Equal(exitInterrupted))
		Expect(where.recorded().Environment.ControlPlane.Settings).To(HaveKeyWithValue("API_TOKEN", "(masked)"))
		Expect(secrets.InFolder(where.out)).To(BeEmpty())
		printed := append(run.Out.Contents(), run.Err.Contents()...)
		for _, format := range []string{"table", "json", "html"} {
			report := where.start("report", where.out, "-o", format)
			Expect(wait(report)).To(Equal(exitDone))
			printed = append(printed, report.Out.Contents()...)
		}
		Expect(secrets.In(printed)).To(BeEmpty())
	})

	It("15: records from elsewhere neither hang nor fill the memory", func() {
		where := newPlace()
		dir := filepath.Join(where.out, "run")
		Expect(os.MkdirAll(filepath.Join(dir, "latencies"), 0o755)).To(Succeed())
		content := `{"apiVersion": "scaler.mesh/v1", "kind": "Run", "schema": 4, "name": "x", "status": "completed", "reason": "\u001b]0;owned\u0007"}`
		Expect(os.WriteFile(filepath.Join(dir, "run.json"), []byte(content), 0o644)).To(Succeed())
		for _, name := range []string{"events.jsonl", "latencies/podReady.hgrm"} {
			Expect(syscall.Mkfifo(filepath.Join(dir, name), 0o600)).To(Succeed())
		}
		Expect(os.Symlink("/dev/zero", filepath.Join(dir, "timeline.jsonl"))).To(Succeed())
		for _, format := range []string{"table", "html", "json"} {
			report := where.start("report", where.out, "-o", format)
			wait(report)
			Expect(report.ExitCode()).To(BeElementOf(exitDone, exitFailed))
			Expect(string(report.Out.Contents()) + string(report.Err.Contents())).NotTo(ContainSubstring("\x1b]"))
		}
	})
})

// argument returns the text after a prefix in the arguments of a scaler's child.
func (p place) argument(name, prefix string) string {
	GinkgoHelper()
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.running(name)), "cmdline"))
	Expect(err).NotTo(HaveOccurred())
	for argument := range strings.SplitSeq(string(line), "\x00") {
		if value, ok := strings.CutPrefix(argument, prefix); ok {
			return value
		}
	}
	Fail(name + " has no " + prefix)
	return ""
}
