package clusterprometheus

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for _, test := range []struct{ text, url, path string }{
		{"", "", ""},
		{"detect", "", ""},
		{"http://prometheus:9090", "http://prometheus:9090", ""},
		{"service:monitoring/prometheus-k8s:9090", "", "/api/v1/namespaces/monitoring/services/prometheus-k8s:9090/proxy"},
		{"service:monitoring/https:prometheus-k8s:web", "", "/api/v1/namespaces/monitoring/services/https:prometheus-k8s:web/proxy"},
		{"service:m/p:9090/prometheus/", "", "/api/v1/namespaces/m/services/p:9090/proxy/prometheus"},
	} {
		a, err := ParseAddress(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if a.URL != test.url || test.path != "" && a.Service.proxyPath() != test.path || a.String() != strings.TrimRight(test.text, "/") {
			t.Errorf("%q: %+v, %s", test.text, a, a)
		}
		if again, err := ParseAddress(a.String()); err != nil || again != a {
			t.Errorf("%q: read again %+v, %v", test.text, again, err)
		}
	}
	if a, err := ParseAddress("https://host/prometheus/"); err != nil || a.URL != "https://host/prometheus" {
		t.Errorf("%+v, %v", a, err)
	}
	for _, text := range []string{
		"prometheus:9090", "ftp://host", "http://", "http://host?x=1", "http://host#x", "service:", "service:monitoring", "service:monitoring/prometheus",
		"service:/prometheus:9090", "service:monitoring/:9090", "service:monitoring/prometheus:", "service:a/b:c:d:e", "service:a/ftp:b:c",
		"service:a/b:9/../../x", "service:a/b:9/x?y", "service:A/b:9", "http://user:hush@host", "https://hush@host", "detect ", "http://h\x7f",
	} {
		if a, err := ParseAddress(text); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %+v, %v", text, a, err)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, text := range []string{"detect", "http://a:1/b", "service:a/https:b:c/d", "http://u:p@h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAddress(text)
		if err != nil {
			return
		}
		if again, err := ParseAddress(a.String()); err != nil || again != a {
			t.Errorf("%q: %+v, read again %+v, %v", text, a, again, err)
		}
		if a.URL == "" && strings.Contains(a.String(), "@") {
			t.Errorf("%q: %s", text, a)
		}
	})
}
