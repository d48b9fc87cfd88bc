package external

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
)

// mesh has the services a/one, with two ports, and b/two, which calls it.
var mesh = topology.Mesh{Services: []topology.Service{
	{Namespace: "a", Name: "one", Ports: []topology.Port{{Name: "http", Number: 80}, {Name: "admin", Number: 81}}},
	{Namespace: "b", Name: "two", Ports: []topology.Port{{Name: "http", Number: 80}}, Calls: []int{0}},
}}

func wanted(wants []convergence.Want) []string {
	var all []string
	for _, w := range wants {
		text := w.Key.String()
		if w.Service != "" {
			text += " = " + w.Service
		}
		all = append(all, text)
	}
	return all
}

func TestExpectations(t *testing.T) {
	e, err := parseExpectations([]byte(`
sidecars:
  - resources:
      - {type: LDS, name: "{{.Service}}"}
      - {type: CDS, name: "in|{{.Number}}", each: own}
  - of: "b/*"
    resources:
      - {type: CDS, name: "out|{{.Port}}|{{.Service}}.{{.Namespace}}", each: calls}
      - {type: EDS, name: "{{.Service}}", each: "b/*", endpoints: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	for service, want := range [][]string{
		{"LDS one", "CDS in|80", "CDS in|81"},
		{"LDS two", "CDS in|80", "CDS out|http|one.a", "CDS out|admin|one.a", "EDS two = b/two:http"},
	} {
		if diff := cmp.Diff(want, wanted(e.Wants(mesh, service))); diff != "" {
			t.Errorf("service %d (-want +got):\n%s", service, diff)
		}
	}
}

// The example is a file that can be read.
func TestExampleOfExpectations(t *testing.T) {
	e, err := ReadExpectations("testdata/expect.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(e.Wants(mesh, 0)); got != 3+2*3 || len(e.Digest) != 12 {
		t.Errorf("%d resources, digest %q", got, e.Digest)
	}
}

func TestExpectationsThatAreWrong(t *testing.T) {
	const head = "sidecars:\n  - of: \"*/*\"\n    resources:\n"
	for text, want := range map[string]string{
		"":                      "want sidecars in it",
		"sidecars: []":          "want sidecars in it",
		"sidecars:\n  - off: x": "line 2: field off not found",
		"sidecars: [":           "line 1",
		"sidecars:\n  - of: mesh-0\n    resources: [{type: CDS, name: x}]":              `line 2: of "mesh-0"`,
		"sidecars:\n  - of: \"*/*\"":                                                    "line 2: no resources",
		head + "      - type: CDS\n        name: x\n      - type: cds\n        name: x": `line 6: type "cds": want CDS`,
		head + "      - type: CDS":                                                      `line 4: name ""`,
		head + "      - {type: CDS, name: x, each: all}":                                `line 4: each "all"`,
		head + "      - {type: CDS, name: x, each: own, endpoints: true}":               "line 4: endpoints true",
		head + "      - {type: EDS, name: x, endpoints: true}":                          "line 4: endpoints true",
		head + "      - {type: CDS, name: \"{{.Nothing}}\"}":                            "line 4: name",
		head + "      - {type: CDS, name: \"{{\"}":                                      "line 4: name",
		head + "      - {type: CDS, name: x}\n---\nsidecars: []":                        "one document",
	} {
		file := filepath.Join(t.TempDir(), "expect.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadExpectations(file)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), fmt.Sprintf("controlPlane.connection.expect: got %q: ", file)) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		remote controlplane.Remote
		want   string
	}{
		"plaintext":       {controlplane.Remote{Address: "localhost:1", Plaintext: true}, ""},
		"no port":         {controlplane.Remote{Address: "localhost", Plaintext: true}, `controlPlane.name: got "xds://localhost"`},
		"no roots":        {controlplane.Remote{Address: "localhost:1"}, "controlPlane.connection.plaintext"},
		"roots too":       {controlplane.Remote{Address: "localhost:1", Plaintext: true, TLSCA: "x"}, `controlPlane.connection.tlsCA: got "x"`},
		"token too":       {controlplane.Remote{Address: "localhost:1", Plaintext: true, TokenFile: "x"}, `controlPlane.connection.tokenFile: got "x"`},
		"no such roots":   {controlplane.Remote{Address: "localhost:1", TLSCA: "gone"}, `controlPlane.connection.tlsCA: got "gone"`},
		"no template":     {controlplane.Remote{Address: "localhost:1", Plaintext: true, NodeID: "{{.X}}"}, "controlPlane.connection.nodeID"},
		"no object":       {controlplane.Remote{Address: "localhost:1", Plaintext: true, Metadata: "[]"}, "controlPlane.connection.metadata"},
		"no such expect":  {controlplane.Remote{Address: "localhost:1", Plaintext: true, Expect: "gone"}, `controlPlane.connection.expect: got "gone"`},
		"example expect":  {controlplane.Remote{Address: "localhost:1", Plaintext: true, Expect: "testdata/expect.yaml"}, ""},
		"half a key pair": {controlplane.Remote{Address: "localhost:1", TLSCA: "testdata/roots.pem", TLSCert: "x"}, `controlPlane.connection.tlsCA: got "testdata/roots.pem"`},
	} {
		err := Driver().External(tc.remote)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

// Whatever a file holds, it is read in little time and memory, to something that can be
// used, or to an error.
func FuzzParseExpectations(f *testing.F) {
	f.Add([]byte("sidecars:\n- of: '*/*'\n  resources:\n  - {type: EDS, name: '{{.Service}}', each: calls, endpoints: true}\n"))
	f.Add([]byte("sidecars: " + strings.Repeat("[", 100_000)))
	f.Add([]byte("sidecars: &a [*a]\n"))
	bomb := "a0: &a0 [x]\n"
	for i := range 40 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	f.Add([]byte(bomb + "sidecars: *a40\n"))
	f.Add([]byte("sidecars:\n- of: '['\n  resources:\n  - {type: CDS, name: '{{range .}}'}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := parseExpectations(text)
		if err != nil {
			return
		}
		for service := range mesh.Services {
			e.Wants(mesh, service)
		}
	})
}

func TestExpectationsFromElsewhere(t *testing.T) {
	dir := t.TempDir()
	fifo, huge, text := filepath.Join(dir, "fifo"), filepath.Join(dir, "huge"), filepath.Join(dir, "text")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.WriteFile(huge, nil, 0o600), os.Truncate(huge, 1<<40),
		os.WriteFile(text, []byte("sidecars:\n- of: '*/*'\n  resources:\n  - {type: XDS, name: x}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{fifo: "regular file", "/dev/zero": "regular file", huge: "want 8388608 at most", text: "line 4"} {
		if _, err := ReadExpectations(file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}
