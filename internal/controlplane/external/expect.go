package external

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"scaler.mesh/scaler/internal/boundedfile"
	"scaler.mesh/scaler/internal/nodetemplate"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
)

// Expectations state what each sidecar must receive, as read from a file:
//
//	sidecars:
//	  - of: "*/*"                    # sidecars of services NAMESPACE/NAME that match
//	    resources:
//	      - type: LDS
//	        name: outbound
//	      - type: EDS
//	        name: "{{.Namespace}}/{{.Service}}:{{.Port}}"
//	        each: "*/*"              # one for each port of the services that match
//	        endpoints: true          # that lists the endpoints that the API server lists
//
// Patterns follow path.Match. each is a pattern, "own" for the sidecar's own
// service, or "calls" for the services that it calls. Names are Go templates of the
// service port that each names, or, without each, of the sidecar's own service: Namespace,
// Service, Port (its name) and Number. A sidecar must receive the resources of all entries
// that match it.
type Expectations struct {
	// Digest is the first 12 digits of the SHA-256 of the file.
	Digest  string
	entries []entry
}

// entry states what the sidecars of some services must receive.
type entry struct {
	Of        string     `yaml:"of"`
	Resources []resource `yaml:"resources"`
}

type resource struct {
	Type      string `yaml:"type"`
	Name      string `yaml:"name"`
	Each      string `yaml:"each"`
	Endpoints bool   `yaml:"endpoints"`

	name *template.Template
}

// The values of each that are no pattern.
const (
	eachOwn   = "own"
	eachCalls = "calls"
)

// types are the types that a sidecar requests.
var types = [...]convergence.Type{convergence.CDS, convergence.EDS, convergence.LDS, convergence.RDS, convergence.ECDS}

// expectedPort has the fields that the template of a name can use.
type expectedPort struct {
	Namespace, Service, Port string
	Number                   int
}

// maxFile is more bytes than expectations have.
const maxFile = 8 << 20

// ReadExpectations reads a file. Its errors name the field of the scenario, the file and the line.
func ReadExpectations(file string) (*Expectations, error) {
	text, err := boundedfile.Read(file, maxFile)
	if err != nil {
		return nil, fmt.Errorf("%sexpect: got %q: %w", field, file, boundedfile.Cause(err))
	}
	e, err := parseExpectations(text)
	if err != nil {
		return nil, fmt.Errorf("%sexpect: got %q: %w", field, file, err)
	}
	return e, nil
}

func parseExpectations(text []byte) (*Expectations, error) {
	var parsed struct {
		Sidecars []entry `yaml:"sidecars"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&parsed); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New(strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one document in it")
	}
	sum := sha256.Sum256(text)
	e := &Expectations{Digest: hex.EncodeToString(sum[:6]), entries: parsed.Sidecars}
	if len(e.entries) == 0 {
		return nil, errors.New("want sidecars in it, and what they must receive")
	}
	lines := linesOf(text)
	for i := range e.entries {
		if err := e.entries[i].check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", lines[[2]int{i, -1}], err)
		}
		for j := range e.entries[i].Resources {
			if err := e.entries[i].Resources[j].check(); err != nil {
				return nil, fmt.Errorf("line %d: %w", lines[[2]int{i, j}], err)
			}
		}
	}
	return e, nil
}

func (e *entry) check() error {
	if e.Of == "" {
		e.Of = "*/*"
	}
	if _, err := path.Match(e.Of, "a/b"); err != nil || strings.Count(e.Of, "/") != 1 {
		return fmt.Errorf("of %q: want a pattern of NAMESPACE/SERVICE, as in mesh-0/*", e.Of)
	}
	if len(e.Resources) == 0 {
		return errors.New("no resources: want those that the sidecars must receive")
	}
	return nil
}

func (r *resource) check() (err error) {
	if !slices.Contains(types[:], convergence.TypeOf(r.Type)) {
		return fmt.Errorf("type %q: want CDS, EDS, LDS, RDS or ECDS", r.Type)
	}
	if r.Name == "" {
		return errors.New(`name "": want that of a resource, or a template of it`)
	}
	if _, err := path.Match(r.Each, "a/b"); err != nil || r.Each != "" && r.Each != eachOwn && r.Each != eachCalls && strings.Count(r.Each, "/") != 1 {
		return fmt.Errorf("each %q: want own, calls or a pattern of NAMESPACE/SERVICE, as in */*", r.Each)
	}
	if r.Endpoints && (convergence.TypeOf(r.Type) != convergence.EDS || r.Each == "") {
		return errors.New("endpoints true: want it with type EDS and each, which states the services")
	}
	if r.name, err = nodetemplate.Parse("name", r.Name); err != nil {
		return fmt.Errorf("name %q: %w", r.Name, err)
	}
	if _, err := r.nameOf(expectedPort{Namespace: "namespace", Service: "service", Port: "http", Number: 80}); err != nil {
		return err
	}
	return nil
}

func (r *resource) nameOf(p expectedPort) (string, error) {
	name, err := nodetemplate.Execute(r.name, p)
	if err != nil {
		return "", fmt.Errorf("name %q: %w", r.Name, err)
	}
	return name, nil
}

// linesOf returns the lines of entries {i, -1} and of their resources {i, j}.
func linesOf(text []byte) map[[2]int]int {
	lines := map[[2]int]int{}
	var document yaml.Node
	if yaml.Unmarshal(text, &document) != nil || len(document.Content) == 0 {
		return lines
	}
	for i, of := range items(document.Content[0], "sidecars") {
		lines[[2]int{i, -1}] = of.Line
		for j, r := range items(of, "resources") {
			lines[[2]int{i, j}] = r.Line
		}
	}
	return lines
}

// items returns the items of the list that a mapping has under a key.
func items(mapping *yaml.Node, key string) []*yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1].Content
		}
	}
	return nil
}

// Wants returns the resources that every sidecar of the service with this index must receive.
func (e *Expectations) Wants(mesh topology.Mesh, service int) []convergence.Want {
	own := mesh.Services[service]
	var wants []convergence.Want
	for _, entry := range e.entries {
		if !matches(entry.Of, own) {
			continue
		}
		for i := range entry.Resources {
			wants = append(wants, entry.Resources[i].wants(mesh, own)...)
		}
	}
	return wants
}

func matches(pattern string, s topology.Service) bool {
	ok, _ := path.Match(pattern, s.Namespace+"/"+s.Name) // the pattern was checked
	return ok
}

// wants returns what a resource of the file means for the sidecars of one service.
func (r *resource) wants(mesh topology.Mesh, own topology.Service) []convergence.Want {
	var services []topology.Service
	switch r.Each {
	case "":
		return []convergence.Want{r.want(expectedPort{Namespace: own.Namespace, Service: own.Name})}
	case eachOwn:
		services = []topology.Service{own}
	case eachCalls:
		for _, i := range own.Calls {
			services = append(services, mesh.Services[i])
		}
	default:
		for _, s := range mesh.Services {
			if matches(r.Each, s) {
				services = append(services, s)
			}
		}
	}
	var wants []convergence.Want
	for _, s := range services {
		for _, p := range s.Ports {
			wants = append(wants, r.want(expectedPort{s.Namespace, s.Name, p.Name, p.Number}))
		}
	}
	return wants
}

func (r *resource) want(p expectedPort) convergence.Want {
	name, _ := r.nameOf(p) // it was checked
	w := convergence.WantOf(convergence.TypeOf(r.Type), name)
	if r.Endpoints {
		w.Service = p.Namespace + "/" + p.Service + ":" + p.Port
	}
	return w
}
