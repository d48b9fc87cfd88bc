//go:build e2e

package e2e

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// usedRights are the rights that a user made use of, as in "create deployments.apps" or "get /readyz".
type usedRights struct {
	mu  sync.Mutex
	all map[string]bool
}

// recordRights has all requests of the user go through a proxy, which notes the right that each of them took. Those that were refused are left out.
func (u *user) recordRights() *usedRights {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(u.kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	connect, _ := connection(u.kubeconfig)
	target, err := url.Parse(connect.Host)
	Expect(err).NotTo(HaveOccurred())
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(connect)) // the token is the request's
	Expect(err).NotTo(HaveOccurred())
	used := &usedRights{all: map[string]bool{}}
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if right := rightOf(r.Request.Method, r.Request.URL); r.StatusCode != http.StatusForbidden && right != "" {
				used.mu.Lock()
				defer used.mu.Unlock()
				used.all[right] = true
			}
			return nil
		},
	})
	proxy.EnableHTTP2 = true
	proxy.StartTLS()
	DeferCleanup(proxy.Close)
	for _, c := range config.Clusters {
		c.Server = proxy.URL
		c.CertificateAuthority, c.CertificateAuthorityData = "", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	}
	Expect(clientcmd.WriteToFile(*config, u.kubeconfig)).To(Succeed())
	return used
}

// unused returns the rights of the rules that nobody made use of, sorted.
func (u *usedRights) unused(rules []rbacv1.PolicyRule) (left []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, name := range rule.NonResourceURLs {
				left = append(left, verb+" "+name)
			}
			for _, name := range rule.Resources {
				left = append(left, verb+" "+strings.TrimSuffix(name+"."+rule.APIGroups[0], "."))
			}
		}
	}
	left = slices.DeleteFunc(left, func(right string) bool { return u.all[right] })
	slices.Sort(left)
	return left
}

// rightOf returns the right that a request takes, as the API server sees it; "" = one that every user has, as to ask for the own rights.
func rightOf(method string, at *url.URL) string {
	var group string
	parts := strings.Split(strings.Trim(at.Path, "/"), "/")
	switch {
	case at.Path == "/readyz":
		return "get " + at.Path
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3 && parts[1] != "authorization.k8s.io":
		group, parts = parts[1], parts[3:]
	default:
		return ""
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	name := parts[0]
	if len(parts) > 2 {
		name += "/" + parts[2]
	}
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[method]
	switch {
	case len(parts) > 1:
	case method == http.MethodDelete:
		verb = "deletecollection"
	case method == http.MethodGet && at.Query().Get("watch") != "":
		verb = "watch"
	case method == http.MethodGet:
		verb = "list"
	}
	return verb + " " + strings.TrimSuffix(name+"."+group, ".")
}
