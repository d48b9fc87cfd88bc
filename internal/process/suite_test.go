package process_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/process"
)

// ownerVariable makes the test binary an owner of a group instead: its value
// is the group's folder, and a mode.
const ownerVariable = "SCALER_TEST_OWNER"

func TestMain(m *testing.M) {
	if v := os.Getenv(ownerVariable); v != "" {
		dir, mode, _ := strings.Cut(v, "|")
		own(dir, mode)
	}
	os.Exit(m.Run())
}

func TestProcess(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second) // each waits for what must come
	RunSpecs(t, "Process")
}

// own opens a group with two children, one of which has a child itself, says
// so on stdout and waits to be killed.
func own(dir, mode string) {
	check := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	keep := strings.HasPrefix(mode, "keep")
	g, err := process.OpenGroup(dir, process.GroupOptions{Keep: keep, Prioritize: strings.Contains(mode, "prioritized")})
	check(err)
	_, err = g.Start(process.Spec{Name: "one", Path: "/bin/sleep", Args: []string{"1000"}})
	check(err)
	if keep {
		_, err = g.Start(process.Spec{Name: "two", Path: "/bin/sh", Args: []string{"-c", "sleep 1000 & sleep 1000"}})
		check(err)
	}
	if mode == "limited" {
		_, err = g.Start(process.Spec{Name: "limited", Path: "/bin/sleep", Args: []string{"1000"}, MemoryLimit: 64 << 20})
		check(err)
	}
	if strings.Contains(mode, "prioritized") {
		_, err = g.Start(process.Spec{Name: "last", Path: "/bin/sleep", Args: []string{"1000"}, Priority: process.PriorityLast})
		check(err)
	}
	if strings.HasPrefix(mode, "keep-marked") {
		check(g.MarkKept())
	}
	fmt.Println("ready")
	select {}
}
