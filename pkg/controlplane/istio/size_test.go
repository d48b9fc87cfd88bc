package istio

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/topology"
)

// measuredMeshes are those of testdata/sizes, by the number of their services.
var measuredMeshes = map[string]topology.Spec{
	"14": {Pods: 40, Services: 14, Namespaces: 2, Shape: topology.Random, FanOut: 3, Seed: 1},
	"24": {Pods: 48, Services: 24, Namespaces: 12, Shape: topology.Random, FanOut: 4, Seed: 1},
}

// The sizes of testdata/sizes/SERVICES-MTLS-SCOPE-AUTHZ.tsv are what istiod sent:
// service (* where all were sent the same), resource, bytes. Every one of them
// is predicted within 2 %, and all that a sidecar holds of a type within 1 %.
// Those of testdata/upstream were sent with UpstreamEnvoy.
// hack/record-sizes.sh makes them anew.
func TestSizesAsMeasured(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.tsv")
	if err != nil || len(files) != 8+2 {
		t.Fatalf("testdata holds %d files (%v), want 10", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, "testdata/"), func(t *testing.T) {
			parts := strings.Split(strings.TrimSuffix(filepath.Base(file), ".tsv"), "-")
			mesh := topology.Build(measuredMeshes[parts[0]])
			knobs := controlplane.Knobs{MTLS: parts[1], Scope: parts[2], Authz: parts[3]}
			measured := readSizes(t, file)
			c := &ControlPlane{beside: besideAsMeasured(measured), opts: Options{UpstreamEnvoy: strings.Contains(file, "/upstream/")}}
			for i, s := range mesh.Services {
				predicted, held := map[convergence.Type]float64{}, map[convergence.Type]float64{}
				for _, h := range c.Holds(mesh, knobs, i) {
					bytes, ok := measured[s.Name+" "+h.Key.String()]
					if !ok {
						bytes, ok = measured["* "+h.Key.String()]
					}
					if !ok {
						t.Errorf("%s was not sent %s", s.Name, h.Key)
						continue
					}
					predicted[h.Type] += h.Bytes
					held[h.Type] += bytes
					if math.Abs(h.Bytes-bytes) > 0.02*bytes {
						t.Errorf("%s: %s has %.0f bytes, predicted %.1f", s.Name, h.Key, bytes, h.Bytes)
					}
				}
				for kind := range held {
					if math.Abs(predicted[kind]-held[kind]) > 0.01*held[kind] {
						t.Errorf("%s holds %.0f bytes of %s, predicted %.1f", s.Name, held[kind], kind, predicted[kind])
					}
				}
			}
		})
	}
}

// readSizes reads bytes by "SERVICE TYPE NAME".
func readSizes(t *testing.T, file string) map[string]float64 {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sizes := map[string]float64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), "\t")
		bytes, err := strconv.ParseFloat(fields[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		sizes[fields[0]+" "+fields[1]] = bytes
	}
	return sizes
}

// besideAsMeasured are the services of the installation; istiod's address is
// another in each run, and told by the names of its listeners.
func besideAsMeasured(measured map[string]float64) []beside {
	istiod := beside{host: "istiod.istio-system.svc.cluster.local", ports: []besidePort{
		{15010, routed, true}, {15012, opaque, false}, {443, opaque, false}, {15014, routed, false},
	}}
	for name := range measured {
		if address, ok := strings.CutSuffix(name, "_15012"); ok {
			istiod.address = strings.TrimPrefix(address, "* LDS ")
		}
	}
	return []beside{istiod, {host: "kubernetes.default.svc.cluster.local", address: "10.0.0.1", ports: []besidePort{{443, opaque, false}}}}
}

func TestKindsOfPorts(t *testing.T) {
	http := "http"
	for _, c := range []struct {
		name  string
		app   *string
		kind  listenerKind
		http2 bool
	}{
		{"http", nil, routed, false}, {"HTTP-web", nil, routed, false}, {"http2", nil, routed, true}, {"grpc-xds", nil, routed, true},
		{"https-dns", nil, opaque, false}, {"tcp-1", nil, opaque, false}, {"tls", nil, opaque, false},
		{"status-port", nil, sniffed, false}, {"", nil, sniffed, false}, {"tcp", &http, routed, false},
	} {
		if kind, http2 := kindOf(servicePort(c.name, c.app)); kind != c.kind || http2 != c.http2 {
			t.Errorf("port %q is %v, %t, want %v, %t", c.name, kind, http2, c.kind, c.http2)
		}
	}
}

func servicePort(name string, appProtocol *string) corev1.ServicePort {
	return corev1.ServicePort{Name: name, AppProtocol: appProtocol}
}
