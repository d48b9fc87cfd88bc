package istio

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/controlplane"
)

func TestCheckSetting(t *testing.T) {
	for _, test := range []struct{ setting, want string }{
		{"meshConfig.outboundTrafficPolicy.mode=REGISTRY_ONLY", ""},
		{"meshConfig.connectTimeout=60m", ""},
		{"meshConfig.defaultConfig.proxyMetadata.ISTIO_META_DNS_AUTO=x", ""},
		{"meshConfig.extensionProviders=[{name: otel, opentelemetry: {service: otel.example, port: 4317}}]", ""},
		{"meshConfig.defaultConfig.concurrency=3", ""},
		{"values.global.proxy.logLevel=debug", ""},
		{"accessLogFile=/dev/stdout", "meshConfig.PATH=VALUE or values.PATH=VALUE"},
		{"meshConfig.accessLogFile", "meshConfig.PATH=VALUE or values.PATH=VALUE"},
		{"meshConfig.=x", "meshConfig.PATH=VALUE or values.PATH=VALUE"},
		{"meshConfig.accessLog.file=x", "a field of MeshConfig: it has no accessLog"},
		{"meshConfig.outboundTrafficPolicy.modes=x", "a field of MeshConfig: it has no outboundTrafficPolicy.modes"},
		{"meshConfig.outboundTrafficPolicy.mode=ANY", "a value that this field of MeshConfig takes"},
		{"meshConfig.defaultConfig.concurrency=many", "a value that this field of MeshConfig takes"},
		{"meshConfig.accessLogFile.path=x", "a value that this field of MeshConfig takes"},
		{"meshConfig.accessLogFile=[", "a value in YAML"},
		{"meshConfig.trustDomain=corp.example", "another one than meshConfig.trustDomain, which the run decides"},
		{"meshConfig.defaultConfig.discoveryAddress=a:1", "another one than meshConfig.defaultConfig.discoveryAddress"},
		{"meshConfig.discoverySelectors=[{matchLabels: {a: b}}]", "another one than meshConfig.discoverySelectors"},
		{"values.global={proxy: {logLevel: debug}}", "another one than values.global, which the run decides, or of which it decides a part"},
		{"meshConfig.defaultConfig={concurrency: 2}", "another one than meshConfig.defaultConfig, which the run decides, or of which it decides a part"},
		{"values.global.multiCluster.clusterName=west", "another one than values.global.multiCluster.clusterName"},
	} {
		err := checkSetting(test.setting)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: got %v, want none", test.setting, err)
		case test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)):
			t.Errorf("%s: got %v, want %q", test.setting, err, test.want)
		}
	}
}

// Settings take the place of what the installation has, are described, and reach no other object.
func TestApplySettings(t *testing.T) {
	c := &ControlPlane{opts: controlplane.StartOptions{Revision: "1-31-0", Set: []string{
		"meshConfig.defaultConfig.concurrency=3", "values.global.proxy.logLevel=debug", "meshConfig.defaultConfig.proxyMetadata.API_TOKEN=hunter2",
	}}}
	for _, test := range []struct{ name, key, have, want string }{
		{"istio-1-31-0", "mesh", "defaultConfig: {concurrency: 2, drainDuration: 5s}\n", "defaultConfig:\n  concurrency: 3\n  drainDuration: 5s\n  proxyMetadata:\n    API_TOKEN: hunter2\n"},
		{"istio-sidecar-injector-1-31-0", "values", `{"global": {"proxy": {"logLevel": "warning"}}}`, "global:\n  proxy:\n    logLevel: debug\n"},
		{"values-1-31-0", "values", `{"global": {}}`, `{"global": {}}`},
	} {
		o := configMap(test.name, map[string]any{test.key: test.have})
		if err := c.applySettings(o); err != nil {
			t.Fatal(err)
		}
		text, _, _ := unstructured.NestedString(o.Object, "data", test.key)
		if diff := cmp.Diff(test.want, text); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
	want := map[string]string{"meshConfig.defaultConfig.concurrency": "3", "values.global.proxy.logLevel": "debug", "meshConfig.defaultConfig.proxyMetadata.API_TOKEN": "(masked)"}
	if diff := cmp.Diff(want, c.configured); diff != "" {
		t.Error(diff)
	}
}
