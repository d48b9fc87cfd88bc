package place

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A cluster whose metrics server does not answer is clean all the same; one of whose own APIs a part
// cannot be asked may not be.
func TestDeletionWithoutAnAPI(t *testing.T) {
	for status, want := range map[int]string{http.StatusServiceUnavailable: "", http.StatusInternalServerError: "metrics.k8s.io/v1beta1"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			var answer any
			switch r.URL.Path {
			case "/api":
				answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
			case "/apis":
				version := metav1.GroupVersionForDiscovery{GroupVersion: "metrics.k8s.io/v1beta1", Version: "v1beta1"}
				answer = metav1.APIGroupList{
					TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
					Groups:   []metav1.APIGroup{{Name: "metrics.k8s.io", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}},
				}
			case "/api/v1":
				answer = metav1.APIResourceList{
					TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1",
					APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"list", "delete"}}},
				}
			case "/api/v1/pods":
				answer = metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}}
			default:
				w.WriteHeader(status)
				return
			}
			if err := json.NewEncoder(w).Encode(answer); err != nil {
				t.Error(err)
			}
		}))
		deleted, err := DeleteRun(t.Context(), &rest.Config{Host: server.URL}, "istiod-strict-50-3f9a1c", false)
		if deleted.Total() != 0 || (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("status %d: deleted %v, %v, want the error %q", status, deleted, err, want)
		}
		server.Close()
	}
}
