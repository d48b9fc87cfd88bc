package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// server is an API server that lists objects page by page, as far as a test needs one.
type server struct {
	objects   map[string][]map[string]any // by path
	forbidden map[string]bool
	single    map[string]map[string]any // objects that are got, by path
	expire    int                       // pages after which a continue token is refused once; 0 = never
	restart   bool                      // such a refusal has no token to go on with
	pages     int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // a client that is gone reads no answer
	}
	refuse := func(code int, reason, token string) {
		answer(code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "metadata": map[string]any{"continue": token}})
	}
	group := func(version string, resources ...string) {
		var all []any
		for _, name := range resources {
			all = append(all, map[string]any{"name": name, "kind": "X", "namespaced": true, "verbs": []string{"list"}})
		}
		answer(200, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": all})
	}
	switch r.URL.Path {
	case "/api":
		answer(200, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
		return
	case "/apis":
		answer(200, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{map[string]any{
			"name": "networking.istio.io", "versions": []any{map[string]any{"groupVersion": "networking.istio.io/v1", "version": "v1"}},
			"preferredVersion": map[string]any{"groupVersion": "networking.istio.io/v1", "version": "v1"},
		}}})
		return
	case "/api/v1":
		group("v1", "services", "namespaces", "nodes", "pods", "secrets")
		return
	case "/apis/networking.istio.io/v1":
		group("networking.istio.io/v1", "virtualservices", "destinationrules")
		return
	}
	objects, there := s.objects[r.URL.Path]
	switch {
	case s.forbidden[r.URL.Path]:
		refuse(403, "Forbidden", "")
		return
	case s.single[r.URL.Path] != nil:
		answer(200, s.single[r.URL.Path])
		return
	case !there:
		refuse(404, "NotFound", "")
		return
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	token := r.URL.Query().Get("continue")
	begin, _ := strconv.Atoi(strings.TrimPrefix(token, "again-"))
	if s.pages++; s.expire > 0 && s.pages == s.expire && token != "" {
		again := "again-" + token
		if s.restart {
			again = ""
		}
		refuse(410, "Expired", again)
		return
	}
	end, next := min(begin+limit, len(objects)), ""
	if limit == 0 {
		end = len(objects)
	}
	if end < len(objects) {
		next = strconv.Itoa(end)
	}
	answer(200, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"continue": next}, "items": objects[begin:end]})
}

func object(apiVersion, kind, namespace, name string, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}, "spec": spec}
}

// many returns a server with so many objects of two kinds.
func many(objects int) *server {
	s := &server{objects: map[string][]map[string]any{}, forbidden: map[string]bool{}}
	for i := range objects / 2 {
		name := fmt.Sprintf("s-%d", i)
		s.objects["/api/v1/services"] = append(s.objects["/api/v1/services"],
			object("v1", "Service", "ns", name, map[string]any{"ports": []any{map[string]any{"name": "http", "port": 80}}}))
		s.objects["/apis/networking.istio.io/v1/virtualservices"] = append(s.objects["/apis/networking.istio.io/v1/virtualservices"],
			object("networking.istio.io/v1", "VirtualService", "ns", name, map[string]any{"hosts": []any{name}}))
	}
	return s
}

func captured(t *testing.T, s *server) (Mesh, error) {
	t.Helper()
	return capturedAsking(t, s, nil)
}

func capturedAsking(t *testing.T, s *server, ask func(context.Context, string, string, int, string) ([]byte, error)) (Mesh, error) {
	t.Helper()
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	config := &rest.Config{Host: listening.URL, QPS: -1}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return FromCluster(t.Context(), Cluster{Discovery: kinds, Dynamic: client, Ask: ask})
}

// ConfigMaps of a control plane are read by their names, in the namespace of its Deployment, and
// the version is the one that it reports. Without rights the rest is captured.
func TestControlPlaneOfCluster(t *testing.T) {
	labelled := func(o map[string]any) map[string]any {
		o["metadata"].(map[string]any)["labels"] = map[string]any{"app": "istiod", "istio.io/rev": "blue"}
		return o
	}
	config := func(name, key, text string) map[string]any {
		o := object("v1", "ConfigMap", "mesh-system", name, nil)
		delete(o, "spec")
		o["data"] = map[string]any{key: text}
		return o
	}
	pod := labelled(object("v1", "Pod", "mesh-system", "istiod-blue-x", map[string]any{"containers": []any{map[string]any{"name": "discovery"}}}))
	pod["status"] = map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	of := func() *server {
		s := many(2)
		s.objects["/api/v1/services"] = append(s.objects["/api/v1/services"], labelled(object("v1", "Service", "mesh-system", "istiod-blue", map[string]any{})))
		s.objects["/api/v1/pods"] = []map[string]any{pod}
		s.single = map[string]map[string]any{
			"/api/v1/namespaces/mesh-system/configmaps/istio-blue":                  config("istio-blue", "mesh", "rootNamespace: mesh-system"),
			"/api/v1/namespaces/mesh-system/configmaps/istio-sidecar-injector-blue": config("istio-sidecar-injector-blue", "config", "templates: {sidecar: a}"),
		}
		return s
	}
	asked := ""
	m, err := capturedAsking(t, of(), func(_ context.Context, namespace, pod string, port int, path string) ([]byte, error) {
		asked = fmt.Sprintf("%s/%s:%d%s", namespace, pod, port, path)
		return []byte("1.30.2-alpha\n"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if asked != "mesh-system/istiod-blue-x:15014/version" {
		t.Errorf("%s was asked", asked)
	}
	r := m.Served()
	if r == nil || r.Name != "blue" || r.Namespace != "mesh-system" || r.Release() != "1.30.2" || r.Root() != "mesh-system" || r.Injection == nil || r.Injection.Templates["sidecar"] != "a" {
		t.Errorf("captured %+v", r)
	}
	checkCounts(t, m)

	few := of()
	for path := range few.single {
		few.forbidden[path] = true
	}
	m, err = capturedAsking(t, few, func(context.Context, string, string, int, string) ([]byte, error) {
		return nil, errors.New("forbidden")
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []LeftOut{
		{Kind: "configmaps", Reason: "no right to get istio and istio-sidecar-injector of the control plane"},
		{Kind: "pods", Count: 1, Reason: ofControlPlane}, {Kind: "services", Count: 1, Reason: ofControlPlane},
		{Kind: "version of the control plane", Reason: "not reported by its pods, which are asked with the right to forward ports: that of the image counts"},
	}
	if diff := cmp.Diff(want, m.LeftOut); diff != "" {
		t.Error(diff)
	}
	if r := m.Served(); r == nil || r.MeshConfig != nil || r.Release() != "" {
		t.Errorf("captured %+v without the right", r)
	}
	checkReadable(t, "without rights", m)
}

// Kinds without rights are in the file and in the summary, and the file is read again.
func TestKindsWithoutRights(t *testing.T) {
	s := many(4)
	s.forbidden["/apis/networking.istio.io/v1/virtualservices"], s.forbidden["/api/v1/nodes"] = true, true
	m, err := captured(t, s)
	if err != nil {
		t.Fatal(err)
	}
	want := []LeftOut{{Kind: "nodes", Reason: "no right to list them"}, {Kind: "virtualservices.networking.istio.io", Reason: "no right to list them"}}
	again := read(t, written(t, m))
	if fmt.Sprint(again.LeftOut) != fmt.Sprint(want) || len(again.Services) != 2 || len(again.Objects) != 0 {
		t.Errorf("left out %v, want %v; %d services, %d objects", again.LeftOut, want, len(again.Services), len(again.Objects))
	}
	var summary bytes.Buffer
	if err := m.Summary(&summary); err != nil || !strings.Contains(summary.String(), "left out: virtualservices.networking.istio.io: no right to list them\n") {
		t.Errorf("summary, %v:\n%s", err, summary.String())
	}
	s.forbidden["/api/v1/services"] = true
	if _, err := captured(t, s); err == nil || !strings.Contains(err.Error(), "want the right to list services") {
		t.Errorf("without any rights: %v", err)
	}
}

// A list whose continue token expires goes on with the one that the server offers, or begins again.
func TestPages(t *testing.T) {
	for _, c := range []struct {
		name    string
		objects int
		expire  int
		restart bool
	}{{"in time", 20_000, 0, false}, {"expired", 3_000, 2, false}, {"expired for good", 3_000, 2, true}} {
		t.Run(c.name, func(t *testing.T) {
			objects := c.objects
			s := many(objects)
			s.expire, s.restart = c.expire, c.restart
			m, err := captured(t, s)
			if err != nil || len(m.Services) != objects/2 || len(m.Objects) != objects/2 || len(m.LeftOut) != 0 {
				t.Fatalf("%d services, %d objects, left out %v: %v", len(m.Services), len(m.Objects), m.LeftOut, err)
			}
			if s.pages < objects/pageSize {
				t.Errorf("%d pages, want %d or more", s.pages, objects/pageSize)
			}
		})
	}
}

// A file of 20,000 objects, as kubectl prints them.
func TestLargeFile(t *testing.T) {
	const objects = 20_000
	s := many(objects)
	var all []map[string]any
	for _, of := range s.objects {
		all = append(all, of...)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": all})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "all.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := FromFiles(t.Context(), path)
	if err != nil || len(m.Services)+len(m.Objects) != objects {
		t.Fatalf("%d services, %d objects: %v", len(m.Services), len(m.Objects), err)
	}
	if again := read(t, written(t, m)); len(again.Services)+len(again.Objects) != objects {
		t.Errorf("read again: %d services, %d objects", len(again.Services), len(again.Objects))
	}
}
