//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/controlplane/reference"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/credential"
	"scaler.mesh/scaler/test/exposure"
)

const second = scenario.Duration(time.Second)

// gatekeeper is a server that admits sidecars with a certificate of an authority and with
// a token, and passes on what they send to a server without either.
type gatekeeper struct {
	address  string
	admitted atomic.Int64 // streams
	refused  atomic.Int64
}

// startGuard serves until the spec ends.
func startGuard(authority *credential.Authority, name, token, upstream string) *gatekeeper {
	GinkgoHelper()
	plain := &http.Protocols{}
	plain.SetUnencryptedHTTP2(true)
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: upstream})
	pass.Transport = &http.Transport{Protocols: plain}
	pass.FlushInterval = -1
	pass.ErrorLog = log.New(GinkgoWriter, "", 0)
	g := &gatekeeper{}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			g.refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		g.admitted.Add(1)
		pass.ServeHTTP(w, r)
	})}
	server.TLSConfig = &tls.Config{
		Certificates: []tls.Certificate{authority.Pair(name)}, NextProtos: []string{"h2"},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority.Pool(),
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	g.address = listener.Addr().String()
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(listener, "", "") }()
	DeferCleanup(func() {
		Expect(server.Close()).To(Succeed())
		Eventually(done).Should(Receive(MatchError(http.ErrServerClosed)))
	})
	return g
}

// serveOnceUp runs the reference control plane for the cluster that a run starts below
// a folder, as soon as its API server answers, until the spec ends. Its ADS has no TLS.
func serveOnceUp(ctx context.Context, state, address string) {
	GinkgoHelper()
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		defer GinkgoRecover()
		var kubeconfig string
		Eventually(ctx, func(g Gomega) {
			found, err := filepath.Glob(filepath.Join(state, "*", "*", "kubeconfig"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(HaveLen(1))
			config, err := clientcmd.BuildConfigFromFlags("", found[0])
			g.Expect(err).NotTo(HaveOccurred())
			client, err := kubernetes.NewForConfig(config)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "scaler-reference"}}, metav1.CreateOptions{})
			if !apierrors.IsAlreadyExists(err) { // as after a request whose answer did not come
				g.Expect(err).NotTo(HaveOccurred())
			}
			kubeconfig = found[0]
		}).WithTimeout(2 * time.Minute).Should(Succeed())
		err := reference.Serve(ctx, reference.ServeOptions{
			Kubeconfig: kubeconfig, Selector: kwok.RunLabel, Plain: address, Secure: "127.0.0.1:0", Monitoring: "127.0.0.1:0",
		})
		GinkgoWriter.Println("the ADS server ended:", err)
		done <- err
	}()
	DeferCleanup(func() {
		stop()
		Eventually(done).Should(Receive())
	})
}

// An ADS server that scaler does not start, which wants a certificate and a token of
// every sidecar, serves a rollout on the cluster. What each sidecar must receive comes
// from a file, the endpoints from the cluster.
var _ = It("rolls out against an ADS server behind mutual TLS and a token", func(ctx SpecContext) {
	const pods, name, token = 20, "ads.example", "token-0123456789abcdef"
	dir := GinkgoT().TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		Expect(os.WriteFile(path, b, 0o600)).To(Succeed())
		return path
	}
	upstream, err := process.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	authority := credential.NewAuthority(time.Hour)
	own := authority.Pair("sidecar")
	guard := startGuard(authority, name, token, upstream)

	spec := run.DefaultSpec()
	spec.ControlPlane.Name, spec.Mesh.Sidecars.XDS = "xds://"+guard.address, "delta"
	spec.ControlPlane.Connection = scenario.Connection{
		ServerName: name, TLSCA: write("root.pem", authority.RootPEM), TokenFile: write("token", []byte(token+"\n")),
		TLSCert: write("cert.pem", credential.EncodeCertificate(own.Certificate[0])), TLSKey: write("key.pem", credential.EncodeKey(own.PrivateKey)),
		NodeCluster: "{{.Namespace}}/{{.Service}}", // as the server knows workloads
		Expect:      filepath.Join("..", "..", "internal", "controlplane", "external", "testdata", "expect.yaml"),
	}
	spec.Mesh.Services, spec.Mesh.Namespaces = 4, 2
	spec.Phases.Baseline, spec.Phases.Settle, spec.Phases.Steady = second, 2*second, 3*second
	spec.Instrument.Calibrate = false
	spec.Out, spec.State = GinkgoT().TempDir(), GinkgoT().TempDir()
	spec.Programs = component.Options{
		BinDir: os.Getenv("SCALER_BIN_DIR"), CacheDir: os.Getenv("SCALER_CACHE_DIR"), Progress: func(msg string) { GinkgoWriter.Println(msg) },
	}
	serveOnceUp(ctx, spec.State, upstream)
	served := false // before the first sidecar
	driver, _, err := drivers.Find(nil, spec.ControlPlane.Name)
	Expect(err).NotTo(HaveOccurred())
	spec.Mesh.Pods, spec.Mesh.Mode = scenario.List[int]{pods}, driver.ModeNames()
	ladder := run.Ladder{Spec: spec}
	runs, err := ladder.Run(ctx, run.Progress{Say: func(msg string) {
		GinkgoWriter.Println(msg)
		if strings.HasPrefix(msg, fmt.Sprintf("%s: ", record.PhaseBaseline)) { // the first sidecar comes after it
			served = true
			Eventually(func() error {
				conn, err := net.Dial("tcp", upstream)
				if err != nil {
					return err
				}
				return conn.Close()
			}).WithTimeout(2 * time.Minute).Should(Succeed())
		}
	}})
	Expect(err).NotTo(HaveOccurred())
	Expect(runs).To(HaveLen(1))
	Expect(served).To(BeTrue())

	run := &runs[0]
	Expect(run.Status).To(Equal(record.StatusCompleted))
	for _, n := range []*int{run.Pods.Created, run.Pods.Ready, run.Pods.Connected, run.Pods.Complete, run.Pods.Converged} {
		Expect(n).To(HaveValue(Equal(pods)))
	}
	Expect(run.XDS.Nacks).To(HaveValue(BeZero()))
	Expect(run.XDS.Refusals).To(HaveValue(BeZero()))
	Expect(guard.admitted.Load()).To(BeEquivalentTo(pods), "every stream was admitted with a certificate and a token")
	Expect(guard.refused.Load()).To(BeZero())
	total := 0.0
	for _, n := range run.XDS.Responses {
		total += float64(n)
	}
	Expect(known(known(known(run.XDS.Rates).Rollout).ResponsesPerSecond) * known(run.RolloutSeconds())).To(And(BeNumerically(">", 0), BeNumerically("<=", total+1e-6)))
	Expect(known(known(run.XDS.Rates).Baseline).BytesPerSecond).To(HaveValue(BeZero()), "there is no sidecar yet")
	added := known(run.Latencies.RolloutPush[record.EndpointAdd])
	Expect(added.Count).NotTo(BeZero())
	Expect(added.Lost).To(BeZero())
	Expect(run.ControlPlane).To(BeNil(), "scaler did not start it")
	Expect(run.Certificates).To(BeNil())

	secrets := exposure.Secrets{}
	Expect(secrets.AddFolder(filepath.Dir(spec.ControlPlane.Connection.TLSKey))).Error().NotTo(HaveOccurred())
	Expect(secrets).NotTo(BeEmpty(), "the key of the sidecars")
	secrets[token] = "the token"
	Expect(secrets.InFolder(spec.Out)).To(BeEmpty())
}, SpecTimeout(10*time.Minute))
