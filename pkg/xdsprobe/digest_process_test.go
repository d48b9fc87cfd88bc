package xdsprobe

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
)

const digestEnv = "XDSPROBE_TEST_DIGESTS"

// digestsOf returns the digests by which this process knows the contents of withMaps,
// one a line.
func digestsOf(t testing.TB) (lines []string) {
	store := NewStore()
	for _, name := range slices.Sorted(maps.Keys(withMaps)) {
		test := withMaps[name]
		r, err := store.resource(kindOf(test.kind), &body{name: []byte("a"), present: true, resource: packed{value: marshal(t, test.with(t, "p"))}})
		if err != nil {
			t.Fatal(err)
		}
		content := "none"
		if r.Content != nil {
			content = fmt.Sprintf("%016x", r.Content.Digest)
		}
		lines = append(lines, fmt.Sprintf("digest of %s: %016x, its content's: %s", name, r.sum, content))
	}
	return lines
}

const digestsOfAnother = "has the digests of another process"

// A content that two processes receive has one digest, whatever the order of maps.
var _ = It(digestsOfAnother, func() {
	t := GinkgoTB()
	ours := digestsOf(t)
	if os.Getenv(digestEnv) != "" {
		fmt.Println("\n" + strings.Join(ours, "\n")) // for the process that started this one
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestXDSProbe$", "-ginkgo.focus="+digestsOfAnother)
	cmd.Env = append(os.Environ(), digestEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var theirs []string
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "digest of ") {
			theirs = append(theirs, lines.Text())
		}
	}
	if !slices.Equal(ours, theirs) {
		t.Errorf("this process has\n%s\nanother has\n%s", strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
	if all := strings.Join(ours, "\n"); !strings.Contains(all, "endpoints: ") || strings.Contains(all, "0000000000000000") {
		t.Errorf("a content has no digest:\n%s", all)
	}
})

// The digest of a message without maps is XXH64 of its bytes: what another program
// computes too.
var _ = It("has XXH64 as the digest", func() {
	t := GinkgoTB()
	const empty = 0xef46db3751d8e999 // of no bytes, with seed 0
	if got := (*shape)(nil).digest(nil); got != empty {
		t.Errorf("digest %x, want %x", got, uint64(empty))
	}
})
