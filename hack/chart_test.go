package hack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/place/existing"
)

// chartFolder is the chart, and renderedFolder what Helm made of it: hack/chart/update.sh.
const (
	chartFolder    = "chart/scaler"
	renderedFolder = "chart/testdata"
)

// object is one of a rendered chart.
type object struct {
	kind, name string
	text       []byte // as JSON
}

// objects returns the objects of a stream of YAML documents, by kind and name.
func objects(t *testing.T, stream string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for document := range strings.SplitSeq("\n"+stream, "\n---\n") {
		var o struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		text, err := yaml.YAMLToJSON([]byte(document))
		if err == nil {
			err = json.Unmarshal(text, &o)
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if o.Kind != "" {
			all[o.Kind+" "+o.Metadata.Name] = object{o.Kind, o.Metadata.Name, text}
		}
	}
	return all
}

// decode reads an object of a rendered chart. Fields that its type does not have are errors.
func decode[T any](t *testing.T, o object) (decoded T) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(o.text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&decoded); err != nil {
		t.Fatalf("%s %s: %v", o.kind, o.name, err)
	}
	return decoded
}

// rendered returns what Helm made of the chart, with the values of a file.
func rendered(t *testing.T, name string) map[string]object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(renderedFolder, name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, string(text))
}

// merge puts values over others, as Helm does.
func merge(base, over map[string]any) map[string]any {
	merged := maps.Clone(base)
	for key, value := range over {
		inner, isMap := value.(map[string]any)
		if old, was := merged[key].(map[string]any); isMap && was {
			merged[key] = merge(old, inner)
			continue
		}
		merged[key] = value
	}
	return merged
}

func readValues(t *testing.T, file string) (values map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// render renders the chart as Helm does, with the functions of Helm that the chart uses.
func render(t *testing.T, values map[string]any) map[string]object {
	t.Helper()
	var chart struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	text, err := os.ReadFile(filepath.Join(chartFolder, "Chart.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &chart)
	}
	if err != nil {
		t.Fatal(err)
	}
	indent := func(n int, s string) string {
		return strings.Repeat(" ", n) + strings.ReplaceAll(s, "\n", "\n"+strings.Repeat(" ", n))
	}
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var b strings.Builder
			err := all.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"nindent": func(n int, s string) string { return "\n" + indent(n, s) },
		"default": func(other, v any) any {
			if v == nil || v == "" {
				return other
			}
			return v
		},
		"required": func(message string, v any) (any, error) {
			if v == nil || v == "" {
				return nil, errors.New(message)
			}
			return v, nil
		},
		"dict": func(pairs ...any) map[string]any {
			d := map[string]any{}
			for i := 0; i < len(pairs); i += 2 {
				d[pairs[i].(string)] = pairs[i+1]
			}
			return d
		},
		"join": func(separator string, list []any) string {
			var texts []string
			for _, v := range list {
				texts = append(texts, fmt.Sprint(v))
			}
			return strings.Join(texts, separator)
		},
		"quote":      func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"replace":    func(old, with, s string) string { return strings.ReplaceAll(s, old, with) },
		"trunc":      func(n int, s string) string { return s[:min(n, len(s))] },
		"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
		"contains":   func(part, s string) bool { return strings.Contains(s, part) },
	})
	files, err := filepath.Glob(filepath.Join(chartFolder, "templates", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d templates, %v", len(files), err)
	}
	if _, err := all.ParseFiles(files...); err != nil {
		t.Fatal(err)
	}
	data := map[string]any{
		"Values": values, "Chart": map[string]any{"Name": chart.Name, "Version": chart.Version},
		"Release": map[string]any{"Name": "scaler", "Namespace": "scaler", "Service": "Helm"},
	}
	var stream strings.Builder
	for _, file := range files {
		if filepath.Ext(file) != ".yaml" {
			if err := all.ExecuteTemplate(&strings.Builder{}, filepath.Base(file), data); err != nil {
				t.Fatal(err)
			}
			continue
		}
		stream.WriteString("---\n")
		if err := all.ExecuteTemplate(&stream, filepath.Base(file), data); err != nil {
			t.Fatal(err)
		}
		stream.WriteString("\n")
	}
	return objects(t, stream.String())
}

// What Helm made of the chart is up to date.
func TestChart(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(renderedFolder, "*.values.yaml"))
	if err != nil || len(names) != 3 {
		t.Fatalf("%v, %v, want the values of 3 releases", names, err)
	}
	defaults := readValues(t, filepath.Join(chartFolder, "values.yaml"))
	for _, file := range names {
		name := strings.TrimSuffix(filepath.Base(file), ".values.yaml")
		made, there := render(t, merge(defaults, readValues(t, file))), rendered(t, name)
		if got, want := slices.Sorted(maps.Keys(made)), slices.Sorted(maps.Keys(there)); !slices.Equal(got, want) {
			t.Errorf("%s: the chart has %v, and %s/%s.yaml %v: run hack/chart/update.sh", name, got, renderedFolder, name, want)
		}
		for key, o := range made {
			if !bytes.Equal(o.text, there[key].text) {
				t.Errorf("%s: %s differs from that of %s/%s.yaml: run hack/chart/update.sh\n%s\n%s", name, key, renderedFolder, name, o.text, there[key].text)
			}
		}
	}
}

// The roles are those that scaler checks for, which are those of the guide.
func TestChartRoles(t *testing.T) {
	all := rendered(t, "all")
	for name, rights := range map[string][]rbacv1.PolicyRule{
		existing.RoleName:        existing.Rights(drivers.Default().Installed.Rights),
		existing.WorkersRoleName: existing.WorkerRights(),
		existing.KwokRoleName:    existing.KwokRights(),
		existing.KubeletRoleName: existing.KubeletRights(),
	} {
		role := decode[rbacv1.ClusterRole](t, all["ClusterRole "+name])
		if !reflect.DeepEqual(role.Rules, rights) {
			t.Errorf("ClusterRole %s has the rules %v, want %v", name, role.Rules, rights)
		}
		binding := decode[rbacv1.ClusterRoleBinding](t, all["ClusterRoleBinding "+name])
		want := []rbacv1.Subject{
			{Kind: "ServiceAccount", Name: "scaler", Namespace: "scaler"}, {Kind: "Group", Name: "platform", APIGroup: "rbac.authorization.k8s.io"},
		}
		if binding.RoleRef.Name != name || !reflect.DeepEqual(binding.Subjects, want) {
			t.Errorf("the binding of %s has %+v", name, binding)
		}
	}
	for key := range rendered(t, "default") {
		if strings.Contains(key, existing.KubeletRoleName) || strings.HasPrefix(key, "CronJob") {
			t.Errorf("%s is there by default", key)
		}
	}
}

// No container of the chart is root, may become it, or writes elsewhere than to its volumes.
func TestChartIsRestricted(t *testing.T) {
	for _, name := range []string{"all", "in-image"} {
		jobs := 0
		for key, o := range rendered(t, name) {
			if o.kind != "CronJob" {
				continue
			}
			jobs++
			pod := decode[batchv1.CronJob](t, o).Spec.JobTemplate.Spec.Template.Spec
			if s := pod.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser == 0 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || pod.HostNetwork || pod.HostPID {
				t.Errorf("%s: the pods of %s have %+v", name, key, pod)
			}
			for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
				s := c.SecurityContext
				if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Privileged != nil || !reflect.DeepEqual(s.Capabilities, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}) {
					t.Errorf("%s: container %s has %+v", name, c.Name, s)
				}
			}
			for _, v := range pod.Volumes {
				if v.EmptyDir == nil && v.PersistentVolumeClaim == nil {
					t.Errorf("%s: volume %s is none of the pod's own", name, v.Name)
				}
			}
		}
		if jobs != 1 {
			t.Errorf("%s: %d CronJobs, want 1", name, jobs)
		}
	}
}

// The programs are of the versions that scaler pins.
func TestChartPrograms(t *testing.T) {
	programs := readValues(t, filepath.Join(chartFolder, "values.yaml"))["programs"].(map[string]any)
	for name, want := range map[string]string{component.Kwok: component.Version(component.Kwok), component.Prometheus: "v" + component.Version(component.Prometheus)} {
		if tag := programs[name].(map[string]any)["tag"]; tag != want {
			t.Errorf("programs.%s.tag is %v, want %s", name, tag, want)
		}
	}
}

// The schema describes each value of the chart, and nothing else.
func TestChartSchema(t *testing.T) {
	type schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var check func(path string, values map[string]any, text []byte)
	check = func(path string, values map[string]any, text []byte) {
		var s schema
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		if s.Properties == nil {
			return // of any keys
		}
		for key, value := range values {
			if s.Properties[key] == nil {
				t.Errorf("the schema lacks %s%s", path, key)
				continue
			}
			if inner, isMap := value.(map[string]any); isMap {
				check(path+key+".", inner, s.Properties[key])
			}
		}
		for key := range s.Properties {
			if _, known := values[key]; !known && path+key != "global" {
				t.Errorf("the schema has %s%s, which is no value", path, key)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(chartFolder, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	check("", readValues(t, filepath.Join(chartFolder, "values.yaml")), text)
}
